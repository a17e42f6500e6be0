"""Rotary positions in PyTorch: queries and keys turn by an angle that grows with their position.

Axes: B batch, T time, h heads, d_h head width. Source: Su et al., "RoFormer" (2021), on interleaved pairs.
"""

from typing import Any

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """values themselves if float32 or wider, else a float32 copy."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def rotations(positions: Tensor, head_width: int, base: float = 10_000.0) -> Tensor:
    """Cosine and sine of position * base^(-2p / d_h) for each pair p: (T,) -> (T, d_h / 2, 2) float32.

    Angles are taken in float64: at position 2,047 float32 may be off by 1e-4. ValueError if d_h is odd.
    """
    if head_width % 2:
        raise ValueError(f"head_width: expected an even number, since rope turns pairs, got {head_width}")
    exponents = torch.arange(0, head_width, 2, dtype=torch.float64, device="cpu") / head_width
    angles = torch.outer(positions.cpu().double(), base**-exponents)  # (T, d_h / 2)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).to(positions.device, torch.float32)


def turn_(heads: Tensor, turns: Tensor) -> None:
    """Turn the pairs (0, 1), (2, 3), ... of the last axis in place: heads (..., d_h).

    A pair read as a complex number turns by one multiplication, in float32 or wider, with turns (..., d_h / 2),
    complex numbers of length 1 that broadcast against the pairs.
    """
    wide = at_least_float32(heads)  # heads itself, unless in half precision
    torch.view_as_complex(wide.view(*wide.shape[:-1], -1, 2)).mul_(turns)
    if wide is not heads:
        heads.copy_(wide)


class TurnedQKV(torch.autograd.Function):
    """qkv (B, T, 3, h, d_h) -> query, key, value (B, h, T, d_h), query and key turned where they lie.

    Turning back is the gradient of turning, so that nothing has to be kept for backward.
    """

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, rotation: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(rotation)
        turn_(qkv[:, :, :2], torch.view_as_complex(rotation)[:, None, None])
        return tuple(part.transpose(1, 2) for part in qkv.unbind(2))

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        (rotation,) = ctx.saved_tensors
        grad = torch.stack([part.transpose(1, 2) for part in upstream], dim=2)  # (B, T, 3, h, d_h)
        turn_(grad[:, :, :2], torch.view_as_complex(rotation).conj()[:, None, None])
        return grad, None
