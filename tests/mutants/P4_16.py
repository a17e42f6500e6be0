# %% setup
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% right: plain
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% right: a sequence of modules
class TwoBlockLM(nn.Sequential):
    def __init__(self, vocab_size, d_model, make_block):
        parts = nn.Embedding(vocab_size, d_model), make_block(), make_block(), nn.LayerNorm(d_model)
        super().__init__(*parts, nn.Linear(d_model, vocab_size, bias=False))

# %% right: tied head
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% right: second block defined first, a loss beside the logits
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.upper = make_block()
        self.lower = make_block()
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        x = self.upper(self.lower(x))
        return self.head(self.norm(x)), None

# %% right: own norm and own table
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.scale * centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + 1e-5) + self.shift


class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocab_size, d_model))
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = Norm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding[token_ids]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% right: one-hot times a matrix
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = F.one_hot(token_ids, self.embedding.num_embeddings).to(self.norm.weight.dtype) @ self.embedding.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% wrong: no final norm used -> final norm is not used
#-         return self.head(self.norm(x))
#+         return self.head(x)

# %% wrong: no final norm
#-         self.norm = nn.LayerNorm(d_model)
#
#-         return self.head(self.norm(x))
#+         return self.head(x)

# %% wrong: norm before the blocks -> comes before the blocks
#-         x = self.embedding(token_ids)
#+         x = self.norm(self.embedding(token_ids))
#
#-         return self.head(self.norm(x))
#+         return self.head(x)

# %% wrong: norm after each block -> after every block
#-             x = block(x)
#-         return self.head(self.norm(x))
#+             x = self.norm(block(x))
#+         return self.head(x)

# %% wrong: probabilities -> probabilities come
#-         return self.head(self.norm(x))
#+         return self.head(self.norm(x)).softmax(-1)

# %% wrong: log-probabilities -> log-probabilities come
#-         return self.head(self.norm(x))
#+         return self.head(self.norm(x)).log_softmax(-1)

# %% wrong: one block twice -> of two blocks were expected
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         block = make_block()
#+         self.blocks = nn.ModuleList([block, block])

# %% wrong: a single block
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         self.blocks = nn.ModuleList([make_block()])

# %% wrong: three blocks
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         self.blocks = nn.ModuleList([make_block(), make_block(), make_block()])

# %% wrong: blocks in a plain list -> as attributes or in nn.ModuleList
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         self.blocks = [make_block(), make_block()]

# %% wrong: first block twice, second never -> used twice and the other never
#-         for block in self.blocks:
#-             x = block(x)
#+         x = self.blocks[0](self.blocks[0](x))

# %% wrong: second block never -> only one of the two
#-         for block in self.blocks:
#-             x = block(x)
#+         x = self.blocks[0](x)

# %% wrong: residual around the blocks -> a residual is added
#-             x = block(x)
#+             x = x + block(x)

# %% wrong: embedding scaled -> multiplied by the root of d
#-         x = self.embedding(token_ids)
#+         x = self.embedding(token_ids) * self.norm.weight.numel() ** 0.5

# %% wrong: another epsilon
#-         self.norm = nn.LayerNorm(d_model)
#+         self.norm = nn.LayerNorm(d_model, eps=0.1)

# %% wrong: last position only
#-         return self.head(self.norm(x))
#+         return self.head(self.norm(x[:, -1:]))

# %% wrong: mean over time added
#-         return self.head(self.norm(x))
#+         return self.head(self.norm(x + x.mean(1, keepdim=True)))

# %% wrong: dropout
#-         x = self.embedding(token_ids)
#+         x = F.dropout(self.embedding(token_ids), 0.2, self.training)

# %% wrong: embedding detached
#-         x = self.embedding(token_ids)
#+         x = self.embedding(token_ids).detach()

# %% wrong: states, no head
#-         return self.head(self.norm(x))
#+         return self.norm(x)

# %% wrong: softmax over the vocabulary of the batch
#-         return self.head(self.norm(x))
#+         return self.head(self.norm(x)).softmax(0)

# %% wrong: positions embedded too
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         self.positions = nn.Embedding(64, d_model)
#
#-         x = self.embedding(token_ids)
#+         x = self.embedding(token_ids) + self.positions(torch.arange(token_ids.shape[1]))

# %% wrong: blocks side by side
#-         for block in self.blocks:
#-             x = block(x)
#+         x = x + sum(block(x) - x for block in self.blocks)

# %% wrong: ids shifted by one
#-         x = self.embedding(token_ids)
#+         x = self.embedding(token_ids.roll(1, dims=1))

# %% right: functional head over a free table
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.head.weight, self.head.bias)

# %% right: reduce over blocks, a dictionary of modules
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        from functools import reduce
        x = reduce(lambda state, block: block(state), self.blocks, x)
        return self.head(self.norm(x))

# %% right: keyword defaults and hooks that do nothing
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block, *, depth=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList((make_block() for _ in range(depth)))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% wrong: blocks in reverse order of creation, one skipped for short inputs
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks[: 1 if token_ids.shape[1] < 3 else 2]:
            x = block(x)
        return self.head(self.norm(x))

# %% wrong: dropout of a hundredth
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(F.dropout(self.norm(x), 0.01, self.training))

# %% wrong: logits scaled by the root of d
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) / x.shape[-1] ** 0.5

# %% wrong: logits centred over the vocabulary
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        y = self.head(self.norm(x))
        return y - y.mean(-1, keepdim=True)

# %% wrong: logits capped at thirty
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return 3 * torch.tanh(self.head(self.norm(x)) / 3)

# %% wrong: norm of the embedding added
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = F.normalize(self.embedding(token_ids), dim=-1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% wrong: first token's embedding twice
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        x = x + F.pad(x[:, :-1], (0, 0, 1, 0))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

# %% wrong: argmax ids
class TwoBlockLM(nn.Module):
    def __init__(self, vocab_size, d_model, make_block):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([make_block(), make_block()])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).argmax(-1)

# %% right: tied head with a bias
#-         self.head = nn.Linear(d_model, vocab_size)
#+         self.head = nn.Linear(d_model, vocab_size)
#+         self.head.weight = self.embedding.weight

# %% right: tied head with a bias of its own
#-         self.head = nn.Linear(d_model, vocab_size)
#+         self.bias = nn.Parameter(torch.zeros(vocab_size))

#-         return self.head(self.norm(x))
#+         return F.linear(self.norm(x), self.embedding.weight, self.bias)

# %% wrong: second block a copy of the first -> call make_block() for each
#-         self.blocks = nn.ModuleList([make_block(), make_block()])
#+         import copy
#+         block = make_block()
#+         self.blocks = nn.ModuleList([block, copy.deepcopy(block)])

# %% wrong: norm of the embedding and at the end
#-         x = self.embedding(token_ids)
#+         x = self.norm(self.embedding(token_ids))

# %% wrong: log of the logits' size
#-         return self.head(self.norm(x))
#+         logits = self.head(self.norm(x))
#+         return logits.sign() * torch.log1p(logits.abs())

# %% wrong: blocks see the sequence backwards
#-             x = block(x)
#+             x = block(x.flip(1)).flip(1)

# %% wrong: head before the norm of the vocabulary
#-         return self.head(self.norm(x))
#+         logits = self.head(x)
#+         return (logits - logits.mean(-1, keepdim=True)) / logits.std(-1, keepdim=True)
