# %% setup
import numpy as np

def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1.0, s)

def causal_mask(time):
    if time < 1:
        raise ValueError("time must be positive")
    return np.tri(time, dtype=bool)

def split_heads(values, heads):
    values = np.asarray(values)
    time, width = values.shape
    if width % heads:
        raise ValueError("heads must divide the width")
    return values.reshape(time, heads, width // heads).transpose(1, 0, 2)

def merge_heads(values):
    values = np.asarray(values)
    heads, time, width = values.shape
    return values.transpose(1, 0, 2).reshape(time, heads * width)

def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = row_softmax(np.where(causal_mask(len(hidden)), scores, -np.inf))
    merged = merge_heads(weights @ v)
    return merged @ wo, weights, merged

def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    centred = values - values.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(values.var(axis=-1, keepdims=True) + epsilon) + beta

def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ w2 + b2

def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *projections = attention_weights
    g2, b2, *layers = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, b1), *projections, heads)[0]
    return values + feed_forward(layer_norm(values, g2, b2), *layers)

# %% right: a loop over blocks
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    token_ids = np.asarray(token_ids)
    hidden = token_embedding[token_ids] + positional_embedding[: len(token_ids)]
    for attention_weights, feed_forward_weights in blocks:
        hidden = decoder_block(hidden, attention_weights, feed_forward_weights, heads)
    return hidden @ output_projection

# %% right: reduce and one-hot
from functools import reduce
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    one_hot = np.eye(token_embedding.shape[0])[list(token_ids)]
    x = one_hot @ token_embedding + positional_embedding[np.arange(len(token_ids))]
    return np.dot(reduce(lambda y, b: decoder_block(y, b[0], b[1], heads), blocks, x), output_projection)

# %% right: recursion over blocks
def run(hidden, blocks, heads):
    return run(decoder_block(hidden, *blocks[0], heads), blocks[1:], heads) if blocks else hidden

def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    rows = [token_embedding[token] + positional_embedding[t] for t, token in enumerate(token_ids)]
    return np.einsum("td,dv->tv", run(np.array(rows), blocks, heads), output_projection)

# %% wrong: no positions -> positions were not added
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: positions by id -> looked up by token id
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + np.resize(positional_embedding, token_embedding.shape)[ids]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: last positions -> last rows of the table
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[-len(ids) :]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: all positions
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: positions from one -> step 0 gets row 0
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + np.roll(positional_embedding, -1, axis=0)[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: only the first block -> only the first block
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks[:1]:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: only the last block -> only the last block
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks[-1:]:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: blocks reversed -> reverse order
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks[::-1]:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: first block repeated -> used in every block
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *blocks[0], heads)
    return x @ output_projection

# %% wrong: blocks all read the embeddings -> last block had an effect
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]; y = x
    for b in blocks:
        x = decoder_block(y, *b, heads)
    return x @ output_projection

# %% wrong: blocks twice
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks + blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: residual around blocks
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = x + decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: final norm -> this model has no final norm
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return layer_norm(x, 1.0, 0.0) @ output_projection

# %% wrong: probabilities -> probabilities came
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return row_softmax(x @ output_projection)

# %% wrong: no projection -> the hidden states came
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x

# %% wrong: tied table -> token embedding was used
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ token_embedding.T

# %% wrong: last position only -> logits of one position
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return (x @ output_projection)[-1]

# %% wrong: argmax
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return (x @ output_projection).argmax(-1)

# %% wrong: one head -> heads has no effect
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, 1)
    return x @ output_projection

# %% wrong: scaled embeddings -> scaled by the root of d
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] * np.sqrt(token_embedding.shape[1]) + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: norm between blocks
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = layer_norm(decoder_block(x, *b, heads), 1.0, 0.0)
    return x @ output_projection

# %% wrong: ids sorted
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    ids = np.sort(ids); x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: no blocks
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks[:0]:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: two blocks only
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for b in blocks[:2]:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: reversed in time
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]; x = x[::-1]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x[::-1] @ output_projection

# %% wrong: embeddings changed in place
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    token_embedding[ids] += positional_embedding[: len(ids)]
    x = token_embedding[ids]
    for b in blocks:
        x = decoder_block(x, *b, heads)
    return x @ output_projection

# %% wrong: blocks consumed -> changed in place
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    while blocks:
        x = decoder_block(x, *blocks.pop(0), heads)
    return x @ output_projection

# %% right: lists and a while loop, float32 tables
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.array([token_embedding[i] + positional_embedding[t] for t, i in enumerate(list(token_ids))], dtype=np.float64)
    k = 0
    while k < len(blocks):
        x = decoder_block(x, blocks[k][0], blocks[k][1], heads=heads); k += 1
    return np.einsum("td,dv->tv", x, output_projection)

# %% right: a class, logits as nested lists
class Model:
    def __call__(self, token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
        ids = np.asarray(token_ids)
        x = np.take(token_embedding, ids, axis=0) + np.take(positional_embedding, np.arange(ids.size), axis=0)
        for attention, mlp in blocks:
            x = decoder_block(x, attention, mlp, heads)
        return (x @ output_projection).tolist()
tiny_transformer_forward = Model()

# %% right: padded to the context and cut back
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    T = len(token_ids); C = len(positional_embedding)
    ids = np.concatenate([np.asarray(token_ids), np.zeros(C - T, dtype=int)])
    x = np.asarray(token_embedding)[ids] + positional_embedding
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
    return (x @ output_projection)[:T]

# %% wrong: positions subtracted
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)] - np.asarray(positional_embedding)[: len(token_ids)]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: positions added before every block
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    p = np.asarray(positional_embedding)[: len(token_ids)]
    x = np.asarray(token_embedding)[np.asarray(token_ids)]
    for a, f in blocks: x = decoder_block(x + p, a, f, heads)
    return (x if blocks else x + p) @ output_projection

# %% wrong: positions added at the end
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return (x + np.asarray(positional_embedding)[: len(token_ids)]) @ output_projection

# %% wrong: position zero for all
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)] + positional_embedding[0]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: attention and MLP of neighbouring blocks mixed
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)] + np.asarray(positional_embedding)[: len(token_ids)]
    for k, (a, _) in enumerate(blocks): x = decoder_block(x, a, blocks[k - 1][1], heads)
    return x @ output_projection

# %% wrong: log-probabilities -> log-probabilities came
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)] + np.asarray(positional_embedding)[: len(token_ids)]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return np.log(row_softmax(x @ output_projection))

# %% wrong: logits centred
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.asarray(token_embedding)[np.asarray(token_ids)] + np.asarray(positional_embedding)[: len(token_ids)]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    y = x @ output_projection
    return y - y.max(-1, keepdims=True)

# %% wrong: repeated tokens share a state
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids); first = np.array([list(ids).index(i) for i in ids])
    x = np.asarray(token_embedding)[ids] + np.asarray(positional_embedding)[first]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: ids modulo ten
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids) % 10 % len(token_embedding)
    x = np.asarray(token_embedding)[ids] + np.asarray(positional_embedding)[: len(ids)]
    for a, f in blocks: x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: positions counted from one -> step 0 gets row 0
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    p = np.concatenate([positional_embedding, positional_embedding[:1]])
    x = token_embedding[ids] + p[1 : len(ids) + 1]
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: embeddings times the root of d -> scaled by the root of d
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] * np.sqrt(token_embedding.shape[1]) + positional_embedding[: len(ids)]
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: log-softmax at the end -> log-probabilities came
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
    logits = x @ output_projection
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

# %% wrong: every block reads the embeddings, the last one wins -> last block had an effect
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for a, f in blocks:
        y = decoder_block(x, a, f, heads)
    return y @ output_projection

# %% wrong: positions looked up by the ids -> looked up by token id
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[ids % len(positional_embedding)]
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
    return x @ output_projection

# %% wrong: return inside the loop -> only the first block
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.asarray(token_ids)
    x = token_embedding[ids] + positional_embedding[: len(ids)]
    for a, f in blocks:
        x = decoder_block(x, a, f, heads)
        return x @ output_projection

# %% right: zip of ids and positions
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    x = np.array([token_embedding[i] + p for i, p in zip(token_ids, positional_embedding)])
    for block in blocks:
        x = decoder_block(x, *block, heads)
    return np.dot(x, output_projection)

# %% right: projection folded into an einsum, take
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    ids = np.array(token_ids, dtype=int)
    x = np.take(token_embedding, ids, axis=0) + np.take(positional_embedding, range(ids.size), axis=0)
    stack = list(blocks)
    for i in range(len(stack)):
        x = decoder_block(x, attention_weights=stack[i][0], feed_forward_weights=stack[i][1], heads=heads)
    return np.einsum("td,dv->tv", x, output_projection)

# %% right: float32 stream, lists out
def tiny_transformer_forward(token_ids, token_embedding, positional_embedding, blocks, output_projection, heads):
    t = len(token_ids)
    x = (token_embedding[list(token_ids)] + positional_embedding[:t]).astype(np.float32)
    for a, f in blocks:
        x = decoder_block(x, tuple(np.float32(w) for w in a), tuple(np.float32(w) for w in f), heads)
    return (x @ np.float32(output_projection)).tolist()
