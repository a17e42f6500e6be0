# %% setup
import numpy as np

def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, S - T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% right: einsum and a mask by positions
def cached_attention(query, key, value, cache):
    query, key, value = (np.asarray(x, dtype=float) for x in (query, key, value))
    past = 0 if cache is None else cache[0].shape[-2]
    keys = key if cache is None else np.append(cache[0], key, axis=-2)
    values = value if cache is None else np.append(cache[1], value, axis=-2)
    scores = np.einsum("bhtd,bhsd->bhts", query, keys) * query.shape[-1] ** -0.5
    hidden = np.arange(keys.shape[-2])[None, :] > past + np.arange(query.shape[-2])[:, None]
    scores[..., hidden] = -1e30
    scores -= scores.max(-1, keepdims=True)
    share = np.exp(scores)
    return np.einsum("bhts,bhsd->bhtd", share, values) / share.sum(-1)[..., None], [keys, values]

# %% right: query by query
def cached_attention(query, key, value, cache):
    query = np.asarray(query)
    keys, values = np.asarray(key), np.asarray(value)
    if cache:
        keys, values = (np.concatenate(pair, axis=-2) for pair in zip(cache, (keys, values)))
    T, S = query.shape[-2], keys.shape[-2]
    out = []
    for i in range(T):
        seen = S - T + i + 1
        s = (query[..., i : i + 1, :] * keys[..., :seen, :]).sum(-1) / query.shape[-1] ** 0.5
        w = np.exp(s - s.max(-1, keepdims=True))
        w = w / w.sum(-1, keepdims=True)
        out.append((w[..., None] * values[..., :seen, :]).sum(-2))
    return np.stack(out, axis=-2), (keys, values)

# %% right: old and new scores apart
def cached_attention(query, key, value, cache):
    q, k, v = np.asarray(query), np.asarray(key), np.asarray(value)
    T = q.shape[2]
    own = q @ np.moveaxis(k, 3, 2) / np.sqrt(k.shape[-1])
    own = own + np.triu(np.full((T, T), -np.inf), 1)
    if cache is None:
        scores, keys, values = own, k.copy(), v.copy()
    else:
        scores = np.concatenate([q @ np.moveaxis(cache[0], 3, 2) / np.sqrt(k.shape[-1]), own], axis=-1)
        keys, values = np.concatenate([cache[0], k], 2), np.concatenate([cache[1], v], 2)
    top = scores.max(axis=3, keepdims=True)
    e = np.exp(scores - top)
    return (e / e.sum(axis=3, keepdims=True)) @ values, (keys, values)

# %% right: empty cache and float32
def cached_attention(query, key, value, cache):
    q, k, v = (np.asarray(x).astype(np.float32) for x in (query, key, value))
    if cache is None:
        cache = k[:, :, :0], v[:, :, :0]
    k, v = np.concatenate((cache[0], k), 2), np.concatenate((cache[1], v), 2)
    n = q.shape[2]
    s = q @ k.transpose(0, 1, 3, 2) / np.float32(q.shape[3]) ** 0.5
    s[:, :, np.triu(np.ones((n, k.shape[2]), dtype=bool), k.shape[2] - n + 1)] = -np.inf
    p = np.exp(s - s.max(3, keepdims=True))
    return p / p.sum(3, keepdims=True) @ v, (k, v)

# %% right: a list of columns, and a read after the last token where it fits
def generate(model, prompt, new_tokens, choose, chunk=None):
    prompt = np.array(prompt)
    if prompt.shape[1] + new_tokens > model.context_length:
        raise ValueError("prompt and new tokens do not fit")
    if new_tokens == 0:
        return prompt
    pieces = np.split(prompt, range(chunk, prompt.shape[1], chunk), axis=1) if chunk else [prompt]
    cache = None
    for piece in pieces:
        logits, cache = model.read(piece, cache)
    columns = []
    for _ in range(new_tokens):
        columns.append(np.asarray(choose(logits[:, -1, :])))
        logits, cache = model.read(columns[-1][:, np.newaxis], cache)
    return np.hstack([prompt, np.stack(columns, axis=1)])

# %% right: an array made at once
def generate(model, prompt, new_tokens, choose, chunk=None):
    B, P = np.shape(prompt)
    if P + new_tokens > model.context_length:
        raise ValueError(f"{P} + {new_tokens} > {model.context_length}")
    result = np.zeros((B, P + new_tokens), dtype=np.int64)
    result[:, :P] = prompt
    read, cache = 0, None
    for end in range(P, P + new_tokens):
        while read < end:
            stop = min(end, read + (chunk or end))
            logits, cache = model.read(result[:, read:stop], cache)
            read = stop
        result[:, end] = choose(logits[:, -1])
    return result

# %% right: recursion
def generate(model, prompt, new_tokens, choose, chunk=None):
    if np.shape(prompt)[1] + new_tokens > model.context_length:
        raise ValueError("context")

    def go_on(tokens, piece, cache, left):
        if not left:
            return tokens
        logits, cache = model.read(piece, cache)
        new = choose(logits[:, -1]).reshape(-1, 1)
        return go_on(np.concatenate([tokens, new], axis=1), new, cache, left - 1)

    tokens, cache = np.asarray(prompt), None
    step = chunk or tokens.shape[1]
    starts = list(range(0, tokens.shape[1], step))
    for start in starts[:-1] if new_tokens else []:
        _, cache = model.read(tokens[:, start : start + step], cache)
    return go_on(tokens, tokens[:, starts[-1] :], cache, new_tokens)

# %% wrong: mask counts from the chunk's start -> counts from the chunk's start
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: no mask -> later tokens of the same chunk are seen
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: mask only without a cache -> later tokens of the same chunk are seen
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    T = query.shape[2]
    mask = np.tri(T, dtype=bool)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
        mask = np.ones((T, key.shape[2]), dtype=bool)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: itself hidden
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, S - T - 1, dtype=bool), scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: one key too many -> one key too many
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, S - T + 1, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: new in front of old -> in front of the old ones
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([key, cache[0]], axis=2)
        value = np.concatenate([value, cache[1]], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, S - T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, (key, value)

# %% wrong: cache of the last chunk alone -> holds the last chunk alone
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    new = key, value
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(T, S, S - T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ value, new

# %% wrong: values swapped with keys in the cache -> swapped in the cache
def cached_attention(query, key, value, cache, whole=cached_attention):
    output, (keys, values) = whole(query, key, value, cache)
    return output, (values, keys)

# %% wrong: cache unused -> runs over the chunk alone
def cached_attention(query, key, value, cache, whole=cached_attention):
    return whole(query, key, value, None)

# %% wrong: own keys left out -> only the cache is seen
def cached_attention(query, key, value, cache, whole=cached_attention):
    if cache is None:
        return whole(query, key, value, None)
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    scores = query @ cache[0].swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ cache[1], (np.concatenate([cache[0], key], 2), np.concatenate([cache[1], value], 2))

# %% wrong: one cache for all calls
KEPT = {}

def cached_attention(query, key, value, cache, whole=cached_attention):
    output, KEPT["last"] = whole(query, key, value, KEPT.get("last") if cache is not None else None)
    return output, KEPT["last"]

# %% wrong: cache extended in place
def cached_attention(query, key, value, cache, whole=cached_attention):
    if cache is None:
        output, (keys, values) = whole(query, key, value, None)
        return output, [keys, values]
    output, (cache[0], cache[1]) = whole(query, key, value, list(cache))
    return output, cache

# %% wrong: old positions overwritten in a buffer
def cached_attention(query, key, value, cache, whole=cached_attention):
    output, (keys, values) = whole(query, key, value, cache)
    if cache is not None:
        cache[0][...] = keys[:, :, -cache[0].shape[2] :]
    return output, (keys, values)

# %% wrong: not scaled -> not divided by the root
def cached_attention(query, key, value, cache, whole=cached_attention):
    query = np.asarray(query)
    return whole(query * np.sqrt(query.shape[-1]), key, value, cache)

# %% wrong: scaled by the width of the values -> the values' width
def cached_attention(query, key, value, cache, whole=cached_attention):
    query = np.asarray(query)
    return whole(query * np.sqrt(query.shape[-1] / np.shape(value)[-1]), key, value, cache)

# %% wrong: scaled by the number of keys -> root of the number of keys
def cached_attention(query, key, value, cache, whole=cached_attention):
    query = np.asarray(query)
    total = query.shape[2] + (0 if cache is None else cache[0].shape[2])
    return whole(query * np.sqrt(query.shape[-1] / total), key, value, cache)

# %% wrong: softmax not shifted
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores) * np.tri(T, S, S - T)
    return weights @ value / weights.sum(axis=-1, keepdims=True), (key, value)

# %% wrong: mask after softmax
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key = np.concatenate([cache[0], key], axis=2)
        value = np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights * np.tri(T, S, S - T) @ value, (key, value)

# %% wrong: last key of the chunk only
def cached_attention(query, key, value, cache, whole=cached_attention):
    output, _ = whole(query, key, value, cache)
    key, value = np.asarray(key)[:, :, -1:], np.asarray(value)[:, :, -1:]
    if cache is not None:
        key, value = np.concatenate([cache[0], key], 2), np.concatenate([cache[1], value], 2)
    return output, (key, value)

# %% wrong: no cache handed on -> cache is not handed on
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    if tokens.shape[1] + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, tokens.shape[1], chunk or tokens.shape[1]):
        logits, cache = model.read(tokens[:, start : start + (chunk or tokens.shape[1])], cache)
    for i in range(new_tokens):
        if i:
            logits, _ = model.read(tokens[:, -1:])
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: everything read again -> everything is read again
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    if tokens.shape[1] + new_tokens > model.context_length:
        raise ValueError("too long")
    for _ in range(new_tokens):
        logits, _ = model.read(tokens)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: whole sequence into the cache
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    if tokens.shape[1] + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for _ in range(new_tokens):
        logits, cache = model.read(tokens, cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: prompt's last token read twice -> its logits came with the prompt
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    if tokens.shape[1] + new_tokens > model.context_length:
        raise ValueError("too long")
    _, cache = model.read(tokens)
    for _ in range(new_tokens):
        logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: chunk ignored -> chunk has no effect
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return whole(model, prompt, new_tokens, choose)

# %% wrong: chunks without a cache -> without the cache of the one before
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)])
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: rest of the prompt dropped
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache, chunk = None, chunk or P
    for i in range(P // chunk):
        logits, cache = model.read(tokens[:, i * chunk : (i + 1) * chunk], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: first row's token for all -> first row's token
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        new = np.full((len(tokens), 1), choose(logits[:, -1])[0])
        tokens = np.concatenate([tokens, new], axis=1)
    return tokens

# %% wrong: row by row
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return np.concatenate([whole(model, row[None], new_tokens, choose, chunk) for row in np.asarray(prompt)])

# %% wrong: new tokens alone -> the new tokens came alone
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return whole(model, prompt, new_tokens, choose, chunk)[:, np.shape(prompt)[1] :]

# %% wrong: own choice -> choose has no effect
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return whole(model, prompt, new_tokens, lambda logits: logits.argmax(axis=-1), chunk)

# %% wrong: choose asked twice
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    def twice(logits):
        choose(logits)
        return choose(logits)
    return whole(model, prompt, new_tokens, twice, chunk)

# %% wrong: choose asked for the prompt too
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    result = whole(model, prompt, new_tokens, choose, chunk)
    return np.concatenate([result[:, :-1], choose(np.zeros((len(result), 7)))[:, None]], axis=1) if new_tokens else result

# %% wrong: first position's logits
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, 0])[:, None]], axis=1)
    return tokens

# %% wrong: one token too many -> one token too many
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    for i in range(new_tokens):
        logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    return tokens

# %% wrong: full context refused
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    if np.shape(prompt)[1] + new_tokens >= model.context_length:
        raise ValueError("too long")
    return whole(model, prompt, new_tokens, choose, chunk)

# %% wrong: nothing refused
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    room = model.context_length - np.shape(prompt)[1]
    return whole(model, prompt, min(new_tokens, room), choose, chunk)

# %% wrong: cache kept between calls
STATE = {}

def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = STATE.get(id(model))
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits[:, -1])[:, None]], axis=1)
    STATE[id(model)] = cache
    return tokens

# %% wrong: tokens as text
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return " ".join(map(str, whole(model, prompt, new_tokens, choose, chunk)[0]))

# %% wrong: tokens as floats
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return whole(model, prompt, new_tokens, choose, chunk).astype(float)

# %% wrong: chunk of the prompt's length fails
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    if chunk and chunk >= np.shape(prompt)[1]:
        raise ValueError("chunk")
    return whole(model, prompt, new_tokens, choose, chunk)

# %% wrong: chunk of one becomes two
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    return whole(model, prompt, new_tokens, choose, max(chunk, 2) if chunk else None)

# %% wrong: stops at token 0
def generate(model, prompt, new_tokens, choose, chunk=None, whole=generate):
    result = whole(model, prompt, new_tokens, choose, chunk)
    ends = np.flatnonzero((result[:, np.shape(prompt)[1]:] == 0).any(axis=0))
    return result[:, : np.shape(prompt)[1] + ends[0] + 1] if len(ends) else result

# %% wrong: one new token at a time only
def cached_attention(query, key, value, cache, whole=cached_attention):
    if cache is not None:
        query, key, value = (np.asarray(part)[:, :, -1:] for part in (query, key, value))
    return whole(query, key, value, cache)

# %% wrong: a cache of scores' width, T by T mask pasted on the right -> runs over the chunk alone
def cached_attention(query, key, value, cache):
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    if cache is not None:
        key, value = np.concatenate([cache[0], key], axis=2), np.concatenate([cache[1], value], axis=2)
    T, S = query.shape[2], key.shape[2]
    shown = np.zeros((T, S), dtype=bool)
    shown[:, S - T :] = np.tri(T, dtype=bool)
    scores = np.where(shown, query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value, (key, value)

# %% wrong: choose asked of all positions
def generate(model, prompt, new_tokens, choose, chunk=None):
    tokens = np.asarray(prompt)
    P = tokens.shape[1]
    if P + new_tokens > model.context_length:
        raise ValueError("too long")
    cache = None
    for start in range(0, P, chunk or P):
        logits, cache = model.read(tokens[:, start : start + (chunk or P)], cache)
    for i in range(new_tokens):
        if i > 0:
            logits, cache = model.read(tokens[:, -1:], cache)
        tokens = np.concatenate([tokens, choose(logits)[:, -1:]], axis=1)
    return tokens
