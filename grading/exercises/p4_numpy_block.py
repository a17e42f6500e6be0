"""What problem set P4 numpy block is worth, and the sizes on which it is decided: larger than the public ones."""

import inspect

from grading.exercise import Earlier, Exercise, parts
from proof_lm import attention, block
from proof_lm.checks import p4_numpy_block as public
from proof_lm.checks.attention import Sizes

HEAD = "import numpy as np\nfrom numpy.typing import ArrayLike, NDArray\n\n"
# The right functions in the order in which the exercises ask for them.
RIGHT = (
    attention.row_softmax, attention.causal_mask, attention.single_head_attention, attention.split_heads,
    attention.merge_heads, attention.multi_head_attention, block.layer_norm, block.gelu, block.feed_forward,
    block.decoder_block, attention.batched_multi_head_attention, attention.rope, block.tiny_transformer_forward,
)  # fmt: skip

CORE = (attention.causal_attention, attention.blocked_causal_attention)  # what they call


def after(*names: str) -> Earlier:
    """The functions that exercises before the one for `names` asked for."""
    known = [function.__name__ for function in RIGHT]
    right = RIGHT[: known.index(names[0])] if names[0] in known else RIGHT
    source = [inspect.getsource(function) for function in (*CORE, *right)]
    return Earlier(tuple(function.__name__ for function in right), HEAD + "\n\n".join(source))


def exercise(number: int, name: str, properties: public.Properties, points: tuple[float, ...]) -> Exercise:
    """An exercise that is also judged beside right versions of all before it."""
    return Exercise(f"P4.{number}", name, parts(properties, points), after(*name.split(", ")))


EXERCISES = (
    Exercise("P4.4", "row_softmax, causal_mask", parts(
        public.softmax_and_mask_properties([(7, 5), (6,), (2, 3, 9), (2, 3, 4, 5), (33, 33)], (1, 2, 3, 17, 33)),
        (1, 2, 1, 1, 0.5, 0.5, 1.5, 0.5))),
    exercise(5, "single_head_attention", public.one_head_properties(
        [Sizes(5, 8, head_width=3, value_width=6), Sizes(9, 4, head_width=7), Sizes(33, 5, head_width=2, value_width=3)],
        [Sizes(11, 4, head_width=6), Sizes(6, 7)]), (0.5, 1, 0.5, 1.5, 2.5, 1, 0.5, 0.5)),
    exercise(6, "split_heads, merge_heads", public.split_and_merge_properties(
        [(5, 8, 2), (33, 15, 5), (4, 6, 1), (7, 6, 6)], [(5, 9, 2), (4, 6, 5), (8, 7, 4)]),
        (2.5, 0.5, 0.5, 0.5, 2, 0.5, 0.5)),
    exercise(7, "multi_head_attention", public.many_heads_properties(
        [Sizes(5, 8, heads=2), Sizes(7, 15, heads=5), Sizes(33, 12, heads=3), Sizes(6, 10, heads=1)],
        [Sizes(9, 12, heads=3), Sizes(5, 14, heads=7)]), (0.5, 1, 0.5, 1, 1, 3, 1, 0.5, 0.5)),
    exercise(8, "layer_norm", public.layer_norm_properties([(5, 8), (9,), (2, 3, 7), (2, 3, 4, 6), (33, 5)]),
        (1, 1, 2, 0.5, 0.5, 0.5, 0.5)),
    exercise(9, "gelu, feed_forward", public.mlp_properties(
        [(11,), (3, 7), (2, 3, 4, 5)], [((5, 4), 9), ((6,), 3), ((2, 3, 7), 12), ((33, 5), 14)]),
        (1, 1, 0.5, 0.5, 0.5, 2, 0.5, 0.5, 0.5)),
    exercise(10, "decoder_block", public.block_properties(
        [(5, 8, 11, 2), (7, 12, 20, 3), (33, 6, 5, 1), (4, 10, 3, 5)], [(9, 12, 7, 3), (33, 6, 10, 2)]),
        (1, 1.5, 1.5, 5, 0.5, 0.5)),
    exercise(11, "batched_multi_head_attention, rope", public.batch_and_rope_properties(
        [Sizes(5, 12, heads=3, batch=2), Sizes(33, 10, heads=2, batch=4), Sizes(6, 8, heads=4, batch=1)],
        [Sizes(5, 6, heads=3, batch=3), Sizes(4, 10, heads=2, batch=2)],
        [(7, 6), (2, 5, 4), (2, 3, 9, 8), (33, 2)], (10000.0, 300.0, 10.0)),
        (0.5, 0.5, 1, 3, 0.5, 0.5, 0.5, 0.5, 1, 2.5, 0.5, 0.5, 0.5)),
    exercise(12, "tiny_transformer_forward", public.transformer_properties(
        [(5, 11, 9, 8, 13, 2, 2), (7, 6, 12, 12, 10, 3, 3), (33, 17, 40, 6, 9, 1, 2), (4, 19, 4, 10, 7, 5, 1)],
        [(9, 11, 12, 6, 10, 3, 2)]), (2, 4, 1, 0.5, 0.5)),
    exercise(13, "masked_cross_entropy", public.loss_properties(
        [((5,), 7), ((3, 6), 11), ((2, 4, 9), 5), ((33,), 13)], [(2, 4, 6), (3, 5, 4)]),
        (2, 1, 1, 1, 1, 1, 1, 0.5, 0.5)),
)  # fmt: skip
