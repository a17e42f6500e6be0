"""What a trained model must beat: the counts of an n-gram, and a model whose tokens do not see each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from proof_lm.model import ProofLM
from proof_lm.proofs import Theorem, decode, encode
from proof_lm.proofs.checker import END
from proof_lm.proofs.tokenizer import IDS


class NGram:
    """The likeliest next token after the longest context of at most `order - 1` tokens that was ever seen."""

    def __init__(self, sequences: Iterable[Sequence[int]], order: int = 6) -> None:
        self.order = order
        self.counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for sequence in sequences:
            for place, token in enumerate(sequence):
                for length in range(min(order - 1, place) + 1):
                    self.counts[tuple(sequence[place - length : place])][token] += 1

    def next_token(self, tokens: Sequence[int]) -> int:
        for length in range(min(self.order - 1, len(tokens)), -1, -1):
            if seen := self.counts.get(tuple(tokens[len(tokens) - length :])):
                return seen.most_common(1)[0][0]
        raise ValueError("sequences: expected at least one token to count")

    def prove(self, statements: Sequence[Theorem], limit: int) -> list[str]:
        """For each theorem the likeliest continuation, up to `end` or `limit` tokens in all."""
        proofs = []
        for theorem in statements:
            tokens = encode(f"{theorem}\n")
            start = len(tokens)
            while len(tokens) < limit and tokens[-1] != IDS[END]:
                tokens.append(self.next_token(tokens))
            proofs.append(decode(tokens[start:]))
        return proofs


class NoAttention(nn.Module):
    """Stands where attention stood and adds nothing: each position is left with its own token."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.num_heads = attention.num_heads

    def forward(self, x: Tensor, positions: Tensor | None, cache: object) -> Tensor:
        return torch.zeros_like(x)


def remove_attention(model: ProofLM) -> ProofLM:
    """The model itself, every block's attention replaced by `NoAttention`; generate it without a cache."""
    for block in model.blocks:
        block.attention = NoAttention(block.attention)
    return model
