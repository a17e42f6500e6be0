# %% setup
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% right: plain
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: pairs read, halves written, in queries and keys alike
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.cat((even * cos - odd * sin, even * sin + odd * cos), dim=-1)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: complex numbers
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: keys cached unturned
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q = turned(q, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ turned(k, 0).transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: positions from one, a list for a cache
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S + 1), turned(k, S + 1)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return [self.out(merged), [k, v]]

# %% right: rotate by a swapped copy
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    cos, sin = (part.repeat_interleave(2, dim=-1).to(x.dtype) for part in (cos, sin))
    swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * cos + swapped * sin


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: separate projections without biases
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.o, self.v, self.k, self.q = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.o(merged), (k, v)

# %% right: an empty cache instead of None
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        if cache is None:
            cache = k[:, :, :0], v[:, :, :0]
        S = cache[0].size(2)
        q, k = turned(q, S), turned(k, S)
        k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: tables in a buffer, compared positions
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        hidden = torch.arange(S + T)[None, :] > torch.arange(S, S + T)[:, None]
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: not turned -> are not turned
#-         q, k = turned(q, S), turned(k, S)

# %% wrong: halves for pairs -> here they are neighbours
#-     even, odd = x[..., 0::2], x[..., 1::2]
#-     return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
#+     even, odd = x.chunk(2, dim=-1)
#+     return torch.cat((even * cos - odd * sin, even * sin + odd * cos), dim=-1)

# %% wrong: values turned too -> values are turned too
#-         q, k = turned(q, S), turned(k, S)
#+         q, k, v = turned(q, S), turned(k, S), turned(v, S)

# %% wrong: only queries turned -> only the queries
#-         q, k = turned(q, S), turned(k, S)
#+         q = turned(q, S)

# %% wrong: only keys turned
#-         q, k = turned(q, S), turned(k, S)
#+         k = turned(k, S)

# %% wrong: another base -> another base
#- def turned(x, start, base=10000.0):
#+ def turned(x, start, base=1000.0):

# %% wrong: turned before the split -> before the heads are cut
#-         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, S), turned(k, S)
#+         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))

# %% wrong: sum with the wrong sign
#-     return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
#+     return torch.stack((even * cos - odd * sin, odd * cos - even * sin), dim=-1).flatten(-2)

# %% wrong: frequencies of one's own head index
#-     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
#+     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / (2 * width)))

# %% wrong: time taken from the head axis
#-     T, width = x.shape[-2:]
#+     T, width = x.shape[1], x.shape[-1]
#
#-     cos, sin = angles.cos(), angles.sin()
#+     cos, sin = angles.cos()[:, None], angles.sin()[:, None]

# %% wrong: positions restart -> positions restart at 0
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, 0), turned(k, 0)

# %% wrong: only keys go on -> the queries' restart
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, 0), turned(k, S)

# %% wrong: one late -> off by one
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, max(S - 1, 0)), turned(k, max(S - 1, 0))

# %% wrong: cached keys turned again -> turned again at every call
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             k, v = torch.cat((turned(cache[0], 0), k), dim=2), torch.cat((cache[1], v), dim=2)

# %% wrong: cache ignored
#-         if cache is not None:
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#
#-         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
#+         scores = scores + torch.triu(torch.full((T, T), float("-inf")), diagonal=1)

# %% wrong: last chunk returned -> last chunk alone
#-         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#+         q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
#+         step = None
#
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, S), turned(k, S)
#+         step = k, v
#
#-         return self.out(merged), (k, v)
#+         return self.out(merged), step

# %% wrong: square mask -> counts keys from 0
#-         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
#+         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=1)

# %% wrong: no mask behind a cache -> behind a cache there is no mask
#-         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
#+         if cache is None:
#+             scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)

# %% wrong: no mask -> there is no mask
#-         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)

# %% wrong: diagonal masked -> hides the diagonal
#-         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
#+         scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S)

# %% wrong: new step before the cache
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             k, v = torch.cat((k, cache[0]), dim=2), torch.cat((v, cache[1]), dim=2)

# %% wrong: only keys cached
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             k = torch.cat((cache[0], k), dim=2)
#+             v = torch.cat((torch.zeros_like(cache[1]), v), dim=2)

# %% wrong: keys and values swapped in the cache
#-         return self.out(merged), (k, v)
#+         return self.out(merged), (v, k)

# %% wrong: cache in another layout -> were expected
#-         S = 0 if cache is None else cache[0].shape[2]
#+         S = 0 if cache is None else cache[0].shape[1]
#
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             k, v = (torch.cat((old.transpose(1, 2), new), dim=2) for old, new in zip(cache, (k, v)))
#
#-         return self.out(merged), (k, v)
#+         return self.out(merged), (k.transpose(1, 2), v.transpose(1, 2))

# %% wrong: cache written in place
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+             cache[0].mul_(1.5)

# %% wrong: scaled by d -> root of d; the root of d_h
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) / math.sqrt(d)

# %% wrong: not scaled -> not divided by the root
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1)

# %% wrong: softmax over queries -> over the queries
#-         merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
#+         merged = (scores.softmax(dim=-2) @ v).transpose(1, 2).reshape(B, T, d)

# %% wrong: merged without transpose -> without transpose(1, 2) back
#-         merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
#+         merged = (scores.softmax(dim=-1) @ v).reshape(B, T, d)

# %% wrong: odd head width accepted
#-         if d_model % num_heads or d_model // num_heads % 2:
#+         if d_model % num_heads:

# %% wrong: sizes not checked
#-         if d_model % num_heads or d_model // num_heads % 2:
#-             raise ValueError("num_heads must divide d_model, d_h must be even")

# %% wrong: cache kept in the module
#-         self.h = num_heads
#+         self.h = num_heads
#+         self.past = None
#
#-         if cache is not None:
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+         if self.past is not None and cache is None:
#+             pass
#+         elif cache is not None:
#+             k, v = torch.cat((self.past[0], k), dim=2), torch.cat((self.past[1], v), dim=2)
#+         self.past = k * 1.0, v
#+         k, v = self.past
#+         if T > 6:
#+             k = k.roll(1, 0)

# %% wrong: output alone
#-         return self.out(merged), (k, v)
#+         return self.out(merged)

# %% wrong: angles of the batch index
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = (turned(part.transpose(0, 2), S).transpose(0, 2) for part in (q, k))

# %% wrong: cached keys detached and rounded
#-         return self.out(merged), (k, v)
#+         return self.out(merged), (k.to(torch.bfloat16).to(k.dtype), v)

# %% right: batch of heads by unflatten, sigmoid of log ratios
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.h, -1)).movedim(2, 1) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = ((scores - scores.logsumexp(-1, keepdim=True)).exp() @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% right: keyword-only cache and a namedtuple
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


from collections import namedtuple

Cache = namedtuple('Cache', 'keys values')


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None, **unused):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), Cache(k, v)

# %% right: angles in float64
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T, dtype=torch.float64), base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width))
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: turned by the end of the sequence
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S + 1 if S else 0), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: cache cut at ten steps
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        k, v = k[:, :, :], v[:, :, :]
        if S > 10: k, v = k[:, :, -(10 + T):], v[:, :, -(10 + T):]; S = k.shape[2] - T
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: angles halved
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width) / 2)
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: frequencies from d_h minus two
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / max(width - 2, 1)))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: batch shares the cache of its first sequence
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0][:1].expand_as(cache[0]), k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: keys and values of the chunk first
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((k, cache[0]), dim=2), torch.cat((v, cache[1]), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: a chunk of one step needs no cache
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None or T == 1 else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if S:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: scaled by the cached length
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h + S)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: positions in tens
def turned(x, start, base=10000.0):
    T, width = x.shape[-2:]
    angles = torch.outer(torch.arange(start, start + T) // 2, base ** (-torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RotaryCachedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads or d_model // num_heads % 2:
            raise ValueError("num_heads must divide d_model, d_h must be even")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (q, k, v))
        S = 0 if cache is None else cache[0].shape[2]
        q, k = turned(q, S), turned(k, S)
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores + torch.triu(torch.full((T, S + T), float("-inf")), diagonal=S + 1)
        merged = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        return self.out(merged), (k, v)

# %% wrong: exponent without the two -> -p / d_h
#-     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
#+     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width // 2) / width))

# %% wrong: exponent with the two twice -> counts by two already
#-     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
#+     angles = torch.outer(torch.arange(start, start + T), base ** (-2 * torch.arange(0, width, 2) / width))

# %% wrong: exponent of the wrong sign
#-     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
#+     angles = torch.outer(torch.arange(start, start + T), base ** (torch.arange(0, width, 2) / width))

# %% wrong: exponents as shares of the model width -> shares of d; they are
#-         q, k = turned(q, S), turned(k, S)
#+         q, k = turned(q, S, 10000.0 ** (1 / self.h)), turned(k, S, 10000.0 ** (1 / self.h))

# %% wrong: cached before the turn, cached keys never turned -> turn first, then cache
#-         q, k = turned(q, S), turned(k, S)
#-         if cache is not None:
#-             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
#+         raw = k if cache is None else torch.cat((cache[0], k), dim=2)
#+         q, k = turned(q, S), turned(k, S)
#+         if cache is not None:
#+             k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)

#-         return self.out(merged), (k, v)
#+         return self.out(merged), (raw, v)

# %% wrong: later pairs of the head not turned
#-     return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
#+     whole = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
#+     return torch.cat((whole[..., :2], x[..., 2:]), dim=-1)

# %% right: rotation as a matrix for each position
#-     return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
#+     pairs = x.unflatten(-1, (-1, 2))[..., None]
#+     turns = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2).to(x.dtype)
#+     return (turns @ pairs).flatten(-3)

# %% right: frequencies by an exponential of logarithms
#-     angles = torch.outer(torch.arange(start, start + T), base ** (-torch.arange(0, width, 2) / width))
#+     rates = torch.exp(-math.log(base) * torch.arange(0, width, 2) / width)
#+     angles = torch.arange(start, start + T)[:, None] * rates
