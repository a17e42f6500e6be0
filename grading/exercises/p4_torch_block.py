"""What problem set P4 torch block is worth, and the sizes on which it is decided: larger than the public ones."""

from grading.exercise import Exercise, parts
from proof_lm.checks import p4_torch_block as public


def _sizes(*names: str, rows: tuple[tuple[int, ...], ...]) -> list[dict[str, int]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


BLOCKS = _sizes("B", "T", "d", "h", "d_ff", rows=((3, 7, 12, 2, 20), (2, 5, 8, 4, 9), (1, 33, 6, 1, 10)))
LONG_BLOCKS = _sizes("B", "T", "d", "h", "d_ff", rows=((3, 5, 8, 2, 9), (2, 33, 6, 3, 7)))
ATTENTIONS = _sizes("B", "T", "d", "h", rows=((3, 7, 12, 2), (2, 5, 16, 4), (1, 33, 6, 1)))
LONG_ATTENTIONS = _sizes("B", "T", "d", "h", rows=((3, 5, 8, 2), (2, 33, 12, 3)))
CHUNKS = (
    (ATTENTIONS[0], [4, 3]), (ATTENTIONS[0], [1] * 7), (ATTENTIONS[1], [2, 1, 2]), (ATTENTIONS[2], [20, 1, 12]),
)  # fmt: skip
MODELS = _sizes("B", "T", "V", "d", rows=((3, 7, 17, 6), (2, 5, 9, 12), (1, 33, 13, 5)))
LONG_MODELS = _sizes("B", "T", "V", "d", rows=((3, 5, 17, 6), (2, 33, 9, 4)))

EXERCISES = (
    Exercise("P4.14", "TransformerDecoderBlock", parts(
        public.block_properties(BLOCKS, LONG_BLOCKS, 4.0), (4, 1, 2, 1, 2, 1, 1, 1, 1, 1))),
    Exercise("P4.15", "RotaryCachedAttention", parts(
        public.rotary_properties(ATTENTIONS, LONG_ATTENTIONS, CHUNKS, 4.0), (3, 3, 1, 2, 1, 1, 1, 1, 1, 1, 1))),
    Exercise("P4.16", "TwoBlockLM", parts(
        public.model_properties(MODELS, LONG_MODELS), (3, 1, 1, 1, 1, 1, 1, 1))),
)  # fmt: skip
