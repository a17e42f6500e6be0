"""Generation: the cache of keys and values, one token read without modules, the choice of the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
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
    """A function that reads one more token of each row, (B,) -> logits (B, V), after the steps that the cache holds.

    It computes what the modules compute, where an operation's call costs more than its arithmetic: so it makes few
    calls, and what depends on no token once. It goes on from copies, with keys that lie transposed as a single query
    reads them fastest, and leaves the cache as it is. For use in `torch.inference_mode`.
    """
    config, memory, position = model.config, cache[0].memory, cache[0].length
    shape = (len(cache), len(memory), config.n_heads)
    keys = memory.new_empty(*shape, config.head_width, config.context_length)  # (L, B, h, d_h, context)
    values = memory.new_empty(*shape, config.context_length, config.head_width)
    for layer, old in enumerate(cache):
        old_keys, old_values = old.memory.narrow(3, 0, position).unbind(1)
        keys[layer, ..., :position], values[layer, ..., :position, :] = old_keys.mT, old_values
    all_keys, all_values = keys.flatten(1, 2), values.flatten(1, 2)  # (L, B h, ...)
    turns = None if config.position == "learned" else torch.view_as_complex(model.rotations)
    blocks = [_block_reader(block, memory, turns is not None) for block in model.blocks]
    final_norm, head = _norm(model.final_norm), _affine(model.lm_head)
    embedding, position_embedding = model.token_embedding.weight, model.position_embedding

    def read(token_ids: Tensor) -> Tensor:
        nonlocal position
        x = embedding[token_ids]  # (B, d)
        if position_embedding is not None:
            x = x + position_embedding.weight[position]
        turn = None if turns is None else turns[position]  # (d_h / 2,)
        places = zip(keys.select(-1, position), values.select(-2, position), strict=True)  # (B, h, d_h) each
        position += 1
        seen = zip(all_keys.narrow(-1, 0, position), all_values.narrow(-2, 0, position), strict=True)  # with this token
        for block, place, steps in zip(blocks, places, seen, strict=True):
            x = block(x, turn, place, steps)
        return head(final_norm(x))

    return without_onednn()(read) if embedding.dtype == torch.float32 else read  # half precision needs it


def _block_reader(block: TransformerDecoderBlock, memory: Tensor, turns: bool) -> Callable[..., Tensor]:
    """A block for one token of each row: x (B, d), its turn, the places of its key and value, all keys and values."""
    B, _, h, _, head_width = memory.shape
    parts = memory.new_empty(B, 3, h, head_width)  # written anew for each token; what follows are views
    qkv, (query, key, value) = parts.view(B, -1), parts.unbind(1)
    turn_both = _turner(parts[:, :2]) if turns else None
    scale = memory.new_ones(3, block.d_model)
    scale[0] = head_width**-0.5  # of queries, so that scores need not be divided
    weight, bias = _weights(block.attention.qkv, scale.flatten())
    up, activation = _affine(block.mlp.up), block.mlp.activation.forward
    add_attended, add_activated = _affine_onto(block.attention.out), _affine_onto(block.mlp.down)
    norm1, norm2 = _norm(block.norm1), _norm(block.norm2)

    def attend(x: Tensor, turn: Tensor | None, place: tuple, steps: tuple) -> Tensor:
        torch.mm(x, weight, out=qkv).add_(bias)
        if turn_both is not None:
            turn_both(turn)
        place[0].copy_(key)
        place[1].copy_(value)
        keys, values = steps
        scores = torch.bmm(query.reshape(B * h, 1, head_width), keys)  # (B h, 1, S)
        return torch.bmm(scores.softmax(dim=-1), values).view(B, -1)

    def post_norm(x: Tensor, *where: Any) -> Tensor:
        x = norm1(add_attended(x, attend(x, *where)))
        return norm2(add_activated(x, activation(up(x))))

    def pre_norm(x: Tensor, *where: Any) -> Tensor:
        x = add_attended(x, attend(norm1(x), *where))
        return add_activated(x, activation(up(norm2(x))))

    return post_norm if block.norm == "post" else pre_norm


def _turner(heads: Tensor) -> Callable[[Tensor], object]:
    """`turn_` for heads that stay in their place."""
    if heads.dtype not in (torch.float32, torch.float64):
        return lambda turn: turn_(heads, turn)
    return torch.view_as_complex(heads.unflatten(-1, (-1, 2))).mul_


def _weights(layer: nn.Linear, scale: Tensor | float = 1.0) -> tuple[Tensor, Tensor | float]:
    """Weight, copied to lie by input, with which products of few rows are faster, and bias; outputs times scale."""
    weight = (layer.weight.t() * scale).contiguous()
    return weight, 0.0 if layer.bias is None else layer.bias * scale


def _affine(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    weight, bias = _weights(layer)
    return lambda x: torch.mm(x, weight).add_(bias)  # faster than addmm, which spreads the bias first


def _affine_onto(layer: nn.Linear) -> Callable[[Tensor, Tensor], Tensor]:
    """The residual sum: the layer's output for y, added to x in place."""
    weight, bias = _weights(layer)
    return lambda x, y: x.addmm_(y, weight).add_(bias)


def _norm(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    if isinstance(layer, nn.Identity):
        return layer.forward
    shape, weight, bias, epsilon = layer.normalized_shape, layer.weight, layer.bias, layer.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
