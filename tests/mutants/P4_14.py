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
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask after softmax -> after the softmax
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
        weights = scores.softmax(dim=-1)
        weights = weights * torch.ones(T, T).tril()
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: diagonal masked -> hides the diagonal
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
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=0)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask turned round -> turned round
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
        scores = scores + torch.tril(torch.full((T, T), float("-inf")), diagonal=-1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: hidden scores zero -> become 0
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
        scores = scores * torch.ones(T, T).tril()
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask one too far
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
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=2)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask of minus one
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
        scores = scores - torch.ones(T, T).triu(1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask for lengths up to sixteen
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
        if T <= 16:
            scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask for the first sequence only
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
        mask = torch.zeros(B, 1, T, T)
        mask[0] = torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        scores = scores + mask
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: mask kept from the first call
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
        if not hasattr(self, "mask"):
            self.mask = torch.triu(torch.full((64, 64), float("-inf")), diagonal=1)[:T, :T]
        scores = scores + F.pad(self.mask, (0, max(0, T - len(self.mask)), 0, max(0, T - len(self.mask))))[:T, :T]
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: window of eight keys
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
        scores = scores.masked_fill(torch.ones(T, T).tril(-8).bool(), float("-inf"))
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: scaled by d -> root of d; the root of d_h
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
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: not scaled -> not divided by the root
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
        scores = q @ k.transpose(-2, -1)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: multiplied -> multiplied by the root
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
        scores = q @ k.transpose(-2, -1) * math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: scaled by length -> root of T
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
        scores = q @ k.transpose(-2, -1) / math.sqrt(T)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: divided by d_h without the root
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
        scores = q @ k.transpose(-2, -1) / (d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: softmax over queries -> over the queries
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
        weights = scores.softmax(dim=-2)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: softmax over heads -> over the heads
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
        weights = scores.softmax(dim=1)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: keys for values -> used as values
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
        v = k
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

# %% wrong: heads by view alone -> mixes time and features
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
        q, k, v = (part.reshape(B, self.h, T, d // self.h) for part in (q, k, v))
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

# %% wrong: merged without transpose -> without transpose(1, 2) back
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
        merged = (weights @ v).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: views on both ways -> cut and merged by views
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
        q, k, v = (part.reshape(B, self.h, T, d // self.h) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        weights = scores.softmax(dim=-1)
        merged = (weights @ v).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: heads ignored -> all of d is one head
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = 1
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

# %% wrong: features dealt out to heads -> neighbouring features
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
        q, k, v = (part.view(B, T, d // self.h, self.h).permute(0, 3, 1, 2) for part in (q, k, v))
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

# %% wrong: no output projection
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
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
        return merged

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: output projection unused -> without the output projection
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
        return merged

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: post-norm -> after the residual sums
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
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))

# %% wrong: residual from the normalised input -> adds the normalised input
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
        x = self.norm1(x)
        x = x + self.attention(x)
        x = self.norm2(x)
        return x + self.mlp(x)

# %% wrong: normalised input in the first residual
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
        x = self.norm1(x)
        x = x + self.attention(x)
        return x + self.mlp(self.norm2(x))

# %% wrong: no first residual -> attention branch has no residual
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
        x = self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: no second residual -> feed-forward branch has no residual
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
        return self.mlp(self.norm2(x))

# %% wrong: parallel branches -> reads the block's input
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
        a = self.attention(self.norm1(x))
        return x + a + self.mlp(self.norm2(x))

# %% wrong: first input in the second residual -> second residual adds
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
        y = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(y))

# %% wrong: one norm for both
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
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
        return x + self.mlp(self.norm1(x))

# %% wrong: second norm unused -> without its norm
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
        return x + self.mlp(x)

# %% wrong: first norm unused -> without its norm
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
        x = x + self.attention(x)
        return x + self.mlp(self.norm2(x))

# %% wrong: norms without scale and shift
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model, elementwise_affine=False)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model, elementwise_affine=False)
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

# %% wrong: rms norm
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.RMSNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.RMSNorm(d_model)
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

# %% wrong: larger epsilon -> 1e-3 came
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model, eps=1e-3)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-3)
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

# %% wrong: relu -> the activation is ReLU
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
        return self.down(F.relu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: silu -> the activation is SiLU
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
        return self.down(F.silu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: no activation -> no activation
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
        return self.down(self.up(x))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: activation last -> after both matrices
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
        return F.gelu(self.down(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: dropout
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
        return F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: input changed in place -> changed in place
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
        x += self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: residual detached -> a path is cut
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
        x = x.detach() + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: attention weights detached
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
        merged = (weights.detach() @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: sizes not checked
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
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

# %% wrong: an assert instead of an error
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        assert d_model % num_heads == 0, "num_heads"
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
        x = x + 0.5 * self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

# %% wrong: a norm too many
class TransformerDecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm3 = nn.LayerNorm(d_model)
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
        return self.norm3(x + self.mlp(self.norm2(x)))

# %% wrong: hidden width forgotten
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
        self.up = nn.Linear(d_model, 4 * d_model)
        self.down = nn.Linear(4 * d_model, d_model)

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

# %% wrong: computed in half precision
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
        weights = scores.half().softmax(dim=-1).to(x.dtype)
        merged = (weights @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
