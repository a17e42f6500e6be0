"""The models that ProofLM is measured against, at its size, each as a function of token ids and a generator.

nanoGPT's architecture is written anew here (learned positions, one projection for query, key and value, fused
attention, exact GELU, tied head, no cache); the others come from their packages (benchmarks/requirements.txt)
and are built from a config, with random weights: transformers' GPT-2 and Llama, litgpt's GPT with rotary positions.
All have exact GELU (Llama: SwiGLU of as many weights), no dropout and float32 weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from proof_lm.model import DecoderConfig, ProofLM


class Size(NamedTuple):
    """Axes as in proof_lm.model; B sequences of T tokens in a training batch."""

    V: int
    T: int
    L: int
    d: int
    h: int
    ff: int
    B: int


SIZES = {"S": Size(512, 128, 4, 128, 4, 512, 16), "M": Size(512, 256, 6, 256, 8, 1024, 8)}


class Peer(NamedTuple):
    """A model, its logits for token ids (B, T) -> (B, T, V), and a function that continues (B, T) by n tokens."""

    model: nn.Module
    logits: Callable[[Tensor], Tensor]
    generate: Callable[[Tensor, int], Tensor]


class NanoAttention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(d, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(attended.transpose(1, 2).contiguous().view(B, T, d))


class NanoBlock(nn.Module):
    def __init__(self, d: int, heads: int, ff: int) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(d), NanoAttention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, ff), nn.GELU(), nn.Linear(ff, d))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class NanoGPT(nn.Module):
    """GPT-2's layout as nanoGPT trains and samples it."""

    def __init__(self, size: Size, context: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(size.V, size.d), nn.Embedding(context, size.d)
        self.blocks = nn.ModuleList(NanoBlock(size.d, size.h, size.ff) for _ in range(size.L))
        self.norm, self.head = nn.LayerNorm(size.d), nn.Linear(size.d, size.V, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, ids: Tensor, last_only: bool = False) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, [-1]] if last_only else x)

    @torch.no_grad()
    def generate(self, ids: Tensor, count: int) -> Tensor:
        for _ in range(count):
            weights = self(ids, last_only=True)[:, -1].softmax(-1)
            ids = torch.cat((ids, torch.multinomial(weights, 1)), dim=1)
        return ids


def proof_lm(size: Size, context: int, **options) -> Peer:
    model = ProofLM(DecoderConfig(size.V, context, size.L, size.d, size.h, size.ff, **options))
    return Peer(model, lambda ids: model(ids)[0], model.generate)


def nano_gpt(size: Size, context: int) -> Peer:
    model = NanoGPT(size, context)
    return Peer(model, model, model.generate)


def hf_gpt2(size: Size, context: int) -> Peer:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=size.V, n_positions=context, n_embd=size.d, n_layer=size.L, n_head=size.h, n_inner=size.ff,
            activation_function="gelu", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=None,
        )
    )  # fmt: skip
    return _hugging_face(model)


def hf_llama(size: Size, context: int) -> Peer:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size.V, max_position_embeddings=context, hidden_size=size.d, num_hidden_layers=size.L,
            num_attention_heads=size.h, intermediate_size=2 * size.ff // 3, tie_word_embeddings=True,
            bos_token_id=0, eos_token_id=None,
        )
    )  # fmt: skip
    return _hugging_face(model)


def _hugging_face(model: nn.Module) -> Peer:
    def generate(ids: Tensor, count: int) -> Tensor:
        mask = torch.ones_like(ids)
        return model.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=True, top_k=0, pad_token_id=0)

    return Peer(model, lambda ids: model(ids, use_cache=False).logits, generate)


def litgpt(size: Size, context: int) -> Peer:
    from litgpt.config import Config
    from litgpt.generate.base import batched_next_token, next_token
    from litgpt.model import GPT

    model = GPT(
        Config(
            block_size=context, vocab_size=size.V, padded_vocab_size=size.V, n_layer=size.L, n_head=size.h,
            n_embd=size.d, intermediate_size=size.ff, rotary_percentage=1.0, parallel_residual=False, bias=True,
            norm_class_name="LayerNorm", mlp_class_name="GptNeoxMLP", lm_head_bias=False,
        )
    )  # fmt: skip
    model.lm_head.weight = model.transformer.wte.weight

    @torch.inference_mode()
    def generate(ids: Tensor, count: int) -> Tensor:
        """litgpt's own step functions: one sequence with the cache cut to what is filled, several with all of it."""
        (rows, start), tokens = ids.shape, [ids]
        model.clear_kv_cache()
        model.set_kv_cache(batch_size=rows)
        positions = torch.arange(start)
        for end in range(start, start + count):
            if rows == 1:
                token = next_token(model, positions, tokens[-1].view(1, -1), input_pos_maxp1=end, top_k=None)
            else:
                token = batched_next_token(model, positions, tokens[-1], [{"top_k": None}] * rows)
            tokens.append(token.view(rows, 1))
            positions = torch.tensor([end])
        return torch.cat(tokens, dim=1)

    return Peer(model, model, generate)


PEERS = {"nanoGPT (written anew)": nano_gpt, "litgpt": litgpt, "HF GPT-2": hf_gpt2, "HF Llama": hf_llama}
