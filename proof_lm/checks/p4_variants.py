"""Problem set P4 variants: a GPT-style model, and parameters counted by formula for three architectures."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from proof_lm.checks import gpt_variant
from proof_lm.checks.core import Case, Mistake, Property, kind
from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.general import refuses
from proof_lm.checks.gpt_variant import HIDDEN_MISTAKES, LOGIT_MISTAKES, Variant
from proof_lm.checks.layer_properties import (
    Kind,
    Sizes,
    all_learn,
    any_length,
    future_hidden,
    known_weights,
    parameters_known,
    training_is_evaluation,
)
from proof_lm.checks.p4_torch_block import new_id, token_ids
from proof_lm.checks.parameter_counts import COUNT_MISTAKES, COUNTS, parameter_count
from proof_lm.probes import Answer

GPT_LESSON = "lesson 06, Three architectures, counted"
COUNT_LESSON = "lesson 06, Three architectures, counted"


# The model


def _kind(compute) -> Kind:
    return Kind(
        arguments=lambda s: [s["V"], s["C"], s["L"], s["d"], s["h"]],
        draw=token_ids,
        change=new_id,
        roles=gpt_variant.roles,
        compute=compute,
        right=(Variant(),),
        lesson=GPT_LESSON,
    )


LOGITS = _kind(lambda recipe, w, ids, s: recipe.logits(ids, w, s))
STATES = _kind(lambda recipe, w, ids, s: recipe.hidden(ids, w, s))


def gpt_properties(table: Sequence[Sizes], long: Sequence[Sizes], gain: float) -> tuple[Property, ...]:
    """Of GPTStyleLM(V, C, L, d, h), on these sizes; T is at most C."""
    logits = "Logits are the head's, with its bias, on what forward_hidden gives."
    states = "Embedding plus position, pre-norm blocks with a ReLU MLP of width 4 d, then the final norm."
    holds = "Two tables for tokens (embedding and untied head with bias), one for positions, L blocks, a final norm."
    first = table[0]
    return (
        known_weights(LOGITS, table, LOGIT_MISTAKES, gains=(1.0, gain), name="logits under known weights", meaning=logits),
        known_weights(STATES, table, HIDDEN_MISTAKES, method="forward_hidden", name="states under known weights",
                      meaning=states),
        future_hidden(LOGITS, long),
        parameters_known(LOGITS, table, holds),
        all_learn(LOGITS, table[:1], "V"),
        any_length(LOGITS, first, [(3, 2), (1, 1), (2, first["C"])], "V"),
        training_is_evaluation(LOGITS, table[:1]),
        _impossible_sizes(first),
    )  # fmt: skip


def _impossible_sizes(s: Sizes) -> Property:
    def cases(rng: Generator) -> list[Case]:
        whole = [s["V"], s["C"], s["L"], s["d"], s["h"]]
        odd = [[*whole[:4], s["d"] - 1], [*whole[:3], 10, 4]]
        longer = token_ids(rng, s | {"T": s["C"] + 1})
        call = (whole, LOGITS.setting(rng), longer)
        return [
            *(Case(f"sizes {tuple(sizes)}", ((sizes,),), "layers.build") for sizes in odd),
            Case(f"T = {s['C'] + 1}, context_length = {s['C']}", (call,), "layers.outputs"),
        ]

    meaning = "n_heads must divide d_model, and an input be no longer than the context: ValueError."
    return refuses(cases, error="ValueError", name="impossible sizes are refused", meaning=meaning, lesson=GPT_LESSON)


# The counts

_RANGES = {
    "d_model": (2, 40), "d_ff": (5, 150), "n_layers": (2, 9), "vocab_size": (50, 400), "context_length": (11, 300),
}  # fmt: skip
_SMALL = {"d_model": (1, 4), "d_ff": (3, 9), "n_layers": (2, 4), "vocab_size": (5, 12), "context_length": (3, 9)}
_KEYWORDS = {
    "numpy_block": ("d_model", "num_heads", "d_ff"),
    "prooflm": ("vocab_size", "context_length", "n_layers", "d_model", "n_heads", "d_ff"),
    "gpt": ("vocab_size", "context_length", "n_layers", "d_model", "n_heads"),
}


def count_properties(examples: int, small: bool = False) -> tuple[Property, ...]:
    """Of parameter_count, with so many random sizes for each architecture; small ones can be counted by hand."""
    unknown = [
        Case(f"architecture {n!r}", (({"d_model": 8}, n),), "call_keywords") for n in ("transformer", "", "GPT-")
    ]
    return (
        *(_counts(architecture, examples, _SMALL if small else _RANGES) for architecture in COUNTS),
        refuses(lambda rng: unknown, error="ValueError", name="unknown architectures are refused", lesson=COUNT_LESSON,
                meaning="A name that is none of the three raises ValueError."),
    )  # fmt: skip


def _counts(architecture: str, examples: int, ranges: dict[str, tuple[int, int]]) -> Property:
    def cases(rng: Generator) -> list[Case]:
        made = []
        for _ in range(examples):
            sizes = {name: int(rng.integers(*ranges.get(name, (2, 4)))) for name in _KEYWORDS[architecture]}
            heads = next(name for name in sizes if name.endswith("heads"))
            sizes["d_model"] *= 2 * sizes[heads]  # heads divide it, and are even wide
            text = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            made.append(Case(text, ((sizes, architecture),), "call_keywords"))
        return made

    def judge(case: Case, values: list) -> str | None:
        sizes, name = case.calls[0]
        count = np.asarray(values[0])
        if count.dtype.kind not in "iu" or count.size != 1:
            return f"a whole number (int) was expected, {kind(values[0])} came"
        off = int(count.item()) - parameter_count(name, **sizes)
        return f"the count is too {'large' if off > 0 else 'small'}" if off else None

    def explains(mistake: Mistake, case: Case, answers: list[Answer]) -> bool:
        sizes, name = case.calls[0]
        planted = mistake.candidate(name, **sizes)
        return answers[0].value == planted != parameter_count(name, **sizes)

    meaning = f'Every number that training changes in "{architecture}", each once.'
    return Property(
        f"parameters of {architecture}", meaning, cases, judge, "exact", COUNT_LESSON, COUNT_MISTAKES, explains=explains
    )


# What a student sees

EXERCISES = (
    PublicExercise(
        "P4.24",
        "GPTStyleLM",
        gpt_properties(
            [{"B": 2, "T": 5, "V": 11, "C": 7, "L": 2, "d": 6, "h": 3}],
            [{"B": 2, "T": 4, "V": 11, "C": 7, "L": 2, "d": 6, "h": 3}],
            2.0,
        ),
        (
            (
                "parameters are missing or too many",
                "Embedding (V, d), positions (C, d), in every block two norms, the projections of attention and an MLP of\n"
                "d to 4 d and back, then one norm and nn.Linear(d, V). Blocks stand in nn.ModuleList.",
            ),
            (
                "the states are off",
                "Add the first T rows of the position table to the embeddings. Blocks are pre-norm as in P4.14, but with\n"
                "ReLU. forward_hidden ends with the final norm.",
            ),
            (
                "the states are right and the logits are not",
                "forward(ids) is head(forward_hidden(ids)): no softmax, a matrix of its own, and its bias.",
            ),
        ),
    ),
    PublicExercise(
        "P4.25",
        "parameter_count",
        count_properties(2, small=True),
        (
            (
                "the count is too small by a multiple of d",
                "Norms have a scale and a shift, 2 d each. Biases: four of d in attention, d_ff and d in the MLP.",
            ),
            (
                "one block is right and the model is not",
                "Around the blocks: the token table, the final norm, and what the architecture adds. A tied head is the\n"
                "token table once more, so it counts nothing; an untied one counts again, and its bias too.",
            ),
            (
                "you want to know which term is off",
                "Build the model and print name, shape and numel of named_parameters() beside your terms.",
            ),
        ),
    ),
)  # fmt: skip
