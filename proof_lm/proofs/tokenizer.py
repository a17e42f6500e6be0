"""Tokens of theorems and proofs: every word and line break is one token."""

from __future__ import annotations

from proof_lm.proofs.checker import END, RULES
from proof_lm.proofs.formulas import ATOMS, CONNECTIVES, ProofError

LINE_BREAK = "\n"
TOKENS = (LINE_BREAK, END, "|-", "(", ")", *CONNECTIVES, *ATOMS, *RULES)
IDS = {token: index for index, token in enumerate(TOKENS)}


def encode(text: str) -> list[int]:
    """The ids of the text's tokens; `ProofError` names a word that has none."""
    words = text.replace(LINE_BREAK, f" {LINE_BREAK} ").split(" ")
    unknown = [word for word in words if word and word not in IDS]
    if unknown:
        raise ProofError(f"text: {unknown[0]!r} is not one of the {len(TOKENS)} tokens of the proof language")
    return [IDS[word] for word in words if word]


def decode(ids: list[int]) -> str:
    """The text whose tokens have these ids; `decode(encode(text)) == text` for text spaced as `show` does it."""
    return " ".join(TOKENS[index] for index in ids).replace(f" {LINE_BREAK} ", LINE_BREAK)
