"""What goes wrong in a decoder built with PyTorch: each mistake as the recipe that makes it, and its sentence.

They are compared with a student's answers in order, so the commonest come first.
"""

from proof_lm.checks.core import Mistake
from proof_lm.checks.layer_recipes import Recipe


def _both(name: str, message: str, **decisions: object) -> tuple[Mistake, ...]:
    """The mistake beside the exact and beside the tanh GELU."""
    return tuple(
        Mistake(f"{name}{form}", message, Recipe(**({"activation": gelu} | decisions)))
        for gelu, form in (("gelu", ""), ("gelu_tanh", ", tanh"))
    )


_MASKS = (
    ("no mask", "there is no mask: every query sees later keys", {"mask": "none"}),
    ("mask after softmax", "the mask comes after the softmax, so that rows no longer sum to one; add it to the scores",
     {"mask": "after"}),
    ("diagonal hidden", "the mask hides the diagonal too: a position must see itself; triu with diagonal=1",
     {"mask": "diagonal"}),
    ("mask turned round", "the mask is turned round: it hides the past and shows the future", {"mask": "past"}),
    ("zeros for the hidden", "hidden scores become 0, which still has a weight of exp(0); they need -inf",
     {"mask": "zero"}),
)  # fmt: skip
_SCORES = (
    ("scaled by the model width", "scores are divided by the root of d; the root of d_h belongs there",
     {"scale": "width"}),
    ("not scaled", "scores are not divided by the root of d_h", {"scale": "none"}),
    ("multiplied", "scores are multiplied by the root of d_h; divide", {"scale": "times"}),
    ("scaled by time", "scores are divided by the root of T; the root of d_h belongs there", {"scale": "time"}),
    ("softmax over queries", "softmax runs over the queries: columns sum to one, rows do not; dim=-1",
     {"softmax": "queries"}),
    ("softmax over heads", "softmax runs over the heads; it belongs over the keys, dim=-1", {"softmax": "heads"}),
    ("key as query", "the keys are used as queries too", {"query": "key"}),
    ("key as value", "the keys are used as values too", {"value": "key"}),
)  # fmt: skip
_HEADS = (
    ("one head", "all of d is one head: num_heads is not used", {"split": "one"}),
    ("view without transpose", "heads are cut by a view to (B, h, T, d_h), which mixes time and features: view to "
     "(B, T, h, d_h), then transpose(1, 2)", {"split": "view"}),
    ("neighbours to different heads", "neighbouring features go to different heads: view to (B, T, h, d_h), not "
     "(B, T, d_h, h)", {"split": "interleave"}),
    ("merged without transpose", "heads are merged without transpose(1, 2) back, which mixes positions",
     {"merge": "view"}),
    ("cut and merged by views", "heads are cut and merged by views alone, which mixes time and features",
     {"split": "view", "merge": "view"}),
    ("no output projection", "the merged heads leave without the output projection", {"out": False}),
)  # fmt: skip
_BRANCHES = (
    ("post-norm", "the norms come after the residual sums: pre-norm is x + f(norm(x))", {"norm": "post"}),
    ("norms on the branches", "the norms stand on what a branch gives: pre-norm is x + f(norm(x)), not x + norm(f(x))",
     {"norm": "branch"}),
    ("residual from the norm", "the residual adds the normalised input; add x itself", {"norm": "residual"}),
    ("no residual around attention", "the attention branch has no residual: x + attention(norm(x))",
     {"residual": "no first"}),
    ("no residual around the MLP", "the feed-forward branch has no residual: x + mlp(norm(x))",
     {"residual": "no second"}),
    ("parallel branches", "the feed-forward branch reads the block's input; it reads what attention left",
     {"residual": "parallel"}),
    ("input in the second residual", "the second residual adds the block's input; it adds what attention left",
     {"residual": "input twice"}),
    ("first norm unused", "attention reads x without its norm", {"norm": "none first"}),
    ("second norm unused", "the feed-forward branch reads x without its norm", {"norm": "none second"}),
    ("one norm twice", "one norm is used twice and the other never", {"norm": "first twice"}),
    ("normalised over time", "LayerNorm runs over time; it runs over the features, the last axis",
     {"norm": "over time"}),
    ("unbiased variance", "the variance divides by d - 1; LayerNorm's divides by d (unbiased=False)",
     {"norm": "unbiased"}),
    ("no epsilon to speak of", "epsilon is not the 1e-5 of LayerNorm", {"epsilon": 1e-12}),
    ("another epsilon", "epsilon is not the 1e-5 of LayerNorm: 1e-6 came", {"epsilon": 1e-6}),
    ("a larger epsilon", "epsilon is not the 1e-5 of LayerNorm: 1e-3 came", {"epsilon": 1e-3}),
)  # fmt: skip
_ACTIVATIONS = (
    ("relu", "the activation is ReLU; GELU was asked for", {"activation": "relu"}),
    ("silu", "the activation is SiLU; GELU was asked for", {"activation": "silu"}),
    ("no activation", "there is no activation between the two matrices of the MLP", {"activation": "none"}),
    (
        "activation last",
        "the activation comes after both matrices of the MLP; it belongs between them",
        {"activation": "after"},
    ),
)
_ROTATIONS = (
    ("not turned", "queries and keys are not turned: order within the past makes no difference", {"rotate": "no"}),
    ("halves for pairs", "pairs are (i, i + d_h / 2); here they are neighbours, (0, 1), (2, 3), …",
     {"rotate": "halves"}),
    ("values turned too", "the values are turned too; only queries and keys are", {"rotate": "values too"}),
    ("only queries turned", "only the queries are turned: keys need the same turn, or distance means nothing",
     {"rotate": "queries"}),
    ("keys turned backwards", "queries and keys turn in opposite directions", {"rotate": "backwards"}),
    ("turned before the split", "the turn comes before the heads are cut: every head has the same angles, from its "
     "own d_h", {"rotate": "before the split"}),
    ("another base", "the angles have another base than 10,000: 1,000", {"base": 1000.0}),
    ("exponent halved", "the exponent of pair p is -p / d_h; it is -2 p / d_h (or the base is 100, not 10,000)",
     {"base": 100.0}),
    ("exponent doubled", "the exponent of pair p is -4 p / d_h; it is -2 p / d_h: arange(0, d_h, 2) counts by two already",
     {"base": 1e8}),
    ("exponent from d", "the exponents are shares of d; they are shares of one head's width d_h", {"widths": "model"}),
)  # fmt: skip
_CACHES = (
    ("positions restart", "positions restart at 0 in every chunk: they go on where the cache ends",
     {"offset": "restarts"}),
    ("keys go on, queries restart", "only the keys' positions go on where the cache ends; the queries' restart",
     {"offset": "keys only"}),
    ("one late", "positions after the cache are off by one: the first is the cache's length", {"offset": "one late"}),
    ("turned twice", "cached keys are turned again at every call: store them turned or unturned, and turn once",
     {"offset": "turned twice"}),
    ("kept unturned", "keys are cached before they are turned, and the cached ones are never turned: turn first, then "
     "cache", {"offset": "kept unturned"}),
    ("cache ignored", "the cache is not read: a chunk sees itself alone", {"cache": "ignored"}),
    ("last chunk only", "the cache returned holds the last chunk alone: concatenate with what was there",
     {"cache": "last chunk"}),
    ("square mask", "the mask counts keys from 0 although the cache comes first: with S steps "
     "in the cache, query i of a chunk sees keys 0 to S + i", {"mask": "square"}),
    ("no mask within a chunk", "behind a cache there is no mask: within a chunk later keys are visible",
     {"mask": "first chunk"}),
)  # fmt: skip


def _turning(table: tuple, **more: object) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, text, Recipe(**({"rotate": "pairs"} | more | what))) for name, text, what in table)


BLOCK_MISTAKES = tuple(
    mistake
    for name, text, what in _MASKS + _SCORES + _HEADS + _BRANCHES + _ACTIVATIONS
    for mistake in (_both(name, text, **what)[: 1 if "activation" in what else 2])
)
ROTARY_MISTAKES = _turning(_ROTATIONS + _MASKS + _SCORES + _HEADS)
CACHE_MISTAKES = _turning(_CACHES)
GPT_MISTAKES = tuple(
    Mistake(name, text, Recipe(**({"activation": "relu"} | what)))
    for name, text, what in (
        *_MASKS,
        *_SCORES,
        *_HEADS,
        *_BRANCHES,
        ("gelu", "the activation is GELU; this variant has ReLU", {"activation": "gelu"}),
        ("gelu, tanh", "the activation is GELU; this variant has ReLU", {"activation": "gelu_tanh"}),
        *_ACTIVATIONS[2:],
    )
)
