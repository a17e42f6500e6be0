# %% setup
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% right: plain
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: other names, orders and kernels
class Heads(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.k, self.q, self.v, self.o = (nn.Linear(d, d, bias=i == 3) for i in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.mlp = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))
        self.first, self.heads = nn.LayerNorm(d), Heads(d, h)

    def forward(self, x):
        x = x + self.heads(self.first(x))
        return x + self.mlp(x)


class GPTStyleLM(nn.Module):
    def __init__(self, V, C, n_layers, d, h):
        super().__init__()
        if d % h != 0:
            raise ValueError("n_heads")
        self.lm = nn.Linear(d, V)
        self.last = nn.LayerNorm(d)
        self.emb = nn.Embedding(V, d)
        self.pos = nn.Parameter(torch.zeros(C, d))
        self.layers = nn.Sequential(*[Layer(d, h) for _ in range(n_layers)])

    def forward_hidden(self, idx):
        if idx.size(1) > len(self.pos):
            raise ValueError("too long")
        return self.last(self.layers(self.emb(idx) + self.pos[: idx.size(1)]))

    def forward(self, idx, targets=None):
        return self.lm(self.forward_hidden(idx)), None

# %% right: norms by hand
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.scale * centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + 1e-5) + self.shift


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = Norm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = Norm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = Norm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: value first, positions of the batch's shape
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in (lambda v, k, q: (q, k, v))(*self.qkv(x).chunk(3, dim=-1)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T).expand(len(ids), T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: no biases in the blocks
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d, bias=False)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: no positions used -> positions are not added
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids)

# %% wrong: no position table
#-         self.positions = nn.Embedding(context_length, d_model)
#
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids)

# %% wrong: last rows of the table -> last rows of the position table
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + self.positions(torch.arange(self.context_length - T, self.context_length))

# %% wrong: position of the sequence in the batch
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + self.positions(torch.arange(len(ids)))[:, None]

# %% wrong: position zero for all
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + self.positions(torch.zeros(T, dtype=torch.long))

# %% wrong: sinusoids
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + torch.sin(torch.arange(T, dtype=torch.float64)[:, None] * torch.ones(self.norm.weight.numel()))

# %% wrong: gelu -> this variant has ReLU
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         return x + self.down(F.gelu(self.up(self.norm2(x))))

# %% wrong: no activation -> no activation
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         return x + self.down(self.up(self.norm2(x)))

# %% wrong: tied head
#-         self.head = nn.Linear(d_model, vocab_size)
#+         self.head = nn.Linear(d_model, vocab_size)
#+         self.head.weight = self.tokens.weight

# %% wrong: head without bias -> the head has no bias
#-         self.head = nn.Linear(d_model, vocab_size)
#+         self.head = nn.Linear(d_model, vocab_size, bias=False)

# %% wrong: embedding for a head -> reads the embedding's weight
#-         return self.head(self.forward_hidden(ids))
#+         return F.linear(self.forward_hidden(ids), self.tokens.weight, self.head.bias)

# %% wrong: probabilities -> probabilities come
#-         return self.head(self.forward_hidden(ids))
#+         return self.head(self.forward_hidden(ids)).softmax(-1)

# %% wrong: no final norm -> final norm is not used
#-         return self.norm(x)
#+         return x

# %% wrong: final norm only in forward
#-         return self.norm(x)
#+         return x
#
#-         return self.head(self.forward_hidden(ids))
#+         return self.head(self.norm(self.forward_hidden(ids)))

# %% wrong: forward_hidden gives the logits
#-         return self.norm(x)
#+         return self.head(self.norm(x))
#
#-         return self.head(self.forward_hidden(ids))
#+         return self.forward_hidden(ids)

# %% wrong: states of the last position
#-         return self.norm(x)
#+         return self.norm(x)[:, -1:]

# %% wrong: norm twice
#-         return self.head(self.forward_hidden(ids))
#+         return self.head(self.norm(self.forward_hidden(ids)))

# %% wrong: one block shared
#-         self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
#+         self.blocks = nn.ModuleList([Block(d_model, n_heads)] * n_layers)

# %% wrong: blocks in a plain list
#-         self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
#+         self.blocks = [Block(d_model, n_heads) for _ in range(n_layers)]

# %% wrong: first block in every place -> first layer is used in every place
#-             x = block(x)
#+             x = self.blocks[0](x)

# %% wrong: last block unused -> last layer is not used
#-         for block in self.blocks:
#+         for block in self.blocks[:-1]:

# %% wrong: narrow MLP
#-         self.up = nn.Linear(d, 4 * d)
#-         self.down = nn.Linear(4 * d, d)
#+         self.up = nn.Linear(d, 2 * d)
#+         self.down = nn.Linear(2 * d, d)

# %% wrong: post-norm -> after the residual sums
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         x = self.norm1(x + self.attention(x))
#+         return self.norm2(x + self.down(F.relu(self.up(x))))

# %% wrong: no mask -> there is no mask
#-         scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))

# %% wrong: mask hides the diagonal -> hides the diagonal
#-         scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
#+         scores = scores.masked_fill(torch.ones(T, T).triu(0).bool(), float("-inf"))

# %% wrong: scaled by d -> root of d; the root of d_h
#-         scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
#+         scores = q @ k.transpose(-2, -1) / math.sqrt(d)

# %% wrong: one head -> all of d is one head
#-         self.h = h
#+         self.h = 1

# %% wrong: merged without transpose -> without transpose(1, 2) back
#-         return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))
#+         return self.out((scores.softmax(dim=-1) @ v).reshape(B, T, d))

# %% wrong: softmax over queries -> over the queries
#-         return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))
#+         return self.out((scores.softmax(dim=-2) @ v).transpose(1, 2).reshape(B, T, d))

# %% wrong: residual from the norm -> adds the normalised input
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         x = self.norm1(x)
#+         x = x + self.attention(x)
#+         x = self.norm2(x)
#+         return x + self.down(F.relu(self.up(x)))

# %% wrong: dropout
#-         return self.norm(x)
#+         return F.dropout(self.norm(x), 0.1, self.training)

# %% wrong: embedding scaled
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) * self.norm.weight.numel() ** 0.5 + self.positions(torch.arange(T))

# %% wrong: too long cut off
#-             raise ValueError("ids: longer than the context")
#+             ids, T = ids[:, -self.context_length :], self.context_length

# %% wrong: sizes not checked
#-         if d_model % n_heads:
#-             raise ValueError("n_heads must divide d_model")

# %% wrong: states detached
#-         return self.head(self.forward_hidden(ids))
#+         return self.head(self.forward_hidden(ids).detach())

# %% wrong: arguments in another order
#-     def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
#+     def __init__(self, vocab_size, context_length, d_model, n_layers, n_heads):

# %% right: one-hot positions, clamp for ReLU
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.up(self.norm2(x)).clamp(min=0))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + (torch.eye(self.context_length, dtype=self.positions.weight.dtype)[:T] @ self.positions.weight)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: parameter for a position table
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Parameter(torch.randn(context_length, d_model))
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions[:T]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: logits and nothing else, loss on the side
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return F.linear(self.forward_hidden(ids), self.head.weight) + self.head.bias

# %% wrong: positions subtracted
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) - self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: positions multiplied
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) * self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: positions from one
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions((torch.arange(T) + 1) % self.context_length)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: squared ReLU
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))) ** 2)


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: leaky ReLU
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.leaky_relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: head on the states before the norm
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)

# %% wrong: context one too long accepted
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length + 1:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T).clamp(max=self.context_length - 1))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: context of exactly the length refused
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T >= self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% wrong: positions also before every block
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def attention(self, x):
        B, T, d = x.shape
        q, k, v = (part.view(B, T, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GPTStyleLM(nn.Module):
    def __init__(self, vocab_size, context_length, n_layers, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward_hidden(self, ids):
        T = ids.shape[1]
        if T > self.context_length:
            raise ValueError("ids: longer than the context")
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for block in self.blocks:
            x = block(x) + 0.1 * self.positions(torch.arange(T))
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.forward_hidden(ids))

# %% right: table of positions with a leading axis
#-         self.positions = nn.Embedding(context_length, d_model)
#+         self.positions = nn.Parameter(torch.zeros(1, context_length, d_model))

#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + self.positions[:, :T]

# %% right: negative infinity by where, F.relu_
#-         scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
#+         scores = torch.where(torch.ones(T, T).tril().bool(), scores, torch.tensor(float("-inf"), dtype=x.dtype))

# %% wrong: post-norm, no final norm -> the final one is missing
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         x = self.norm1(x + self.attention(x))
#+         return self.norm2(x + self.down(F.relu(self.up(x))))

#-         return self.norm(x)
#+         return x

# %% wrong: norms on the branches -> stand on what a branch gives
#-         x = x + self.attention(self.norm1(x))
#-         return x + self.down(F.relu(self.up(self.norm2(x))))
#+         x = x + self.norm1(self.attention(x))
#+         return x + self.norm2(self.down(F.relu(self.up(x))))

# %% wrong: blocks in a plain list, cast by hand -> keep blocks in nn.ModuleList
#-         self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
#+         self.blocks = [Block(d_model, n_heads) for _ in range(n_layers)]

#-             x = block(x)
#+             x = block.to(x.dtype)(x)

# %% wrong: zero times minus infinity -> 0 * -inf
#-         scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
#+         scores = scores + torch.ones(T, T).triu(1) * float("-inf")

# %% wrong: positions of the longest context averaged
#-         x = self.tokens(ids) + self.positions(torch.arange(T))
#+         x = self.tokens(ids) + self.positions.weight.mean(0)
