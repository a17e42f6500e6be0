"""The share of theorems that a model proves: it writes, the checker judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import torch

from proof_lm.model import ProofLM
from proof_lm.proofs import Line, Theorem, decode, encode, is_proof, theorems
from proof_lm.proofs.checker import END
from proof_lm.proofs.tokenizer import IDS

STRIDE = 24  # tokens written between looks at which proofs are complete


def prove(model: ProofLM, statements: Sequence[Theorem], **sampling) -> list[str]:
    """For each theorem the text that the model continues it with, up to `end` or to the context's limit.

    `sampling` goes to `generate`; by default each token is the likeliest. Theorems of equal length are
    written side by side.
    """
    sampling = {"temperature": 0} | sampling
    by_length: dict[int, list[int]] = defaultdict(list)
    prompts = [encode(f"{theorem}\n") for theorem in statements]
    for number, prompt in enumerate(prompts):
        by_length[len(prompt)].append(number)
    written = [""] * len(prompts)
    limit = model.config.context_length
    for length, unfinished in by_length.items():
        tokens = torch.tensor([prompts[number] for number in unfinished])
        while unfinished and tokens.shape[1] < limit:
            tokens = model.generate(tokens, min(STRIDE, limit - tokens.shape[1]), **sampling)
            for number, row in zip(unfinished, tokens[:, length:].tolist(), strict=True):
                written[number] = decode(row[: row.index(IDS[END]) + 1] if IDS[END] in row else row)
            rows = [row for row, number in enumerate(unfinished) if not written[number].endswith(END)]
            unfinished, tokens = [unfinished[row] for row in rows], tokens[rows]
    return written


def checked(model: ProofLM, examples: Sequence[tuple[Theorem, list[Line]]], **sampling) -> dict[int, tuple[int, int]]:
    """By level: how many of the theorems the model's own proof proves, and of how many."""
    return counted(examples, prove(model, [theorem for theorem, _ in examples], **sampling))


def counted(examples: Sequence[tuple[Theorem, list[Line]]], proofs: Sequence[str]) -> dict[int, tuple[int, int]]:
    """By level: how many of the proofs prove their theorem, and of how many."""
    results: dict[int, list[bool]] = defaultdict(list)
    for (theorem, lines), proof in zip(examples, proofs, strict=True):
        results[len(lines)].append(is_proof(theorem, proof))
    return {level: (sum(proved), len(proved)) for level, proved in sorted(results.items())}


def share(counts: dict[int, tuple[int, int]]) -> float:
    """The share over all levels."""
    return sum(proved for proved, _ in counts.values()) / sum(asked for _, asked in counts.values())


def held_out(split: str, count: int, seed: int, **options) -> list[tuple[Theorem, list[Line]]]:
    """The first `count` theorems of a split; options as in `theorems`."""
    return list(islice(theorems(split, seed, **options), count))
