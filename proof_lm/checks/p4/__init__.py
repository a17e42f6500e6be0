"""Problem set P4 as a student sees it: the properties on a few small cases, and the hints.

Graders draw larger, secret cases from the same makers.
"""

from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.p4.causality import causality_properties
from proof_lm.checks.p4.decoder import decoder_properties
from proof_lm.checks.p4.stability import stability_properties

CAUSALITY_HINTS = (
    (
        "False comes for attention that is causal",
        "Row j itself and the rows after it may change: compare only rows before j. Take a fresh copy of\n"
        "hidden for every j, since a row that stays replaced changes the outputs after it.",
    ),
    (
        "True comes for attention that leaks",
        "One position is not enough: let j run over all of them. With shape (B, T, d) the position is the\n"
        "axis before the last; `hidden[..., j, :]` reaches it with and without a batch axis.",
    ),
    (
        "True still comes for one kind of leak",
        "If attention normalises its rows, an added constant changes nothing: draw the new row with\n"
        "rng.normal. If only the values leak, differences are small: allow for rounding (1e-9) and no more.",
    ),
)
STABILITY_HINTS = (
    (
        "a configuration that vanishes is chosen",
        "The logarithm of a ratio below 1 is negative. A tenth and ten times are equally far from the first\n"
        "norm only if you look at the size of the logarithm, not at its sign.",
    ),
    (
        "a configuration that strays and comes back is chosen",
        "Look at all depths. The worst moment of a configuration counts, so a maximum over depths gives one\n"
        "number for each configuration; the choice is a minimum over configurations.",
    ),
    (
        "a configuration that stays near 1 is chosen",
        "Stable means near its own start: divide by the first norm of the same configuration. Return the\n"
        "name, not the number; `min` takes a key function.",
    ),
)
DECODER_HINTS = (
    (
        "future_ok is False though the model is causal",
        "The last token was changed, so the last step's logits do change. Logits are (B, T, V): which slice\n"
        "leaves out the last step of every sequence?",
    ),
    (
        "tied_ok is True though the weights are copies",
        "`torch.equal` compares numbers, and `embeddings_are_tied` is only what the model says of itself. A\n"
        "tensor's `data_ptr()` tells where its numbers are stored.",
    ),
    (
        "a check passes though there is NaN or a small difference",
        "`nan > tolerance` is False, so 'no difference above the tolerance' lets NaN through; ask whether\n"
        "all entries are equal instead. For the reload, compare every step.",
    ),
)

EXERCISES = (
    PublicExercise(
        "P4.1", "future_token_intervention", causality_properties((5, 3), (2, 4, 6)), CAUSALITY_HINTS
    ),
    PublicExercise(
        "P4.2", "most_stable_configuration", stability_properties((3, 5), (2, 6)), STABILITY_HINTS
    ),
    PublicExercise("P4.3", "decoder_checks", decoder_properties((2, 5, 7)), DECODER_HINTS),
)
