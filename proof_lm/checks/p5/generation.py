"""P5.5: attention through a cache, and a loop that generates with one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from proof_lm.checks.core import Case, Mistake, Property, difference, kind
from proof_lm.checks.general import behaves, on_any_numbers, refuses
from proof_lm.checks.p5.manners import CLOSE, about, one_of
from proof_lm.probes.language_model import Chooser, TinyLM

LESSON = "lesson 08, The cache of keys and values"
LOOP_LESSON = "lesson 08, Generating with the cache"
Cache = tuple[NDArray, NDArray] | None
Sizes = tuple[int, int, int, int, int]  # B, h, T, d_h, d_v


@dataclass(frozen=True)
class Attention:
    """cached_attention: the right way unless told otherwise."""

    mask: str = "offset"  # "from zero", "none", "new only", "strict", "one more"
    joins: str = "after"  # "before", "time", "cache only", "new only"
    scale: str = "query"  # "none", "value", "keys", "width"
    keeps: str = "all"  # "new", "old", "swapped"
    softmax: int = -1

    def __call__(self, query: ArrayLike, key: ArrayLike, value: ArrayLike, cache: Cache) -> tuple[NDArray, Cache]:
        """query, key (B, h, T, d_h), value (B, h, T, d_v), cache of S steps -> output (B, h, T, d_v), cache of S + T."""
        new = [np.asarray(part, dtype=float) for part in (query, key, value)]
        query, steps = new[0], new[0].shape[-2]
        old = [part[..., :0, :] for part in new[1:]] if cache is None else [np.asarray(part, float) for part in cache]
        keys, values = (self.join(before, now) for before, now in zip(old, new[1:], strict=True))
        seen, total = 0 if self.joins == "new only" else total_before(old), keys.shape[-2]
        scores = query @ keys.swapaxes(-2, -1) / self.divisor(query, values, total)
        shown = self.shown(steps, seen, total)
        scores = np.where(shown, scores, -np.inf)
        peak = scores.max(axis=self.softmax, keepdims=True)
        weights = np.exp(scores - np.where(np.isfinite(peak), peak, 0.0))
        weights = weights / np.maximum(weights.sum(axis=self.softmax, keepdims=True), 1e-300)
        kept = {"new": (new[1], new[2]), "old": tuple(old), "swapped": (values, keys)}.get(self.keeps, (keys, values))
        return weights @ values, kept

    def join(self, before: NDArray, now: NDArray) -> NDArray:
        if self.joins == "cache only" and before.shape[-2]:
            return before
        if self.joins == "new only":
            return now
        return np.concatenate([now, before] if self.joins == "before" else [before, now], axis=-2)

    def divisor(self, query: NDArray, values: NDArray, total: int) -> float:
        width = {"none": 1, "value": values.shape[-1], "keys": total, "width": query.shape[-1] * query.shape[1]}
        return width.get(self.scale, query.shape[-1]) ** 0.5

    def shown(self, steps: int, seen: int, total: int) -> NDArray:
        """Which of the keys each new query sees: (T, S + T)."""
        query, key = np.arange(steps)[:, None], np.arange(total)
        last = {"from zero": query, "none": total + 0 * query, "strict": seen + query - 1, "one more": seen + query + 1,
                "cache only": np.maximum(seen - 1, 0) + 0 * query}.get(self.mask, seen + query)  # fmt: skip
        return (key <= last) & (key >= seen) if self.mask == "new only" else key <= last


def total_before(old: Sequence[NDArray]) -> int:
    return old[0].shape[-2]


cached_attention = Attention()

CHUNK_ALONE = "attention runs over the chunk alone: each of its queries sees all that is in the cache, too"
WRONG_CACHED = (
    Mistake(
        "mask without offset",
        "the mask counts from the chunk's start: with S steps in the cache, new query i sees keys 0 to S + i",
        Attention(mask="from zero"),
    ),
    Mistake(
        "no mask",
        "later tokens of the same chunk are seen: a chunk of several tokens needs a mask among its own",
        Attention(mask="none"),
    ),
    Mistake("cache unused", CHUNK_ALONE, Attention(joins="new only", keeps="new")),
    Mistake("cache hidden", CHUNK_ALONE, Attention(mask="new only")),
    Mistake(
        "itself hidden",
        "a query does not see its own position: key S + i is visible to query i",
        Attention(mask="strict"),
    ),
    Mistake("one too many", "each query sees one key too many", Attention(mask="one more")),
    Mistake(
        "new hidden",
        "only the cache is seen: the chunk's own keys and values belong to it, up to each query",
        Attention(mask="cache only"),
    ),
    Mistake(
        "joined in front",
        "new keys and values were put in front of the old ones: they go behind, in the order of reading",
        Attention(joins="before"),
    ),
    Mistake("not scaled", "scores are not divided by the root of d_h", Attention(scale="none")),
    Mistake(
        "scaled by d_v",
        "scores are divided by the root of the values' width: take the queries'",
        Attention(scale="value"),
    ),
    Mistake(
        "scaled by keys",
        "scores are divided by the root of the number of keys: d_h belongs there",
        Attention(scale="keys"),
    ),
    Mistake(
        "scaled by d",
        "scores are divided by the root of the whole width: one head's width d_h",
        Attention(scale="width"),
    ),
    Mistake(
        "over queries", "softmax runs over the queries: it runs over the keys, the last axis", Attention(softmax=-2)
    ),
)
WRONG_CACHE = (
    Mistake(
        "cache unused and not kept",
        "the cache is not used: it holds the last chunk alone, and attention runs over that",
        Attention(joins="new only", keeps="new"),
    ),
    Mistake("new only", "the cache holds the last chunk alone: it holds all that was read", Attention(keeps="new")),
    Mistake(
        "not extended", "the cache came back as it was: append the chunk's keys and values", Attention(keeps="old")
    ),
    Mistake("swapped", "keys and values are swapped in the cache", Attention(keeps="swapped")),
    Mistake(
        "joined in front",
        "new keys and values were put in front of the old ones: they go behind, in the order of reading",
        Attention(joins="before"),
    ),
)


def attention_properties(
    sizes: Sequence[Sizes], chunks: Sequence[tuple[Sizes, list[int]]], longest: int
) -> tuple[Property, ...]:
    """Of cached_attention on these sizes, with a cache of at most so many steps, and in chunks whose lengths make T."""

    def cases(rng: Generator, *, seen: bool, steps: int | None = None, size: float = 1.0) -> list[Case]:
        made = []
        for size_ in sizes:
            call = _call(rng, size_, int(rng.integers(2, longest + 1)) if seen else 0, steps, size)
            past = call[3][0].shape[2] if seen else 0
            label = f"B, h, d_h, d_v = {size_[:2] + size_[3:]}, {past} in the cache, {call[0].shape[2]} new"
            made.append(Case(label, (call,)))
        return made

    def read(rng: Generator) -> list[Case]:
        made = []
        for size, lengths in chunks:
            query, key, value, _ = _call(rng, size, 0, None, 1.5)
            label = f"B, h, T, d_h, d_v = {size}, in chunks of {lengths}"
            made.append(Case(label, ((query, key, value, lengths),), "language_model.in_chunks"))
        return made

    def one(rng: Generator) -> tuple:
        return _call(rng, sizes[0], 3, None, 1.0)

    def output(name: str, meaning: str, cases: Callable, **close: Any) -> Property:
        return one_of(0, cached_attention, cases, name=name, meaning=meaning, lesson=LESSON,
                       mistakes=WRONG_CACHED, **(close or CLOSE))  # fmt: skip

    far = {**CLOSE, "rtol": 1e-3, "atol": 1e-3}
    return about(0, (
        output("without a cache it is causal attention", "cache None: nothing was read before, and query i sees keys 0 to i.",
               partial(cases, seen=False)),
        output("one token sees all that was read", "A single new query looks at every key in the cache, and at its own.",
               partial(cases, seen=True, steps=1)),
        output("a chunk of several sees the cache and itself", "New query i sees keys 0 to S + i: all S in the cache, and of "
               "the chunk those up to its own.", partial(cases, seen=True)),
        Property("in chunks it is what it is at once", "The cache saves work and changes nothing, however a sequence is cut.",
                 read, _chunks_right, CLOSE["tolerance"], LESSON, WRONG_CACHED + WRONG_CACHE),
        Property("the cache holds every step, and old ones stay", "(keys, values) of all S + T steps in order; a cache that "
                 "was handed out before is never changed.", read, _cache_right, CLOSE["tolerance"], LESSON, WRONG_CACHE),
        output("large scores are survived", "However large the scores, weights are finite.",
               partial(cases, seen=True, size=40.0), **far),
        on_any_numbers(cached_attention, one, LESSON, name="cached_attention"),
        behaves(cached_attention, partial(cases, seen=True), LESSON, name="cached_attention"),
    ))  # fmt: skip


def _call(rng: Generator, size: Sizes, seen: int, steps: int | None, scale: float) -> tuple:
    batch, heads, time, width, value_width = size
    time = steps or time

    def draw(length: int, last: int, by: float = 1.0) -> NDArray:
        return by * rng.normal(size=(batch, heads, length, last))

    cache = (draw(seen, width, scale), draw(seen, value_width)) if seen else None
    return draw(time, width, scale), draw(time, width, scale), draw(time, value_width), cache


def _chunks_right(case: Case, values: list) -> str | None:
    query, key, value, lengths = case.calls[0]
    wanted = cached_attention(query, key, value, None)[0]
    for length, output in zip(lengths, values[0]["outputs"], strict=True):
        if np.ndim(output) != 4 or np.shape(output)[2] != length:
            return f"{length} outputs were expected for a chunk of {length}, {kind(output)} came"
    return difference(np.concatenate(values[0]["outputs"], axis=2), wanted, CLOSE["rtol"], CLOSE["atol"])


def _cache_right(case: Case, values: list) -> str | None:
    _, key, value, lengths = case.calls[0]
    for end, then, now in zip(np.cumsum(lengths), values[0]["then"], values[0]["now"], strict=True):
        if len(then) != 2:
            return f"a cache of keys and values was expected, {len(then)} parts came"
        for name, held, later, whole in zip(("keys", "values"), then, now, (key, value), strict=True):
            text = difference(held, whole[:, :, :end], CLOSE["rtol"], CLOSE["atol"])
            if text:
                return f"{name} after {end} steps: {text}"
            if difference(later, held, 0, 0):
                return f"a later call changed the {name} of a cache handed out before: make new arrays"
    return None


# The loop


@dataclass(frozen=True)
class Loop:
    """generate: the right way unless told otherwise."""

    reads: str = "new"  # "prompt's end again", "all", "all without cache", "no cache", "last two"
    position: int = -1  # whose logits are chosen from
    chunks: str = "in turn"  # "whole", "forgotten", "first", "ones"
    returns: str = "all"  # "new", "one more", "one less"
    checks: bool = True
    one_row: bool = False
    chooses: bool = True

    def __call__(
        self, model: TinyLM, prompt: ArrayLike, new_tokens: int, choose: Callable, chunk: int | None = None
    ) -> NDArray:
        """prompt (B, P) -> (B, P + new_tokens)."""
        tokens = np.asarray(prompt)
        wanted = tokens.shape[1] + new_tokens
        if self.checks and wanted > model.context_length:
            raise ValueError(f"prompt and new tokens: {wanted} are more than a context of {model.context_length}")
        chunk = {"whole": None, "ones": 1}.get(self.chunks, chunk) or tokens.shape[1]
        cache = logits = None
        for start in range(0, tokens.shape[1], chunk) if new_tokens else ():
            logits, cache = model.read(tokens[:, start : start + chunk], None if self.chunks == "forgotten" else cache)
        count = new_tokens + {"one more": 1, "one less": -1}.get(self.returns, 0)
        for place in range(count):
            if place or self.reads == "prompt's end again":
                logits, cache = self.read_on(model, tokens, cache)
            picked = choose(logits[:, self.position]) if self.chooses else logits[:, self.position].argmax(axis=-1)
            picked = np.repeat(picked[:1], len(picked)) if self.one_row else picked
            tokens = np.concatenate([tokens, picked[:, None]], axis=1)
        return tokens[:, np.shape(prompt)[1] :] if self.returns == "new" else tokens

    def read_on(self, model: TinyLM, tokens: NDArray, cache: Any) -> tuple[NDArray, Any]:
        if self.reads in ("all", "last two"):
            return model.read(tokens if self.reads == "all" else tokens[:, -2:], cache)
        if self.reads == "all without cache":
            return model.read(tokens)
        return model.read(tokens[:, -1:], None if self.reads == "no cache" else cache)


generate = Loop()

WRONG_LOOP = (
    Mistake(
        "the prompt's end again",
        "the prompt's last token is read twice: its logits came with the prompt and give the first new token",
        Loop(reads="prompt's end again"),
    ),
    Mistake(
        "no cache",
        "the cache is not handed on: each new token is read as if it stood at the start",
        Loop(reads="no cache"),
    ),
    Mistake(
        "everything again",
        "everything is read again at each step: with a cache only the new token is read",
        Loop(reads="all without cache"),
    ),
    Mistake(
        "everything into the cache",
        "the whole sequence is read again behind what the cache already holds: read the new token alone",
        Loop(reads="all"),
    ),
    Mistake(
        "last two", "a token is read twice: the one before the newest is in the cache already", Loop(reads="last two")
    ),
    Mistake(
        "first position",
        "the logits of the first position were used: the last one knows the whole prompt",
        Loop(position=0),
    ),
    Mistake("one row for all", "every row got the first row's token: choose gives one for each", Loop(one_row=True)),
    Mistake("new only", "the new tokens came alone: the result begins with the prompt", Loop(returns="new")),
    Mistake("one more", "there is one token too many", Loop(returns="one more")),
    Mistake(
        "one less",
        "there is one token too few: the prompt's last logits give the first new one",
        Loop(returns="one less"),
    ),
    Mistake("chunk ignored", "the argument chunk has no effect: the prompt was read at once", Loop(chunks="whole")),
    Mistake(
        "chunks apart",
        "each chunk of the prompt was read without the cache of the one before",
        Loop(chunks="forgotten"),
    ),
    Mistake("chunks of one", "the prompt was read token by token: read `chunk` tokens in a call", Loop(chunks="ones")),
    Mistake("own choice", "the argument choose has no effect: the likeliest token was taken", Loop(chooses=False)),
)
Model = tuple[int, int, int, int, int]  # V, d, heads, blocks, context


def loop_properties(models: Sequence[Model], batches: Sequence[int]) -> tuple[Property, ...]:
    """Of generate with models of these sizes and prompts of so many rows."""

    def made(draw: Callable[[Generator, Model, int], dict[str, list[dict]]]) -> Callable[[Generator], list[Case]]:
        """A case for each model and label; `draw` gives, by label, the orders that one model gets in a row."""

        def cases(rng: Generator) -> list[Case]:
            found = []
            for size, rows in zip(models, batches, strict=True):
                for label, asked in draw(rng, size, rows).items():
                    said = "; ".join(map(_said, asked))
                    call = (_weights(rng, size), size[2], asked)
                    found.append(Case(f"{label}: {rows} rows, {said}", (call,), "language_model.generated"))
            return found

        return cases

    def any_order(rng: Generator, size: Model, rows: int, **fixed: Any) -> dict:
        length = int(rng.integers(3, size[4] // 2 + 1))
        return _order(rng, size, rows, length, int(rng.integers(2, size[4] - length + 1)), **fixed)

    def likeliest(rng: Generator, size: Model, rows: int) -> dict:
        return {"likeliest token": [any_order(rng, size, rows)]}

    def full(rng: Generator, size: Model, rows: int) -> dict:
        length = int(rng.integers(3, size[4] // 2 + 1))
        return {"a full context": [_order(rng, size, rows, length, size[4] - length)]}

    def drawn(rng: Generator, size: Model, rows: int) -> dict:
        return {"drawn": [any_order(rng, size, rows, seed=int(rng.integers(99)))]}

    def in_chunks(rng: Generator, size: Model, rows: int) -> dict:
        """Chunks of one, of several, of the whole prompt, of more than that."""
        asked = [any_order(rng, size, rows) for _ in range(4)]
        for number, order in enumerate(asked):
            length = order["prompt"].shape[1]
            order["chunk"] = (int(rng.integers(2, length)), 1, length, length + 2)[number]
        return {"in chunks": asked}

    def in_a_row(rng: Generator, size: Model, rows: int) -> dict:
        return {"three orders to one model": [any_order(rng, size, rows) for _ in range(3)]}

    def edges(rng: Generator, size: Model, rows: int) -> dict:
        context = size[4]
        shapes = {"nothing new": (4, 0), "one new": (4, 1), "a prompt of one": (1, 4), "one before the end": (context - 1, 1),
                  "a full prompt": (context, 0)}  # fmt: skip
        return {label: [_order(rng, size, rows, *shape)] for label, shape in shapes.items()}

    def beyond(rng: Generator, size: Model, rows: int) -> dict:
        shapes = {"a full prompt": (size[4], 1), "too many new": (3, size[4])}
        return {f"context of {size[4]}, {label}": [_order(rng, size, rows, *shape)] for label, shape in shapes.items()}

    def tokens_right(name: str, meaning: str, draw: Callable) -> Property:
        return Property(name, meaning, made(draw), _tokens_right, "exact", LOOP_LESSON, WRONG_LOOP)

    return about(1, (
        tokens_right("with the cache the same tokens as without", "Reading everything anew at each step gives the same, "
                     "row by row, only slower.", likeliest),
        Property("each token is read once", "The prompt in one call, then one token a call: what is in the cache is not read "
                 "again.", made(full), _reads_right, "exact", LOOP_LESSON, WRONG_LOOP),
        Property("a long prompt is read in chunks", "With `chunk` the prompt is read in pieces of so many tokens, the last "
                 "one shorter; the result is the same.", made(in_chunks),
                 lambda case, values: _tokens_right(case, values) or _reads_right(case, values), "exact", LOOP_LESSON, WRONG_LOOP),
        tokens_right("choose decides, once for each new token", "choose gets the last position's logits (B, V) and draws "
                     "one token for each row.", drawn),
        tokens_right("calls in a row do not know of each other", "A new call starts with no cache: another prompt, "
                     "another result.", in_a_row),
        tokens_right("nothing new, one new, a full context", "At the edges too: a prompt and its new tokens may fill the "
                     "context.", edges),
        refuses(made(beyond), error="ValueError", name="more than the context is refused", lesson=LOOP_LESSON,
                meaning="If prompt and new tokens together exceed model.context_length, ValueError is raised."),
        behaves(generate, made(likeliest), LOOP_LESSON, name="generate", arguments=("model", "model", "prompt")),
    ))  # fmt: skip


def _order(rng: Generator, size: Model, rows: int, length: int, new: int, seed: int | None = None) -> dict:
    """What `generate` is asked for: a prompt, how many new tokens, how they are chosen; no chunks."""
    return {"prompt": rng.integers(size[0], size=(rows, length)), "new": new, "seed": seed, "chunk": None}


def _said(order: dict) -> str:
    chunk = f" in chunks of {order['chunk']}" if order["chunk"] else ""
    return f"prompt of {order['prompt'].shape[1]}{chunk}, {order['new']} new"


def _weights(rng: Generator, size: Model) -> dict:
    vocabulary, width, _, count, context = size
    blocks = [tuple(rng.normal(scale=1.5 * width**-0.5, size=(width, width)) for _ in range(4)) for _ in range(count)]
    embeddings = {
        "token_embedding": rng.normal(size=(vocabulary, width)),
        "position_embedding": rng.normal(size=(context, width)),
    }
    return {**embeddings, "blocks": blocks, "head": rng.normal(size=(width, vocabulary))}


def _uncached(weights: dict, heads: int, order: dict) -> NDArray:
    """What is generated when everything is read anew for every token."""
    model, choose, tokens = TinyLM(weights, heads), Chooser(order["seed"]), order["prompt"]
    for _ in range(order["new"]):
        picked = choose(model.read(tokens)[0][:, -1])
        tokens = np.concatenate([tokens, picked[:, None]], axis=1)
    return tokens


def _tokens_right(case: Case, values: list) -> str | None:
    weights, heads, orders = case.calls[0]
    for number, (order, found) in enumerate(zip(orders, values[0], strict=True), start=1):
        tokens = np.asarray(found["tokens"])
        text = difference(tokens, _uncached(weights, heads, order), 0, 0)
        if not text and tokens.dtype.kind not in "iu":
            text = f"whole numbers were expected, {tokens.dtype} came"
        if not text and len(found["asked"]) != order["new"]:
            text = f"choose was to be asked {order['new']} times, it was asked {len(found['asked'])} times"
        if text:
            return f"call {number}: {text}" if len(orders) > 1 else text
    return None


def _reads_right(case: Case, values: list) -> str | None:
    """The prompt's pieces, then single tokens; the last new token may be read or not, since nothing follows."""
    orders = case.calls[0][2]
    for number, (order, found) in enumerate(zip(orders, values[0], strict=True), start=1):
        rows, length = order["prompt"].shape
        chunk = order["chunk"] or length
        pieces = [[rows, min(chunk, length - start)] for start in range(0, length, chunk)]
        wanted = pieces + [[rows, 1]] * (order["new"] - 1)
        if found["reads"] not in (wanted, [*wanted, [rows, 1]]):
            said = [shape[1] for shape in found["reads"]]
            text = f"calls of read with {[shape[1] for shape in wanted]} tokens were expected, {said} came"
            return f"call {number}: {text}" if len(orders) > 1 else text
    return None
