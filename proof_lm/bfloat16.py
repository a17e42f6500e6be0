"""Attention and loss in bfloat16 on CPUs, forward and backward written out.

torch's fused attention has a backward that has no use for the bfloat16 units of CPUs, which makes it slower than in
float32; batched products have. Its loss copies all logits to float32 and back. What is computed here is the same.
Axes: B batch, T time, h heads, d_h head width, N positions, V vocabulary.
"""

import math
from typing import Any

import torch
from torch import Tensor

from proof_lm.rotary import turn_

QUERIES = 128  # in a block of attention
POSITIONS = 256  # whose float32 logits the loss holds at a time: they stay in the processor's cache


def pays_for(values: Tensor) -> bool:
    """Whether what follows from these values is best computed here; autocast would mix the dtypes."""
    on_cpu = values.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return on_cpu and values.dtype == torch.bfloat16 and values.requires_grad


class CausalAttention(torch.autograd.Function):
    """qkv (B, T, 3, h, d_h) bfloat16 -> attended (B, T, h, d_h); rotation (T, d_h / 2, 2) turns q and k, None nothing.

    A block of queries meets the keys up to its own end alone, so that of long sequences nearly half the work falls
    away. It keeps these weights for backward, at most B h T².
    """

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, rotation: Tensor | None) -> Tensor:
        _, T, _, h, d_h = qkv.shape
        heads = qkv.permute(2, 0, 3, 1, 4).contiguous()  # (3, B, h, T, d_h): one copy for all products to come
        if rotation is not None:
            turn_(heads[:2], torch.view_as_complex(rotation))
        q, k, v = heads.flatten(1, 2)  # (B h, T, d_h) each
        future = q.new_full((T, T), -math.inf).triu(1)
        attended, weights = torch.empty_like(q), []
        for start, end in _blocks(T):
            hidden = future[start:end, :end].expand(len(q), -1, -1)
            weights.append(torch.baddbmm(hidden, q[:, start:end], k[:, :end].mT, alpha=d_h**-0.5).softmax(dim=-1))
            torch.bmm(weights[-1], v[:, :end], out=attended[:, start:end])
        ctx.save_for_backward(heads, rotation, *weights)
        return attended.unflatten(0, (-1, h)).transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        heads, rotation, *weights = ctx.saved_tensors
        q, k, v = heads.flatten(1, 2)
        upstream = upstream.transpose(1, 2).flatten(0, 1)  # (B h, T, d_h)
        grad = torch.empty_like(heads)
        grad_q, grad_k, grad_v = grad.flatten(1, 2)
        scaled_v = v * v.shape[-1] ** -0.5  # with the factor of the scores, as all is linear in it
        for seen in reversed(weights):  # (B h, queries of the block, keys up to its end)
            end = seen.shape[2]
            start = end - seen.shape[1]
            part = upstream[:, start:end]
            grad_seen = part @ scaled_v[:, :end].mT
            # private to torch, which is pinned: written out it takes two more passes over all weights
            grad_scores = torch._softmax_backward_data(grad_seen, seen, -1, seen.dtype)
            torch.bmm(grad_scores, k[:, :end], out=grad_q[:, start:end])
            if end == q.shape[1]:  # this block, the first to come, writes all that the others add to
                torch.bmm(grad_scores.mT, q[:, start:end], out=grad_k)
                torch.bmm(seen.mT, part, out=grad_v)
            else:
                grad_k[:, :end] += grad_scores.mT @ q[:, start:end]
                grad_v[:, :end] += seen.mT @ part
        if rotation is not None:
            turn_(grad[:2], torch.view_as_complex(rotation).conj())  # turning back is the gradient of turning
        return grad.permute(1, 3, 0, 2, 4).contiguous(), None


def _blocks(T: int) -> list[tuple[int, int]]:
    """First query and end of each block; one block in a compiled graph, since that is to serve any T."""
    if torch.compiler.is_compiling():
        return [(0, T)]
    return [(start, min(start + QUERIES, T)) for start in range(0, T, QUERIES)]


class CrossEntropy(torch.autograd.Function):
    """Sum of -log softmax(logits)[label] over the positions whose label is not negative, in float32.

    logits (N, V) bfloat16, labels (N,). The gradient is taken with the loss, while the softmax is at hand.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        grad, total = torch.empty_like(logits), logits.new_zeros((), dtype=torch.float32)
        for part, label, grad_part in zip(*(rows.split(POSITIONS) for rows in (logits, labels, grad)), strict=True):
            kept = (label >= 0)[:, None]
            label = label.clamp(min=0)[:, None]
            log_softmax = part.log_softmax(dim=-1, dtype=torch.float32)
            total -= log_softmax.gather(1, label).masked_fill(~kept, 0.0).sum()
            softmax = log_softmax.exp_()
            torch.mul(softmax.scatter_add_(1, label, softmax.new_full(label.shape, -1.0)), kept, out=grad_part)
        ctx.save_for_backward(grad)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (grad,) = ctx.saved_tensors
        return grad * upstream, None
