# %% setup
import numpy as np

def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1.0, s)

def causal_mask(time):
    if time < 1:
        raise ValueError("time must be positive")
    return np.tri(time, dtype=bool)

def split_heads(values, heads):
    values = np.asarray(values)
    time, width = values.shape
    if width % heads:
        raise ValueError("heads must divide the width")
    return values.reshape(time, heads, width // heads).transpose(1, 0, 2)

def merge_heads(values):
    values = np.asarray(values)
    heads, time, width = values.shape
    return values.transpose(1, 0, 2).reshape(time, heads * width)

def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = row_softmax(np.where(causal_mask(len(hidden)), scores, -np.inf))
    merged = merge_heads(weights @ v)
    return merged @ wo, weights, merged

def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    centred = values - values.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(values.var(axis=-1, keepdims=True) + epsilon) + beta

def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ w2 + b2

# %% right: two lines
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    gamma1, beta1, wq, wk, wv, wo = attention_weights
    gamma2, beta2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, gamma1, beta1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, gamma2, beta2), w1, b1, w2, b2)

# %% right: all by hand
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.array(values)
    T, d = x.shape
    n = lambda v, g, b: g * (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) + b
    y = n(x, *attention_weights[:2])
    q, k, v = ((y @ w).reshape(T, heads, -1).swapaxes(0, 1) for w in attention_weights[2:5])
    s = q @ k.swapaxes(1, 2) / (d // heads) ** 0.5
    s = np.where(np.tri(T, dtype=bool), s, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True))
    x = x + (e / e.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(T, d) @ attention_weights[5]
    g, b, w1, b1, w2, b2 = feed_forward_weights
    z = n(x, g, b) @ w1 + b1
    return x + 0.5 * z * (1 + np.tanh(0.7978845608028654 * (z + 0.044715 * z**3))) @ w2 + b2

# %% right: sublayers as functions
def attention_branch(x, weights, heads):
    gamma, beta, *projections = weights
    return multi_head_attention(layer_norm(x, gamma, beta, 1e-5), *projections, heads)[0]

def mlp_branch(x, weights):
    return feed_forward(layer_norm(x, weights[0], weights[1]), *weights[2:])

def decoder_block(values, attention_weights, feed_forward_weights, heads):
    stream = np.copy(values)
    stream += attention_branch(stream, attention_weights, heads)
    stream += mlp_branch(stream, feed_forward_weights)
    return stream

# %% right: own names for earlier functions
mha, ln, mlp = multi_head_attention, layer_norm, feed_forward
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    middle = np.add(values, mha(ln(values, *attention_weights[:2]), *attention_weights[2:], heads)[0])
    return middle + mlp(ln(middle, *feed_forward_weights[:2]), *feed_forward_weights[2:])

# %% wrong: post-norm -> that is post-norm
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = layer_norm(values + multi_head_attention(values, wq, wk, wv, wo, heads)[0], g1, be1)
    return layer_norm(values + feed_forward(values, w1, b1, w2, b2), g2, be2)

# %% wrong: residual from the norm -> residual carries the normalised input
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    n = layer_norm(values, g1, be1); values = n + multi_head_attention(n, wq, wk, wv, wo, heads)[0]
    n = layer_norm(values, g2, be2); return n + feed_forward(n, w1, b1, w2, b2)

# %% wrong: no residual -> replace the stream
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: second residual missing -> replaces the stream
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: first residual missing -> replaces the stream
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: second sum from the input -> what attention added is lost
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    y = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(y, g2, be2), w1, b1, w2, b2)

# %% wrong: parallel branches -> reads the block's input
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    y = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return y + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: feed-forward first -> comes before attention
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)
    return values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]

# %% wrong: no norm -> nothing is normalised
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(values, wq, wk, wv, wo, heads)[0]
    return values + feed_forward(values, w1, b1, w2, b2)

# %% wrong: no second norm -> must read a normalised copy
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(values, w1, b1, w2, b2)

# %% wrong: one norm for both -> used for both norms
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g1, be1), w1, b1, w2, b2)

# %% wrong: gamma and beta swapped -> gamma and beta are swapped
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, be1, g1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, be2, g2), w1, b1, w2, b2)

# %% wrong: one head -> heads has no effect
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, 1)[0]
    return values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: merged in place of the output -> has gone through wo
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[2]
    return values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: value weights as keys
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wv, wk, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: final norm added
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return layer_norm(values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2), 1.0, 0.0)

# %% wrong: biases left out
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g2, be2), w1, 0 * b1, w2, 0 * b2)

# %% wrong: scaled residual
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values + 0.5 * feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: norm over time
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values.T, 1, 0).T * g1 + be1, wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g2, be2), w1, b1, w2, b2)

# %% wrong: another epsilon
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1, 0.3), wq, wk, wv, wo, heads)[0]
    return values + feed_forward(layer_norm(values, g2, be2, 0.3), w1, b1, w2, b2)

# %% wrong: attention only -> feed-forward layer is missing
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    g1, be1, wq, wk, wv, wo = attention_weights
    g2, be2, w1, b1, w2, b2 = feed_forward_weights
    values = values + multi_head_attention(layer_norm(values, g1, be1), wq, wk, wv, wo, heads)[0]
    return values

# %% wrong: stream changed in place -> changed in place
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    values = np.asarray(values)
    values += multi_head_attention(layer_norm(values, *attention_weights[:2]), *attention_weights[2:], heads)[0]
    values += feed_forward(layer_norm(values, *feed_forward_weights[:2]), *feed_forward_weights[2:])
    return values

# %% wrong: no mask -> attention sees later positions
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values)
    y = layer_norm(x, *attention_weights[:2])
    q, k, v = (split_heads(y @ w, heads) for w in attention_weights[2:5])
    w = row_softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    x = x + merge_heads(w @ v) @ attention_weights[5]
    return x + feed_forward(layer_norm(x, *feed_forward_weights[:2]), *feed_forward_weights[2:])

# %% right: a class and in-place sums on a copy
class Block:
    def __call__(self, values, attention_weights, feed_forward_weights, heads):
        stream = np.array(values, dtype=float)
        stream += multi_head_attention(layer_norm(stream, *attention_weights[:2]), *attention_weights[2:], heads)[0]
        stream += feed_forward(layer_norm(stream, *feed_forward_weights[:2]), *feed_forward_weights[2:])
        return stream

decoder_block = Block()

# %% right: torch with exact GELU
import torch
import torch.nn.functional as F
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    t = lambda a: torch.tensor(np.asarray(a, dtype=float))
    x = t(values); g1, b1, wq, wk, wv, wo = map(t, attention_weights); g2, b2, w1, c1, w2, c2 = map(t, feed_forward_weights)
    n = F.layer_norm(x, x.shape[-1:], g1, b1)
    q, k, v = ((n @ w).unflatten(-1, (heads, -1)).transpose(0, 1) for w in (wq, wk, wv))
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1)
    x = x + a @ wo
    return x + F.gelu(F.layer_norm(x, x.shape[-1:], g2, b2) @ w1 + c1) @ w2 + c2

# %% right: named by a dictionary, reduced
from functools import reduce
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    branches = [
        lambda x: multi_head_attention(layer_norm(x, attention_weights[0], attention_weights[1]), *attention_weights[2:], heads)[0],
        lambda x: feed_forward(layer_norm(x, feed_forward_weights[0], feed_forward_weights[1]), *feed_forward_weights[2:]),
    ]
    return reduce(lambda x, branch: x + branch(x), branches, np.asarray(values)).tolist()

# %% wrong: dropped last position
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0]
    out = x + feed_forward(layer_norm(x, g2, b2), *l)
    out[-1] = x[-1]
    return out

# %% wrong: norm parameters of the branches swapped
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g2, b2), *p, heads)[0]
    return x + feed_forward(layer_norm(x, g1, b1), *l)

# %% wrong: norm of the sum added -> normalised once more
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0]
    n = layer_norm(x, g2, b2)
    return n + feed_forward(n, *l)

# %% wrong: attention twice
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    for _ in range(2):
        x = x + multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0]
    return x + feed_forward(layer_norm(x, g2, b2), *l)

# %% wrong: residual of the attention twice
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    y = x + multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0]
    return x + y + feed_forward(layer_norm(y, g2, b2), *l) - y * 0.5 - x * 0.5

# %% wrong: sandwich norms
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + layer_norm(multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0], g1, b1)
    return x + feed_forward(layer_norm(x, g2, b2), *l)

# %% wrong: wq and wk swapped
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, wq, wk, wv, wo = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), wk, wq, wv, wo, heads)[0]
    return x + feed_forward(layer_norm(x, g2, b2), *l)

# %% wrong: wv and wo swapped
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, wq, wk, wv, wo = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), wq, wk, wo, wv, heads)[0]
    return x + feed_forward(layer_norm(x, g2, b2), *l)

# %% wrong: ReLU MLP
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, w1, c1, w2, c2 = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), *p, heads)[0]
    return x + np.maximum(layer_norm(x, g2, b2) @ w1 + c1, 0) @ w2 + c2

# %% wrong: heads halved
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(layer_norm(x, g1, b1), *p, max(1, heads // 2))[0]
    return x + feed_forward(layer_norm(x, g2, b2), *l)

# %% wrong: rms norms
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    def rms(x, g, b): return g * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) + b
    x = np.asarray(values); g1, b1, *p = attention_weights; g2, b2, *l = feed_forward_weights
    x = x + multi_head_attention(rms(x, g1, b1), *p, heads)[0]
    return x + feed_forward(rms(x, g2, b2), *l)

# %% wrong: merged heads in place of the output -> has gone through wo
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, wq, wk, wv, wo = attention_weights
    g2, b2, *mlp = feed_forward_weights
    x = np.asarray(values)
    _, _, attended = multi_head_attention(layer_norm(x, g1, b1), wq, wk, wv, wo, heads)
    x = x + attended
    return x + feed_forward(layer_norm(x, g2, b2), *mlp)

# %% wrong: feed-forward forgotten -> the feed-forward layer is missing
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *attention = attention_weights
    x = np.asarray(values)
    return x + multi_head_attention(layer_norm(x, g1, b1), *attention, heads)[0]

# %% wrong: norm at the exit too -> normalised once more
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *attention = attention_weights
    g2, b2, *mlp = feed_forward_weights
    x = np.asarray(values)
    x = x + multi_head_attention(layer_norm(x, g1, b1), *attention, heads)[0]
    x = x + feed_forward(layer_norm(x, g2, b2), *mlp)
    return layer_norm(x, g2, b2)

# %% wrong: x overwritten by its norm -> the stream itself was normalised
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *attention = attention_weights
    g2, b2, *mlp = feed_forward_weights
    x = layer_norm(np.asarray(values), g1, b1)
    x = x + multi_head_attention(x, *attention, heads)[0]
    x = layer_norm(x, g2, b2)
    return x + feed_forward(x, *mlp)

# %% wrong: second branch reads values -> reads the block's input
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *attention = attention_weights
    g2, b2, *mlp = feed_forward_weights
    x = np.asarray(values)
    y = x + multi_head_attention(layer_norm(x, g1, b1), *attention, heads)[0]
    return y + feed_forward(layer_norm(x, g2, b2), *mlp)

# %% wrong: tuple of attention added -> your code raised
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, *attention = attention_weights
    g2, b2, *mlp = feed_forward_weights
    x = values + multi_head_attention(layer_norm(values, g1, b1), *attention, heads)
    return x + feed_forward(layer_norm(x, g2, b2), *mlp)

# %% right: increments collected and summed
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    (g1, b1), (g2, b2) = attention_weights[:2], feed_forward_weights[:2]
    stream = [np.asarray(values)]
    stream.append(multi_head_attention(layer_norm(sum(stream), g1, b1), *attention_weights[2:], heads)[0])
    stream.append(feed_forward(layer_norm(sum(stream), g2, b2), *feed_forward_weights[2:]))
    return sum(stream)

# %% right: einsum of everything, float32
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    g1, b1, wq, wk, wv, wo = (np.asarray(w, np.float32) for w in attention_weights)
    g2, b2, w1, c1, w2, c2 = (np.asarray(w, np.float32) for w in feed_forward_weights)
    x = np.asarray(values, np.float32)
    n = layer_norm(x, g1, b1)
    q, k, v = (np.einsum("td,dhc->htc", n, w.reshape(len(w), heads, -1)) for w in (wq, wk, wv))
    s = np.einsum("htc,hsc->hts", q, k) / np.float32(q.shape[-1]) ** np.float32(0.5)
    a = row_softmax(np.where(causal_mask(len(x)), s, np.float32(-1e30)))
    x = x + np.einsum("hts,hsc,hcd->td", a, v, wo.reshape(heads, -1, wo.shape[1]))
    h = layer_norm(x, g2, b2) @ w1 + c1
    return x + gelu(h) @ w2 + c2

# %% right: position by position in the second half
def decoder_block(values, attention_weights, feed_forward_weights, heads):
    x = np.array(values, dtype=float)
    x += multi_head_attention(layer_norm(x, *attention_weights[:2]), *attention_weights[2:], heads)[0]
    return np.stack([row + feed_forward(layer_norm(row, *feed_forward_weights[:2]), *feed_forward_weights[2:]) for row in x])
