"""What problem set P4 backward is worth, and the sizes on which it is decided: larger than the public ones."""

import inspect

from grading.exercise import Earlier, Exercise, parts
from proof_lm import gradients
from proof_lm.checks import p4_backward as public

HEAD = """from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proof_lm import row_softmax
from proof_lm.attention import causal_attention

Gradients = tuple

"""


def after(*names: str) -> Earlier:
    """Right versions of these functions, which earlier exercises asked for."""
    return Earlier(names, HEAD + "\n\n".join(inspect.getsource(getattr(gradients, name)) for name in names))


EXERCISES = (
    Exercise("P4.17", "output_projection_loss_and_grad", parts(
        public.projection_properties([(1, 2, 3), (7, 5, 4), (33, 9, 2)]), (1.5, 2, 0.5))),
    Exercise("P4.18", "finite_difference_gradient", parts(
        public.difference_properties([(7,), (4, 3), (2, 3, 4)], (0.3, 1e-2, 1e-4)), (3, 1, 1))),
    Exercise("P4.19", "gradient_check", parts(
        public.gradient_check_properties([(6,), (3, 5), (2, 4, 3)]), (1, 1, 1, 1, 1)),
        after("finite_difference_gradient")),
    Exercise("P4.20", "softmax_backward", parts(
        public.softmax_properties([(9,), (7, 7), (2, 3, 5, 5), (33, 33)]), (3, 1, 1))),
    Exercise("P4.21", "attention_backward", parts(
        public.attention_properties([(5, 4, 3), (33, 2, 6), (2, 7, 3, 5), (2, 3, 9, 4, 5)]), (2, 2, 2, 1)),
        after("softmax_backward")),
    Exercise("P4.22", "layer_norm_backward", parts(
        public.layer_norm_properties([(9,), (33, 7), (2, 5, 4), (2, 3, 5, 6)], (1e-5, 0.3)), (2.5, 1.5, 1.5, 1, 0.5))),
    Exercise("P4.23", "decoder_block_backward", parts(
        public.block_properties([(5, 8, 2, 7), (7, 12, 3, 20), (33, 6, 1, 5)]), (4, 3, 2.5, 0.5)),
        after("softmax_backward", "attention_backward", "layer_norm_backward")),
)  # fmt: skip
