"""ProofLM, a decoder-only Transformer in PyTorch.

Axes: B batch, T time (query), S time (key), d model width, h heads, d_h = d / h, d_ff feed-forward width,
V vocabulary. Sources: Vaswani et al., "Attention Is All You Need" (2017); Radford et al., "Language Models
are Unsupervised Multitask Learners" (2019) for layout and initialisation; Su et al., "RoFormer" (2021).
"""

import json
import math
from contextlib import ExitStack
from dataclasses import KW_ONLY, asdict, dataclass, replace
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from proof_lm.bfloat16 import CausalAttention, CrossEntropy, pays_for
from proof_lm.generation import KVCache, choose_token, evaluating, has_only_known_parts, token_reader
from proof_lm.rotary import TurnedQKV, at_least_float32, rotations

SIZES = ("vocab_size", "context_length", "n_layers", "d_model", "n_heads", "d_ff")
ACTIVATIONS = {"gelu": nn.GELU, "gelu_tanh": lambda: nn.GELU("tanh"), "relu": nn.ReLU, "silu": nn.SiLU}
CHOICES = {"position": ("rope", "learned"), "activation": tuple(ACTIVATIONS), "norm": ("pre", "post", "none")}
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
IGNORED = -100  # a label that cross_entropy leaves out of its sum and its gradient


def _wrong(name: str, expected: str, got: Any) -> ValueError:
    if isinstance(got, Tensor):
        got = f"{got.dtype} of shape {tuple(got.shape)}"
    return ValueError(f"{name}: expected {expected}, got {got}")


def _check_whole(name: str, number: int, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise _wrong(name, f"a whole number of at least {least}", repr(number))


def _check_choice(name: str, choice: str) -> None:
    if choice not in CHOICES[name]:
        raise _wrong(name, f"one of {', '.join(CHOICES[name])}", repr(choice))


def _check_heads(name: str, heads: int, d_model: int) -> None:
    if d_model % heads:
        raise _wrong(name, f"a divisor of d_model = {d_model}", heads)


def _check_ids(name: str, ids: Tensor, vocab_size: int) -> None:
    if not isinstance(ids, Tensor):
        raise _wrong(name, "a tensor of whole numbers", type(ids).__name__)
    if ids.dtype not in WHOLE or ids.dim() != 2 or not ids.numel():
        raise _wrong(name, "whole numbers of shape (B, T), B and T at least 1", ids)
    if not torch.compiler.is_compiling():  # a look at the values would break the graph
        low, high = (int(bound) for bound in torch.aminmax(ids))
        if low < 0 or high >= vocab_size:
            raise _wrong(name, f"ids in 0..{vocab_size - 1}", low if low < 0 else high)


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and options of a ProofLM; ValueError that names the argument when they cannot be."""

    vocab_size: int  # V
    context_length: int  # the largest T
    n_layers: int
    d_model: int  # d
    n_heads: int  # h, divides d
    d_ff: int
    _: KW_ONLY
    dropout: float = 0.0  # after the embedding, on attention weights, and on both branches of a block
    position: str = "rope"  # or "learned": one trained vector for each position, added to the embedding
    activation: str = "gelu"  # exact; or "gelu_tanh", "relu", "silu"
    norm: str = "pre"  # x + f(norm(x)) and a final norm; or "post": norm(x + f(x)); or "none": x + f(x)
    tie_embeddings: bool = True  # the head's weight is the embedding's
    head_bias: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            _check_whole(name, getattr(self, name), least=1)
        for name in CHOICES:
            _check_choice(name, getattr(self, name))
        _check_heads("n_heads", self.n_heads, self.d_model)
        if self.position == "rope" and self.head_width % 2:
            raise _wrong("n_heads", "an even d_model / n_heads, since rope turns pairs", self.head_width)
        if not 0 <= self.dropout < 1:
            raise _wrong("dropout", "a number in [0, 1)", self.dropout)

    @property
    def head_width(self) -> int:
        return self.d_model // self.n_heads


class CausalSelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)  # query, key and value in one multiplication
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, positions: Tensor | None, cache: KVCache | None) -> Tensor:
        B, T, d = x.shape
        head_width = d // self.num_heads
        qkv = self.qkv(x).view(B, T, 3, self.num_heads, head_width)
        turns = positions if positions is None or positions.dim() > 1 else rotations(positions, head_width)
        if cache is None and pays_for(qkv) and not (self.dropout and self.training):
            return self.out(CausalAttention.apply(qkv, turns).view(B, T, d))
        if turns is None:
            q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))  # (B, h, T, d_h) each
        else:
            q, k, v = TurnedQKV.apply(qkv, turns)
        if cache is not None:
            k, v = cache.extend(torch.stack((k, v), dim=1))  # (B, h, S, d_h) each
        attended = self.attend(q, k, v)  # (B, h, T, d_h)
        return self.out(attended.transpose(1, 2).reshape(B, T, d))  # heads side by side again

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(q kᵀ / sqrt(d_h), no future) v, fused; the T queries are the last T of the S steps."""
        T, S = q.shape[2], k.shape[2]
        dropout = self.dropout if self.training else 0.0
        mask = None
        if 1 < T < S:  # T = S is the plain triangle, and a single last query sees every key
            mask = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=T == S)


class MLP(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.activation = ACTIVATIONS[activation]()
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class TransformerDecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each with a norm and added to its own input.

    num_heads divides d_model; options as in DecoderConfig. ValueError that names the argument otherwise.
    4 d² + 4 d parameters in attention, 2 d d_ff + d_ff + d in the MLP, 4 d in the norms.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: str = "gelu",
        norm: str = "pre",
    ) -> None:
        super().__init__()
        for name, size in {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff}.items():
            _check_whole(name, size, least=1)
        _check_heads("num_heads", num_heads, d_model)
        _check_choice("activation", activation)
        _check_choice("norm", norm)
        self.d_model, self.norm = d_model, norm
        self.norm1 = nn.Identity() if norm == "none" else nn.LayerNorm(d_model)
        self.attention = CausalSelfAttention(d_model, num_heads, dropout)
        self.norm2 = nn.Identity() if norm == "none" else nn.LayerNorm(d_model)
        self.mlp = MLP(d_model, d_ff, activation)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor, positions: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """x (B, T, d) -> (B, T, d).

        positions (T,), or their `rotations` where many blocks share them, turn queries and keys; by None
        nothing turns. cache holds keys and values of the steps before x and is extended by those of x.
        """
        if x.dim() != 3 or x.shape[-1] != self.d_model:
            raise _wrong("x", f"shape (B, T, {self.d_model})", x)
        if self.norm == "post":
            x = self.norm1(x + self.dropout(self.attention(x, positions, cache)))
            return self.norm2(x + self.dropout(self.mlp(x)))
        x = x + self.dropout(self.attention(self.norm1(x), positions, cache))
        return x + self.dropout(self.mlp(self.norm2(x)))


def masked_cross_entropy(logits: Tensor, labels: Tensor, loss_mask: Tensor | None = None) -> Tensor:
    """Mean of -log softmax(logits)[label] in nats over the positions where loss_mask is True.

    logits (B, T, V), labels (B, T) already shifted, loss_mask (B, T) bool, None for all True. What the mask
    hides is never read; with nothing kept the loss is 0 and so is its gradient. ValueError for anything else.
    """
    shape = tuple(logits.shape[:-1])
    if not isinstance(labels, Tensor) or labels.shape != shape:
        raise _wrong("labels", f"a tensor of shape {shape}", labels)
    if loss_mask is None:
        loss_mask = torch.ones_like(labels, dtype=torch.bool)
    if not isinstance(loss_mask, Tensor) or loss_mask.dtype != torch.bool or loss_mask.shape != shape:
        raise _wrong("loss_mask", f"torch.bool of shape {shape}", loss_mask)
    _check_ids("labels", labels.masked_fill(~loss_mask, 0), logits.shape[-1])
    labels = labels.long().masked_fill(~loss_mask, IGNORED).flatten()  # (B T,)
    logits = logits.flatten(0, -2)  # (B T, V)
    if pays_for(logits) and not torch.compiler.is_compiling():  # which needs no help to keep parts in cache
        total = CrossEntropy.apply(logits, labels)
    else:
        total = F.cross_entropy(at_least_float32(logits), labels, ignore_index=IGNORED, reduction="sum")
    return total / loss_mask.sum().clamp(min=1)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


class ProofLM(nn.Module):
    """Token embedding, a stack of decoder blocks, a final norm and a head that gives logits.

    ProofLM(config)(token_ids, labels, loss_mask) -> (logits (B, T, V), loss or None).
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        V, C, d = config.vocab_size, config.context_length, config.d_model
        options = {"dropout": config.dropout, "activation": config.activation, "norm": config.norm}
        self.token_embedding = nn.Embedding(V, d)
        self.position_embedding = nn.Embedding(C, d) if config.position == "learned" else None
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        self.blocks = nn.ModuleList(
            TransformerDecoderBlock(d, config.n_heads, config.d_ff, **options) for _ in range(config.n_layers)
        )
        self.final_norm = nn.LayerNorm(d) if config.norm == "pre" else nn.Identity()
        self.lm_head = nn.Linear(d, V, bias=config.head_bias)
        self.register_buffer("rotations", None, persistent=False)  # rope: (C, d_h / 2, 2) float32
        self._restore()
        self.apply(_initialise)
        self.register_load_state_dict_pre_hook(_complete_keys)
        self.register_load_state_dict_post_hook(_restore_after_load)

    def _restore(self) -> None:
        """Whatever moved or replaced the weights: tie the head again, and put exact rotations beside them."""
        if self.config.tie_embeddings:
            self.lm_head.weight = self.token_embedding.weight
        if self.config.position == "rope":
            table = rotations(torch.arange(self.config.context_length, device="cpu"), self.config.head_width)
            self.rotations = table.to(self.token_embedding.weight.device)

    def _apply(self, fn: Any, recurse: bool = True) -> "ProofLM":
        super()._apply(fn, recurse)  # what .to() and its kin call; .to(bfloat16) rounds the rotations
        self._restore()
        return self

    @property
    def parameter_count(self) -> int:
        """How many numbers training changes; a tied matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def embeddings_are_tied(self) -> bool:
        """Whether embedding and head read the same memory; equal numbers are not enough."""
        return self.token_embedding.weight.data_ptr() == self.lm_head.weight.data_ptr()

    def forward(
        self, token_ids: Tensor, labels: Tensor | None = None, loss_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """token_ids (B, T) whole numbers in 0..V-1, T <= context_length -> logits (B, T, V) and the loss.

        labels (B, T), already shifted, and loss_mask as in `masked_cross_entropy`; without labels the loss is
        None. ValueError that names the argument for anything else.
        """
        if labels is None and loss_mask is not None:
            raise _wrong("labels", "labels beside loss_mask", None)
        logits = self.lm_head(self.forward_hidden(token_ids))
        return logits, None if labels is None else masked_cross_entropy(logits, labels, loss_mask)

    def forward_hidden(self, token_ids: Tensor, cache: list[KVCache] | None = None) -> Tensor:
        """States before the head: token_ids (B, T) -> (B, T, d).

        With a cache of `new_cache` token_ids are the steps after those that it holds; it is extended by them.
        """
        _check_ids("token_ids", token_ids, self.config.vocab_size)
        start = cache[0].length if cache else 0
        end = start + token_ids.shape[1]
        if end > self.config.context_length:
            raise _wrong("token_ids", f"at most context_length = {self.config.context_length} steps", end)
        x = self.token_embedding(token_ids.long())  # (B, T, d)
        if self.position_embedding is not None:
            x = x + self.position_embedding.weight[start:end]
        x = self.dropout(x)
        turns = None if self.rotations is None else self.rotations[start:end]  # (T, d_h / 2, 2)
        for layer, block in enumerate(self.blocks):
            x = block(x, turns, cache[layer] if cache else None)
        return self.final_norm(x)

    def new_cache(self, batch: int = 1) -> list[KVCache]:
        """An empty cache for each block, for `batch` rows."""
        return [KVCache(self.config, batch, like=self.token_embedding.weight) for _ in self.blocks]

    def _last_logits(self, token_ids: Tensor, cache: list[KVCache] | None = None) -> Tensor:
        return self.lm_head(self.forward_hidden(token_ids, cache)[:, -1])  # (B, V), the last step alone

    def generate(
        self,
        token_ids: Tensor,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        use_cache: bool = True,
    ) -> Tensor:
        """Continue every row of token_ids (B, T) by max_new_tokens: (B, T + max_new_tokens) int64.

        temperature 0 takes the likeliest token (of equals the lowest id). Above 0 it draws from
        softmax(logits / temperature), cut to the top_k likeliest, then to the fewest whose probabilities
        reach top_p. generator lives on the CPU; None draws as the global one would from where it stands and
        leaves it there. Past context_length the model reads the last context_length tokens afresh at each
        step: once the oldest token is gone every state behind it is another, so that no cache can hold it.
        Raises ValueError that names the argument, or says that logits are not finite.
        """
        _check_ids("token_ids", token_ids, self.config.vocab_size)
        _check_whole("max_new_tokens", max_new_tokens, least=0)
        if not (isinstance(temperature, (int, float)) and 0 <= temperature < math.inf):
            raise _wrong("temperature", "a finite number of at least 0", repr(temperature))
        if top_k is not None:
            _check_whole("top_k", top_k, least=1)
        if top_p is not None and not 0 < top_p <= 1:
            raise _wrong("top_p", "a number in (0, 1]", repr(top_p))
        if generator is None:
            generator = torch.Generator()
            generator.set_state(torch.get_rng_state())
        context, (B, T) = self.config.context_length, token_ids.shape
        tokens = F.pad(token_ids.long(), (0, max_new_tokens))  # (B, T + max_new_tokens)
        steps = max_new_tokens if temperature else 0
        points = torch.rand(steps, B, 1, dtype=torch.float64, generator=generator).unbind() or repeat(None)
        with evaluating(self), torch.inference_mode(), ExitStack() as reading:
            cache = self.new_cache(B) if use_cache else None
            by_token, read_token, token = has_only_known_parts(self), None, None
            for end, point in zip(range(T, tokens.shape[1]), points, strict=False):  # greedy needs no points
                if not cache or end > context:
                    reading.close()
                    logits = self._last_logits(tokens[:, max(0, end - context) : end])
                elif by_token and cache[0].length:
                    read_token = read_token or reading.enter_context(token_reader(self, cache))
                    logits = read_token(token)
                else:
                    logits = self._last_logits(tokens[:, cache[0].length : end], cache)  # what is not read yet
                token = tokens[:, end] = choose_token(logits, temperature, top_k, top_p, point)
        return tokens

    def save(self, path: str | PathLike) -> None:
        """Write config and weights, a tied matrix once; as safetensors if path ends so, else torch.save."""
        config, weights = asdict(self.config), self.state_dict()
        if self.config.tie_embeddings:
            del weights["lm_head.weight"]
        if Path(path).suffix == ".safetensors":
            from safetensors.torch import save_file

            save_file(weights, path, metadata={"config": json.dumps(config)})
        else:
            torch.save({"config": config, "weights": weights}, path)

    @classmethod
    def load(cls, path: str | PathLike, map_location: str | torch.device = "cpu", **changes) -> "ProofLM":
        """The model that `save` wrote, on device map_location and in the dtype that it had.

        changes replace fields of its config: under rope context_length is free, dropout always. ValueError
        in one line if the file is torn, not ours, or does not fit; OSError if it cannot be opened.
        """
        try:
            config, weights = _read(path, map_location)
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            raise
        except Exception as error:  # a foreign or torn file may fail in any way
            raise ValueError(f"{path}: torn, or not written by save ({type(error).__name__})") from None
        try:
            with torch.random.fork_rng(devices=[]):  # building draws weights, which the file then replaces
                model = cls(replace(DecoderConfig(**config), **changes))
            model.load_state_dict(weights, assign=True)
        except (ValueError, TypeError, RuntimeError) as error:
            raise ValueError(f"{path}: does not fit: {' '.join(str(error).split())}") from None
        return model


def _read(path: str | PathLike, map_location: str | torch.device) -> tuple[dict, dict[str, Tensor]]:
    if Path(path).suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, "pt", device=str(map_location)) as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
            return json.loads(file.metadata()["config"]), weights
    content = torch.load(path, map_location, weights_only=True)
    return content["config"], content["weights"]


def _complete_keys(model: ProofLM, state_dict: dict, prefix: str, *rest: Any) -> None:
    """Before a load: drop the prefixes of torch.compile; a tied head may be absent, but not differ."""
    for key in [key for key in state_dict if "_orig_mod." in key]:
        state_dict[key.replace("_orig_mod.", "")] = state_dict.pop(key)
    embedding = state_dict.get(prefix + "token_embedding.weight")
    if model.config.tie_embeddings and embedding is not None:
        head = state_dict.setdefault(prefix + "lm_head.weight", embedding)
        if head.data_ptr() != embedding.data_ptr() and not torch.equal(head, embedding):
            error_messages = rest[-1]
            error_messages.append("lm_head.weight: expected the tied token_embedding.weight, got another")


def _restore_after_load(model: ProofLM, _: Any) -> None:
    model._restore()
