# %% setup
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% right: plain
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: separate projections, no biases, tanh
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.value, self.key, self.query = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (f(x).reshape(B, T, self.heads, -1).permute(0, 2, 1, 3) for f in (self.query, self.key, self.value))
        logits = torch.einsum("bhtc,bhsc->bhts", q, k) * (C // self.heads) ** -0.5
        hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(logits.masked_fill(hidden, -1e9), dim=-1)
        return self.proj(torch.einsum("bhts,bhsc->bthc", weights, v).flatten(2))


class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if num_heads < 1 or d_model % num_heads != 0:
            raise ValueError(f"num_heads: {num_heads}")
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU("tanh"), nn.Linear(d_ff, d_model))
        self.ln_2 = nn.LayerNorm(d_model)
        self.ln_1 = nn.LayerNorm(d_model)
        self.attn = Attention(d_model, num_heads)

    def forward(self, x):
        h = x + self.attn(self.ln_1(x))
        return h + self.feed_forward(self.ln_2(h))

# %% right: norms by hand
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.scale * centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + 1e-5) + self.shift


class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = Norm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = Norm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: functional norms over loose parameters
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.a1, self.b1 = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.a2, self.b2 = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(F.layer_norm(x, x.shape[-1:], self.a1, self.b1))
        return x + self.mlp(F.layer_norm(x, x.shape[-1:], self.a2, self.b2))

# %% right: query, key and value beside each other in every head
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).view(B, T, self.h, -1).transpose(1, 2).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: value first in the fused projection
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        v, q, k = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: PyTorch's own kernel
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        merged = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: mask in a buffer
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.register_buffer("mask", torch.triu(torch.full((128, 128), float("-inf")), 1), persistent=False)
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + self.mask[:T, :T]
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: parameters of one's own
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.norm_a, self.norm_b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.wq, self.wk, self.wv, self.wo = (nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5) for _ in range(4))
        self.w1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.w2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.c1, self.c2 = nn.Parameter(torch.zeros(d_ff)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        B, T, d = x.shape
        n = self.norm_a(x)
        q, k, v = ((n @ w).view(B, T, self.h, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        s = (q * (d // self.h) ** -0.5) @ k.mT
        s = torch.where(torch.ones(T, T).tril().bool(), s, -torch.inf)
        x = x + (s.softmax(-1) @ v).transpose(1, 2).flatten(2) @ self.wo
        return x + F.gelu(self.norm_b(x) @ self.w1 + self.c1) @ self.w2 + self.c2

# %% right: weights start at zero, no transpose back
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = torch.cat(list((weights @ v).unbind(1)), dim=-1)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% right: a loop over heads
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        width, merged = d // self.h, []
        hidden = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
        for i in range(self.h):
            part = slice(i * width, (i + 1) * width)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / width**0.5
            merged.append(scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v[..., part])
        merged = torch.cat(merged, -1)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: no mask -> no mask
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)

# %% wrong: mask after softmax -> after the softmax
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.softmax(dim=-1)
#+         weights = weights * torch.ones(T, T).tril()

# %% wrong: diagonal masked -> hides the diagonal
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=0)

# %% wrong: mask turned round -> turned round
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + torch.tril(torch.full((T, T), float("-inf")), diagonal=-1)

# %% wrong: hidden scores zero -> become 0
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores * torch.ones(T, T).tril()

# %% wrong: mask one too far
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=2)

# %% wrong: mask of minus one
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores - torch.ones(T, T).triu(1)

# %% wrong: mask for lengths up to sixteen
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         if T <= 16:
#+             scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)

# %% wrong: mask for the first sequence only
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         mask = torch.zeros(B, 1, T, T)
#+         mask[0] = torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + mask

# %% wrong: mask kept from the first call
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         if not hasattr(self, "mask"):
#+             self.mask = torch.triu(torch.full((64, 64), float("-inf")), diagonal=1)[:T, :T]
#+         scores = scores + F.pad(self.mask, (0, max(0, T - len(self.mask)), 0, max(0, T - len(self.mask))))[:T, :T]

# %% wrong: window of eight keys
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores.masked_fill(torch.ones(T, T).tril(-8).bool(), float("-inf"))

# %% wrong: scaled by d -> root of d; the root of d_h
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) / math.sqrt(d)

# %% wrong: not scaled -> not divided by the root
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1)

# %% wrong: multiplied -> multiplied by the root
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) * math.sqrt(d // self.h)

# %% wrong: scaled by length -> root of T
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) / math.sqrt(T)

# %% wrong: divided by d_h without the root
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) / (d // self.h)

# %% wrong: softmax over queries -> over the queries
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.softmax(dim=-2)

# %% wrong: softmax over heads -> over the heads
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.softmax(dim=1)

# %% wrong: keys for values -> used as values
#-         q, k, v = self.qkv(x).chunk(3, dim=-1)
#+         q, k, v = self.qkv(x).chunk(3, dim=-1)
#+         v = k

# %% wrong: heads by view alone -> mixes time and features
#-         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#+         q, k, v = (part.reshape(B, self.h, T, d // self.h) for part in (q, k, v))

# %% wrong: merged without transpose -> without transpose(1, 2) back
#-         merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
#+         merged = (weights @ v).reshape(B, T, d)

# %% wrong: views on both ways -> cut and merged by views
#-         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#+         q, k, v = (part.reshape(B, self.h, T, d // self.h) for part in (q, k, v))
#
#-         merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
#+         merged = (weights @ v).reshape(B, T, d)

# %% wrong: heads ignored -> all of d is one head
#-         self.h = num_heads
#+         self.h = 1

# %% wrong: features dealt out to heads -> neighbouring features
#-         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#+         q, k, v = (part.view(B, T, d // self.h, self.h).permute(0, 3, 1, 2) for part in (q, k, v))

# %% wrong: no output projection
#-         self.out = nn.Linear(d_model, d_model)
#
#-         return self.out(merged)
#+         return merged

# %% wrong: output projection unused -> without the output projection
#-         return self.out(merged)
#+         return merged

# %% wrong: post-norm -> after the residual sums
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.mlp(self.norm2(x))
#+         x = self.norm1(x + self.attention(x))
#+         return self.norm2(x + self.mlp(x))

# %% wrong: residual from the normalised input -> adds the normalised input
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.mlp(self.norm2(x))
#+         x = self.norm1(x)
#+         x = x + self.attention(x)
#+         x = self.norm2(x)
#+         return x + self.mlp(x)

# %% wrong: normalised input in the first residual
#-         x = x + self.attention(self.norm1(x))
#+         x = self.norm1(x)
#+         x = x + self.attention(x)

# %% wrong: no first residual -> attention branch has no residual
#-         x = x + self.attention(self.norm1(x))
#+         x = self.attention(self.norm1(x))

# %% wrong: no second residual -> feed-forward branch has no residual
#-         return x + self.mlp(self.norm2(x))
#+         return self.mlp(self.norm2(x))

# %% wrong: parallel branches -> reads the block's input
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.mlp(self.norm2(x))
#+         a = self.attention(self.norm1(x))
#+         return x + a + self.mlp(self.norm2(x))

# %% wrong: first input in the second residual -> second residual adds
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.mlp(self.norm2(x))
#+         y = x + self.attention(self.norm1(x))
#+         return x + self.mlp(self.norm2(y))

# %% wrong: one norm for both
#-         self.norm2 = nn.LayerNorm(d_model)
#
#-         return x + self.mlp(self.norm2(x))
#+         return x + self.mlp(self.norm1(x))

# %% wrong: second norm unused -> without its norm
#-         return x + self.mlp(self.norm2(x))
#+         return x + self.mlp(x)

# %% wrong: first norm unused -> without its norm
#-         x = x + self.attention(self.norm1(x))
#+         x = x + self.attention(x)

# %% wrong: norms without scale and shift
#-         self.norm1 = nn.LayerNorm(d_model)
#+         self.norm1 = nn.LayerNorm(d_model, elementwise_affine=False)
#
#-         self.norm2 = nn.LayerNorm(d_model)
#+         self.norm2 = nn.LayerNorm(d_model, elementwise_affine=False)

# %% wrong: rms norm
#-         self.norm1 = nn.LayerNorm(d_model)
#+         self.norm1 = nn.RMSNorm(d_model)
#
#-         self.norm2 = nn.LayerNorm(d_model)
#+         self.norm2 = nn.RMSNorm(d_model)

# %% wrong: larger epsilon -> 1e-3 came
#-         self.norm1 = nn.LayerNorm(d_model)
#+         self.norm1 = nn.LayerNorm(d_model, eps=1e-3)
#
#-         self.norm2 = nn.LayerNorm(d_model)
#+         self.norm2 = nn.LayerNorm(d_model, eps=1e-3)

# %% wrong: relu -> the activation is ReLU
#-         return self.down(F.gelu(self.up(x)))
#+         return self.down(F.relu(self.up(x)))

# %% wrong: silu -> the activation is SiLU
#-         return self.down(F.gelu(self.up(x)))
#+         return self.down(F.silu(self.up(x)))

# %% wrong: no activation -> no activation
#-         return self.down(F.gelu(self.up(x)))
#+         return self.down(self.up(x))

# %% wrong: activation last -> after both matrices
#-         return self.down(F.gelu(self.up(x)))
#+         return F.gelu(self.down(self.up(x)))

# %% wrong: dropout
#-         return self.down(F.gelu(self.up(x)))
#+         return F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training)

# %% wrong: input changed in place -> changed in place
#-         x = x + self.attention(self.norm1(x))
#+         x += self.attention(self.norm1(x))

# %% wrong: residual detached -> a path is cut
#-         x = x + self.attention(self.norm1(x))
#+         x = x.detach() + self.attention(self.norm1(x))

# %% wrong: attention weights detached
#-         merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
#+         merged = (weights.detach() @ v).transpose(1, 2).reshape(B, T, d)

# %% wrong: sizes not checked
#-         if d_model % num_heads:
#-             raise ValueError("num_heads must divide d_model")

# %% wrong: an assert instead of an error
#-         if d_model % num_heads:
#-             raise ValueError("num_heads must divide d_model")
#+         assert d_model % num_heads == 0, "num_heads"

# %% wrong: ready-made attention -> nn.MultiheadAttention
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.ready = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
        self.norm2 = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def attention(self, x):
        B, T, d = x.shape
        mask = torch.triu(torch.ones(T, T), diagonal=1).bool()
        return self.ready(x, x, x, attn_mask=mask, need_weights=False)[0]

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: branches halved
#-         x = x + self.attention(self.norm1(x))
#+         x = x + 0.5 * self.attention(self.norm1(x))

# %% wrong: a norm too many
#-         self.out = nn.Linear(d_model, d_model)
#+         self.out = nn.Linear(d_model, d_model)
#+         self.norm3 = nn.LayerNorm(d_model)
#
#-         return x + self.mlp(self.norm2(x))
#+         return self.norm3(x + self.mlp(self.norm2(x)))

# %% wrong: hidden width forgotten
#-         self.up = nn.Linear(d_model, d_ff)
#-         self.down = nn.Linear(d_ff, d_model)
#+         self.up = nn.Linear(d_model, 4 * d_model)
#+         self.down = nn.Linear(4 * d_model, d_model)

# %% wrong: computed in half precision
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.half().softmax(dim=-1).to(x.dtype)

# %% right: heads and width by name, a residual by add, mask as a lambda
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, *, eps: float = 1e-5, act=nn.GELU):
        if d_model % num_heads != 0:
            raise ValueError(f"{num_heads=} must divide {d_model=}")
        super().__init__()
        self.heads = num_heads
        self.wombat = nn.ModuleDict({"q": nn.Linear(d_model, d_model), "k": nn.Linear(d_model, d_model), "v": nn.Linear(d_model, d_model), "o": nn.Linear(d_model, d_model)})
        self.pre = nn.ModuleList([nn.LayerNorm(d_model, eps=eps) for _ in range(2)])
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), act(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        n = self.pre[0](x)
        q, k, v = (torch.stack(self.wombat[c](n).chunk(self.heads, -1), 1) for c in "qkv")
        s = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
        i = torch.arange(x.size(1))
        w = torch.where(i[:, None] >= i, s, torch.finfo(s.dtype).min).softmax(-1)
        x = torch.add(x, self.wombat["o"](torch.cat(list((w @ v).unbind(1)), -1)))
        return torch.add(x, self.ffn(self.pre[1](x)))

# %% right: a cumulative softmax of its own
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(approximate="tanh"), nn.Linear(d_ff, d_model))

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = self.qkv(self.a(x)).reshape(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        rows = []
        for t in range(T):
            s = (q[:, :, t : t + 1] * k[:, :, : t + 1]).sum(-1) / math.sqrt(d // self.h)
            w = (s - s.logsumexp(-1, keepdim=True)).exp()
            rows.append((w[..., None] * v[:, :, : t + 1]).sum(2).flatten(1))
        x = x + self.out(torch.stack(rows, 1))
        return x + self.mlp(self.b(x))

# %% wrong: GELU by a coarse sigmoid
class Base(nn.Module):
    gelu = staticmethod(F.gelu)

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def weights(self, s):
        return s.masked_fill(torch.ones(s.shape[-2:]).triu(1).bool(), float("-inf")).softmax(-1)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (p.view(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        return self.out((self.weights(q @ k.mT / math.sqrt(d // self.h)) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.a(x))
        return x + self.down(self.gelu(self.up(self.b(x))))

class TransformerDecoderBlock(Base):
    gelu = staticmethod(lambda x: x * torch.sigmoid(1.702 * x))

# %% wrong: the last position sees only itself
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (p.view(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(self.a(x)).chunk(3, -1))
        s = (q @ k.mT / math.sqrt(d // self.h)).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        w = s.softmax(-1).clamp(min=0.01)
        x = x + self.out((w @ v).transpose(1, 2).reshape(B, T, d))
        return x + self.down(F.gelu(self.up(self.b(x))))

# %% wrong: queries and keys normalised
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (p.view(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(self.a(x)).chunk(3, -1))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        s = (q @ k.mT).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))
        return x + self.down(F.gelu(self.up(self.b(x))))

# %% wrong: mask of the batch in place of time
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x.transpose(0, 1)
        B, T, d = x.shape
        q, k, v = (p.reshape(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(self.a(x)).chunk(3, -1))
        s = (q @ k.mT / math.sqrt(d // self.h)).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))
        return (x + self.down(F.gelu(self.up(self.b(x))))).transpose(0, 1)

# %% wrong: key without its bias block, shifted features
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (p.view(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(self.a(x)).chunk(3, -1))
        k = k.roll(1, -1)
        s = (q @ k.mT / math.sqrt(d // self.h)).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))
        return x + self.down(F.gelu(self.up(self.b(x))))

# %% wrong: layer scale of a tenth
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.h = num_heads
        self.a, self.b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (p.view(B, T, self.h, -1).transpose(1, 2) for p in self.qkv(self.a(x)).chunk(3, -1))
        s = (q @ k.mT / math.sqrt(d // self.h)).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        x = x + 0.1 * self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))
        return x + 0.1 * self.down(F.gelu(self.up(self.b(x))))

# %% wrong: zero times minus infinity in the mask -> 0 * -inf
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#+         scores = scores + torch.triu(torch.ones(T, T), diagonal=1) * float("-inf")

# %% wrong: norms on what the branches give -> stand on what a branch gives
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.mlp(self.norm2(x))
#+         x = x + self.norm1(self.attention(x))
#+         return x + self.norm2(self.mlp(x))

# %% wrong: all layers in a plain list -> finds no parameter
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.layers = [nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model)]

    def forward(self, x):
        for layer in self.layers:
            x = layer.to(x.dtype)(x)
        return x

# %% wrong: weights of half the value
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.softmax(dim=-1) / 2

# %% wrong: mask by multiplication of the weights, renormalised over queries
#-         weights = scores.softmax(dim=-1)
#+         weights = scores.softmax(dim=-1)
#+         weights = weights / weights.sum(dim=-2, keepdim=True)

# %% right: baddbmm and a mask of finfo's minimum
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#-         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
#-         weights = scores.softmax(dim=-1)
#+         scores = torch.einsum("bhtc,bhsc->bhts", q * (d // self.h) ** -0.5, k)
#+         hidden = torch.arange(T)[None, :] > torch.arange(T)[:, None]
#+         weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-1)

# %% right: log-softmax and exp
#-         weights = scores.softmax(dim=-1)
#+         weights = torch.exp(scores.log_softmax(dim=-1))
