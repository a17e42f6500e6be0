"""Generation: the cache of keys and values, one token read without modules, the choice of the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from proof_lm.rotary import turn_

if TYPE_CHECKING:
    from proof_lm.model import DecoderConfig, ProofLM, TransformerDecoderBlock

ACTIVATIONS = (nn.GELU, nn.ReLU, nn.SiLU)
KNOWN = (nn.Embedding, nn.Linear, nn.LayerNorm, nn.Identity, nn.Dropout, nn.ModuleList, *ACTIVATIONS)


class KVCache:
    """Keys and values of one block for the steps read so far, in memory taken once: (B, 2, h, context, d_h)."""

    def __init__(self, config: DecoderConfig, batch: int, like: Tensor) -> None:
        """Room for a whole context of `batch` rows, with dtype and device of `like`."""
        self.memory = like.new_empty(batch, 2, config.n_heads, config.context_length, config.head_width)
        self.length = 0

    def extend(self, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        """Append (B, 2, h, T, d_h); keys and values of everything read so far, (B, h, S, d_h) each."""
        rows, steps = len(keys_values), keys_values.shape[3]
        if rows != len(self.memory):  # copy_ would spread one row over all
            raise ValueError(f"cache: expected room for {rows} rows, got {len(self.memory)}")
        self.memory.narrow(3, self.length, steps).copy_(keys_values)
        self.length += steps
        return self.memory.narrow(3, 0, self.length).unbind(1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; each module gets its own mode back, whatever happens."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def without_onednn() -> Iterator[None]:
    """PyTorch's own kernels for a while: setting up oneDNN's GELU takes longer than a single token's GELU."""
    enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = enabled


def choose_token(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, generator: torch.Generator
) -> Tensor:
    """One token for each row: logits (B, V) -> (B,). Raises ValueError unless logits are finite."""
    if not math.isfinite(logits.sum()):
        raise ValueError("logits: expected finite numbers, got NaN or infinity; the weights have diverged")
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits.float().cpu()  # the same draw on every device
    weights = (logits / max(temperature, 1e-30)).softmax(dim=-1)  # below 1e-30 logits might overflow
    if top_k is None and top_p is None:
        return _draw(weights, generator)
    weights, ids = weights.sort(dim=-1, descending=True, stable=True)  # of equals the lowest id first
    weights = weights[:, :top_k]  # (B, min(k, V))
    if top_p is not None:
        likelier = weights.cumsum(dim=-1) - weights  # what the tokens before this one weigh
        weights = weights.masked_fill(likelier >= top_p * weights.sum(dim=-1, keepdim=True), 0.0)
    return ids.gather(-1, _draw(weights, generator)[:, None]).squeeze(-1)


def _draw(weights: Tensor, generator: torch.Generator) -> Tensor:
    """An index of each row (B, n) with probability in proportion to its weight: (B,).

    One uniform number a row, looked up in the running sum; weights of zero are never met.
    """
    reached = weights.cumsum(dim=-1, dtype=torch.float64)
    point = torch.rand(len(weights), 1, dtype=torch.float64, generator=generator) * reached[:, -1:]
    return torch.searchsorted(reached, point, right=True).squeeze(-1)


def has_only_known_parts(model: nn.Module) -> bool:
    """Whether `token_reader` computes what the model does: no foreign module, no hook, no method replaced."""
    return all(
        (type(module) in KNOWN or type(module).__module__ == "proof_lm.model")
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and not any(map(callable, vars(module).values()))
        for module in model.modules()
    )


def token_reader(model: ProofLM, cache: list[KVCache]) -> Callable[[Tensor], Tensor]:
    """A function that reads one more token of each row, (B,) -> logits (B, V), and extends the cache.

    It computes what the modules compute, but a module's call costs more than its arithmetic on a single token;
    and products with few rows are faster with weights laid out by input, of which it holds copies.
    """
    config = model.config
    blocks = [_block_reader(*pair) for pair in zip(model.blocks, cache, strict=True)]
    final_norm, head = _norm(model.final_norm), _affine(model.lm_head)
    embedding, position_embedding = model.token_embedding.weight, model.position_embedding
    turns = None if config.position == "learned" else torch.view_as_complex(model.rotations)

    def read(token_ids: Tensor) -> Tensor:
        position = cache[0].length
        x = embedding[token_ids]  # (B, d)
        if position_embedding is not None:
            x = x + position_embedding.weight[position]
        turn = None if turns is None else turns[position]  # (d_h / 2,)
        for block in blocks:
            x = block(x, turn)
        return head(final_norm(x))

    return without_onednn()(read) if embedding.dtype == torch.float32 else read  # half precision needs it


def _block_reader(block: TransformerDecoderBlock, cache: KVCache) -> Callable[[Tensor, Tensor | None], Tensor]:
    attention, mlp, heads = block.attention, block.mlp, block.attention.num_heads
    qkv, out, up, down = (_affine(layer) for layer in (attention.qkv, attention.out, mlp.up, mlp.down))
    norm1, norm2, activation = _norm(block.norm1), _norm(block.norm2), mlp.activation.forward

    def attend(x: Tensor, turn: Tensor | None) -> Tensor:
        B, d = x.shape
        parts = qkv(x).view(B, 3, heads, 1, d // heads)
        if turn is not None:
            turn_(parts.narrow(1, 0, 2), turn)
        keys, values = cache.extend(parts.narrow(1, 1, 2))  # (B, h, S, d_h) each
        return out(F.scaled_dot_product_attention(parts.select(1, 0), keys, values).view(B, d))

    def feed_forward(x: Tensor) -> Tensor:
        return down(activation(up(x)))

    def post_norm(x: Tensor, turn: Tensor | None) -> Tensor:
        x = norm1(x + attend(x, turn))
        return norm2(x + feed_forward(x))

    def pre_norm(x: Tensor, turn: Tensor | None) -> Tensor:
        x = x + attend(norm1(x), turn)
        return x + feed_forward(norm2(x))

    return post_norm if block.norm == "post" else pre_norm


def _affine(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    weight, bias = layer.weight.t().contiguous(), layer.bias
    return (lambda x: x @ weight) if bias is None else (lambda x: torch.addmm(bias, x, weight))


def _norm(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    if isinstance(layer, nn.Identity):
        return layer.forward
    shape, weight, bias, epsilon = layer.normalized_shape, layer.weight, layer.bias, layer.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
