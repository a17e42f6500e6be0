"""Generation: the cache of keys and values, one token read without modules, the choice of the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from proof_lm.rotary import turn_

if TYPE_CHECKING:
    from proof_lm.model import DecoderConfig, ProofLM, TransformerDecoderBlock

ACTIVATIONS = (nn.GELU, nn.ReLU, nn.SiLU)
ROOM = 120  # steps by which a reader's memory grows: the more room between the keys of a head, the slower they are read
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
    in_training = [module for module in model.modules() if module.training]
    for module in in_training:
        module.training = False
    try:
        yield
    finally:
        for module in in_training:
            module.training = True


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
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, points: Tensor | None
) -> Tensor:
    """One token for each row: logits (B, V) -> (B,). Raises ValueError unless logits are finite.

    points (B, 1), float64 on the CPU and uniform in [0, 1), say where each row's draw falls; at temperature 0 None.
    """
    if not math.isfinite(logits.sum()):
        raise ValueError("logits: expected finite numbers, got NaN or infinity; the weights have diverged")
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits.to("cpu", torch.float32)  # the same draw on every device
    if temperature != 1:
        logits = logits / max(temperature, 1e-30)  # below that they might overflow
    weights = logits.softmax(dim=-1)
    if top_k is None and top_p is None:
        return _draw(weights, points)
    weights, ids = weights.sort(dim=-1, descending=True, stable=True)  # of equals the lowest id first
    weights = weights[:, :top_k]  # (B, min(k, V))
    if top_p is not None:
        likelier = weights.cumsum(dim=-1) - weights  # what the tokens before this one weigh
        weights = weights.masked_fill(likelier >= top_p * weights.sum(dim=-1, keepdim=True), 0.0)
    return ids.gather(-1, _draw(weights, points)[:, None]).squeeze(-1)


def _draw(weights: Tensor, points: Tensor) -> Tensor:
    """An index of each row (B, n) with probability in proportion to its weight: (B,).

    Each row's point is looked up in the running sum; weights of zero are never met.
    """
    reached = weights.cumsum(dim=-1, dtype=torch.float64)
    return torch.searchsorted(reached, points * reached[:, -1:], right=True).squeeze(-1)


def has_only_known_parts(model: nn.Module) -> bool:
    """Whether `token_reader` computes what the model does: no foreign module, no hook, no method replaced."""
    return all(
        (type(module) in KNOWN or type(module).__module__ == "proof_lm.model")
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and not any(map(callable, vars(module).values()))
        for module in model.modules()
    )


@contextmanager
def token_reader(model: ProofLM, cache: list[KVCache]) -> Iterator[Callable[[Tensor], Tensor]]:
    """A function that reads one more token of each row, (B,) -> logits (B, V), after the steps that the cache holds.

    It computes what the modules compute, where an operation's call costs more than its arithmetic: so it makes few
    calls, and what depends on no token once. It goes on from copies and leaves the cache as it is. For use in
    `torch.inference_mode`.
    """
    position, embedding, position_embedding = cache[0].length, model.token_embedding.weight, model.position_embedding
    steps, rows = _Steps(cache), len(cache[0].memory)
    turns = None if model.rotations is None else torch.view_as_complex(model.rotations).unbind()
    blocks = [_block_reader(block, rows) for block in model.blocks]
    final_norm, (to_logits, bias) = _norm(model.final_norm), _weights(model.lm_head)

    def read(token_ids: Tensor) -> Tensor:
        nonlocal position
        x = embedding.index_select(0, token_ids)  # (B, d)
        if position_embedding is not None:
            x = x + position_embedding.weight[position]
        turn = None if turns is None else turns[position]  # (d_h / 2,)
        for block, *where in zip(blocks, *steps.until(position), strict=True):
            x = block(x, turn, *where)
        position += 1
        logits = torch.mm(final_norm(x), to_logits)
        return logits if model.lm_head.bias is None else logits.add_(bias)

    with without_onednn() if embedding.dtype == torch.float32 else nullcontext():  # half precision needs it
        yield read


class _Steps:
    """Keys and values of all blocks, in memory that grows; keys lie transposed, as a single query reads them fastest."""

    def __init__(self, cache: list[KVCache]) -> None:
        memory = torch.stack([block.memory.narrow(3, 0, block.length) for block in cache])  # (L, B, 2, h, S, d_h)
        self._keep(memory[:, :, 0].mT, memory[:, :, 1], room=0)

    def _keep(self, keys: Tensor, values: Tensor, room: int) -> None:
        """keys (L, B, h, d_h, S), values (L, B, h, S, d_h), and room for some steps more; views of each step's place."""
        self.keys, self.values = F.pad(keys, (0, room)), F.pad(values, (0, 0, 0, room))
        self.places_of_keys = [layer.unbind(-1) for layer in self.keys]  # L times S times (B, h, d_h)
        self.places_of_values = [layer.unbind(-2) for layer in self.values]
        self.joined_keys, self.joined_values = self.keys.flatten(1, 2), self.values.flatten(1, 2)

    def until(self, position: int) -> tuple[Sequence[Tensor], ...]:
        """For each block the places of this step's key and value, (B, h, d_h), and all keys and values, (B h, ...)."""
        if position == self.keys.shape[-1]:
            self._keep(self.keys, self.values, ROOM - position % ROOM)
        return (
            [places[position] for places in self.places_of_keys],
            [places[position] for places in self.places_of_values],
            self.joined_keys.narrow(-1, 0, position + 1).unbind(),
            self.joined_values.narrow(-2, 0, position + 1).unbind(),
        )


def _block_reader(block: TransformerDecoderBlock, B: int) -> Callable[..., Tensor]:
    """A block for one token of each row: x (B, d), its turn, the places of its key and value, all keys, all values."""
    d, h, d_ff = block.d_model, block.attention.num_heads, block.mlp.up.out_features
    to_qkv, qkv_bias = _weights(block.attention.qkv)
    to_out, out_bias = _weights(block.attention.out)
    to_up, up_bias = _weights(block.mlp.up)
    to_down, down_bias = _weights(block.mlp.down)
    for part in (to_qkv, qkv_bias):
        part[..., :d] *= (d // h) ** -0.5  # queries, so that scores need not be divided
    norm1, norm2, activation = _norm(block.norm1), _norm(block.norm2), block.mlp.activation.forward
    new_empty = to_qkv.new_empty  # written anew for each token; what stands beside them are views
    parts, turned, attended = new_empty(B, 3, h, d // h), new_empty(2, B, h, d // h), new_empty(B * h, 1, d // h)
    qkv, value, merged, hidden = parts.view(B, -1), parts[:, 2], attended.view(B, -1), new_empty(B, d_ff)
    query, key = turned[0].view_as(attended), turned[1]
    turn_both = _turner(parts[:, :2].transpose(0, 1), turned)

    # A bias added by itself is faster than addmm's, which is spread over the rows first.
    def add_attended(x: Tensor, y: Tensor, turn: Tensor | None, *where: Tensor) -> Tensor:
        place_of_key, place_of_value, keys, values = where
        torch.mm(y, to_qkv, out=qkv).add_(qkv_bias)
        turn_both(turn)
        place_of_key.copy_(key)
        place_of_value.copy_(value)
        weights = torch.bmm(query, keys).softmax(dim=-1)  # (B h, 1, S)
        torch.bmm(weights, values, out=attended)
        return x.addmm_(merged, to_out).add_(out_bias)

    def add_activated(x: Tensor, y: Tensor) -> Tensor:
        activated = activation(torch.mm(y, to_up, out=hidden).add_(up_bias))
        return x.addmm_(activated, to_down).add_(down_bias)

    def post_norm(x: Tensor, *where: Any) -> Tensor:
        x = norm1(add_attended(x, x, *where))
        return norm2(add_activated(x, x))

    def pre_norm(x: Tensor, *where: Any) -> Tensor:
        x = add_attended(x, norm1(x), *where)
        return add_activated(x, norm2(x))

    return post_norm if block.norm == "post" else pre_norm


def _turner(heads: Tensor, turned: Tensor) -> Callable[[Tensor | None], object]:
    """A function that writes heads times a turn into turned, of the same shape; by None nothing turns."""

    def turn_copy(turn: Tensor | None) -> None:
        turned.copy_(heads)
        if turn is not None:
            turn_(turned, turn)

    if heads.dtype != torch.float32 or heads.shape[-1] % 2:
        return turn_copy
    pairs, turned_pairs = (torch.view_as_complex(part.unflatten(-1, (-1, 2))) for part in (heads, turned))
    return lambda turn: turn_copy(None) if turn is None else torch.mul(pairs, turn, out=turned_pairs)  # in one step


def _weights(layer: nn.Linear) -> tuple[Tensor, Tensor]:
    """Copies of weight, to lie by input, with which products of few rows are faster, and of bias or zeros."""
    weight = layer.weight.t().clone(memory_format=torch.contiguous_format)
    return weight, weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.clone()


def _norm(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    if isinstance(layer, nn.Identity):
        return layer.forward
    shape, weight, bias, epsilon = layer.normalized_shape, layer.weight, layer.bias, layer.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
