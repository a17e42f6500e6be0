# %% setup
import numpy as np


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def split(x, heads):
    t, d = x.shape
    return x.reshape(t, heads, d // heads).transpose(1, 0, 2)


def merge(x):
    h, t, w = x.shape
    return x.transpose(1, 0, 2).reshape(t, h * w)


def norm(x, gamma, beta, eps=1e-5):
    s = np.sqrt(x.var(-1, keepdims=True) + eps)
    n = (x - x.mean(-1, keepdims=True)) / s
    return n * gamma + beta, n, s


def norm_back(n, s, gamma, up):
    g = up * gamma
    dx = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s
    return dx, (up * n).sum(0), up.sum(0)


ROOT = np.sqrt(2 / np.pi)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def gelu_slope(x):
    t = np.tanh(ROOT * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * ROOT * (1 + 3 * 0.044715 * x**2)


def backward(x, attention, mlp, heads, up, *, skip1=1.0, skip2=1.0, slope=gelu_slope, back=norm_back, masked=True,
             scale=True, one_head=False, swap=False, biases=True, both_up=False, middle=True, order=slice(None)):
    g1, b1, wq, wk, wv, wo = attention
    g2, b2, w1, c1, w2, c2 = mlp
    heads = 1 if one_head else heads
    a, n1, s1 = norm(x, g1, b1)
    q, k, v = (split(a @ w, heads) for w in (wq, wk, wv))
    r = 1 / np.sqrt(q.shape[-1]) if scale else 1.0
    mask = np.tril(np.ones((len(x), len(x)), bool)) if masked else True
    p = softmax(np.where(mask, q @ k.transpose(0, 2, 1) * r, -np.inf))
    m = merge(p @ v)
    y = x + m @ wo
    z, n2, s2 = norm(y if middle else x, g2, b2)
    u = z @ w1 + c1
    du = (up @ w2.T) * slope(u)
    dmlp = [z.T @ du, du.sum(0) if biases else np.zeros_like(c1), gelu(u).T @ up, up.sum(0)]
    dz, dg2, db2 = back(n2, s2, g2, du @ w1.T)
    dy = skip2 * up + dz
    into = up if both_up else dy
    dm = split(into @ wo.T, heads)
    dp = dm @ v.transpose(0, 2, 1)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    dq, dk, dv = (merge(t) for t in (ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ dm))
    da, dg1, db1 = back(n1, s1, g1, dq @ wq.T + dk @ wk.T + dv @ wv.T)
    first = [dg1, db1, a.T @ dq, a.T @ dk, a.T @ dv, m.T @ into]
    second = [dg2, db2, *dmlp]
    dx = skip1 * dy + da
    return (dx, second, first) if swap else (dx, tuple(first), tuple(second))

# %% right: everything recomputed
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream)

# %% right: lists of lists
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, first, second = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return [dx, list(first), list(second)]

# %% wrong: first skip missing -> first residual's own path
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, skip1=0.0)

# %% wrong: second skip missing -> second residual's own path
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, skip2=0.0)

# %% wrong: no skips -> neither residual's own path
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, skip1=0.0, skip2=0.0)

# %% wrong: norm as a constant scale -> mean and deviation as constants
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    def back(n, s, gamma, up):
        return up * gamma / s, (up * n).sum(0), up.sum(0)

    return backward(values, attention_weights, feed_forward_weights, heads, upstream, back=back)

# %% wrong: second norm reads the input -> reads what is between the branches
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, middle=False)

# %% wrong: upstream into both branches -> not upstream
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    right = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    wrong = backward(values, attention_weights, feed_forward_weights, heads, upstream, both_up=True)
    return right[0], wrong[1], right[2]

# %% wrong: heads ignored -> number of heads is ignored
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, one_head=True)

# %% wrong: tuples swapped -> swapped
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, swap=True)

# %% wrong: slope of ReLU for GELU -> slope of ReLU
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=lambda u: (u > 0) * 1.0)

# %% wrong: sigmoid slope for GELU -> second term is missing
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    def slope(u):
        return 0.5 * (1 + np.tanh(ROOT * (u + 0.044715 * u**3)))

    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=slope)

# %% wrong: no mask -> without the causal mask
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, masked=False)

# %% wrong: no scale -> not scaled by the root of d_h
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, scale=False)

# %% wrong: bias gradient forgotten -> b1 and b2 get the gradient
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, biases=False)

# %% wrong: d_values only
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream)[0]

# %% wrong: W_Q and W_K swapped -> wq and wk are swapped
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, (g, b, q, k, v, o), second = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (g, b, k, q, v, o), second

# %% wrong: upstream changed in place -> changed in place
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    result = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    upstream += result[0]
    return result

# %% right: torch autograd
import torch
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    leaf = lambda a: torch.tensor(a, requires_grad=True)
    x = leaf(values); A = [leaf(a) for a in attention_weights]; M = [leaf(a) for a in feed_forward_weights]
    n = torch.nn.functional.layer_norm(x, x.shape[-1:], A[0], A[1], 1e-5)
    q, k, v = ((n @ w).unflatten(-1, (heads, -1)).transpose(0, 1) for w in A[2:5])
    a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1)
    m = x + a @ A[5]
    n = torch.nn.functional.layer_norm(m, m.shape[-1:], M[0], M[1], 1e-5)
    y = m + torch.nn.functional.gelu(n @ M[2] + M[3], approximate="tanh") @ M[4] + M[5]
    (y * torch.tensor(upstream)).sum().backward()
    return x.grad, [a.grad for a in A], tuple(m.grad for m in M)

# %% right: a class around the parts
class Backward:
    def __call__(self, *arguments):
        return backward(*arguments)
decoder_block_backward = Backward()

# %% right: nested lists all the way
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, first, second = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx.tolist(), [g.tolist() for g in first], [g.tolist() for g in second]

# %% wrong: W_K and W_V swapped -> wk and wv are swapped
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (*a[:3], a[4], a[3], a[5]), m

# %% wrong: W_O transposed -> gradient of wo is transposed
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (*a[:5], a[5].T), m

# %% wrong: gamma and beta of the second norm swapped -> gamma and beta are swapped
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, a, (m[1], m[0], *m[2:])

# %% wrong: averaged over time
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, tuple(g / len(values) for g in a), tuple(g / len(values) for g in m)

# %% wrong: all signs
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return -dx, tuple(-g for g in a), tuple(-g for g in m)

# %% wrong: residuals counted twice
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, skip1=2.0)

# %% wrong: slope of exact GELU by a coarse difference
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=lambda x: (gelu(x + 0.01) - gelu(x)) / 0.01)

# %% wrong: d_beta of the first norm zero
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (a[0], 0 * a[1], *a[2:]), m

# %% wrong: one flat tuple
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return (dx, *a, *m)

# %% wrong: clipped gradients
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, a, m = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return np.clip(dx, -1, 1), tuple(np.clip(g, -1, 1) for g in a), tuple(np.clip(g, -1, 1) for g in m)

# %% wrong: slope of GELU forgotten -> GELU's slope is missing
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=np.ones_like)

# %% wrong: slope of the gate only -> the second term is missing
def gate(x):
    return 0.5 * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))

def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=gate)

# %% wrong: gradients of W_Q and W_K exchanged -> wq and wk are swapped
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, (g, b, dq, dk, dv, do), mlp = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (g, b, dk, dq, dv, do), mlp

# %% wrong: gradient of W_O the wrong way round -> gradient of wo is transposed
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, attention, mlp = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return dx, (*attention[:5], np.transpose(attention[5])), mlp

# %% wrong: W_O not transposed on the way back -> W_O goes back transposed
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    (g1, b1, wq, wk, wv, wo), (g2, b2, w1, c1, w2, c2) = attention_weights, feed_forward_weights
    x, T = values, len(values)
    a, n1, s1 = norm(x, g1, b1)
    q, k, v = (split(a @ w, heads) for w in (wq, wk, wv))
    r = q.shape[-1] ** -0.5
    p = softmax(np.where(np.tri(T, dtype=bool), q @ k.transpose(0, 2, 1) * r, -np.inf))
    merged = merge(p @ v)
    y = x + merged @ wo
    z, n2, s2 = norm(y, g2, b2)
    u = z @ w1 + c1
    du = (upstream @ w2.T) * gelu_slope(u)
    dz, dg2, db2 = norm_back(n2, s2, g2, du @ w1.T)
    dy = upstream + dz
    dm = split(dy @ wo, heads)
    dp = dm @ v.transpose(0, 2, 1)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * r
    dq, dk, dv = merge(ds @ k), merge(ds.transpose(0, 2, 1) @ q), merge(p.transpose(0, 2, 1) @ dm)
    da = dq @ wq.T + dk @ wk.T + dv @ wv.T
    dn, dg1, db1 = norm_back(n1, s1, g1, da)
    return (dy + dn, (dg1, db1, a.T @ dq, a.T @ dk, a.T @ dv, merged.T @ dy),
            (dg2, db2, z.T @ du, du.sum(0), gelu(u).T @ upstream, upstream.sum(0)))

# %% wrong: the input reached through the values alone -> add all three gradients
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    (g1, b1, wq, wk, wv, wo), (g2, b2, w1, c1, w2, c2) = attention_weights, feed_forward_weights
    x, T = values, len(values)
    a, n1, s1 = norm(x, g1, b1)
    q, k, v = (split(a @ w, heads) for w in (wq, wk, wv))
    r = q.shape[-1] ** -0.5
    p = softmax(np.where(np.tri(T, dtype=bool), q @ k.transpose(0, 2, 1) * r, -np.inf))
    merged = merge(p @ v)
    y = x + merged @ wo
    z, n2, s2 = norm(y, g2, b2)
    u = z @ w1 + c1
    du = (upstream @ w2.T) * gelu_slope(u)
    dz, dg2, db2 = norm_back(n2, s2, g2, du @ w1.T)
    dy = upstream + dz
    dm = split(dy @ wo.T, heads)
    dp = dm @ v.transpose(0, 2, 1)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * r
    dq, dk, dv = merge(ds @ k), merge(ds.transpose(0, 2, 1) @ q), merge(p.transpose(0, 2, 1) @ dm)
    dn, dg1, db1 = norm_back(n1, s1, g1, dv @ wv.T)
    return (dy + dn, (dg1, db1, a.T @ dq, a.T @ dk, a.T @ dv, merged.T @ dy),
            (dg2, db2, z.T @ du, du.sum(0), gelu(u).T @ upstream, upstream.sum(0)))

# %% wrong: biases without gradients -> b1 and b2 get the gradient
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, biases=False)

# %% right: norms multiplied out by d
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    def back(n, s, gamma, up):
        d = n.shape[-1]
        g = up * gamma
        dx = (d * g - g.sum(-1, keepdims=True) - n * (g * n).sum(-1, keepdims=True)) / (d * s)
        return dx, np.einsum("td,td->d", up, n), np.ones(len(up)) @ up
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, back=back)

# %% right: slope of GELU by a complex step
def slope(x):
    z = x + 1e-30j
    return (0.5 * z * (1 + np.tanh(ROOT * (z + 0.044715 * z**3)))).imag / 1e-30

def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    return backward(values, attention_weights, feed_forward_weights, heads, upstream, slope=slope)

# %% right: lists of gradients
def decoder_block_backward(values, attention_weights, feed_forward_weights, heads, upstream):
    dx, attention, mlp = backward(values, attention_weights, feed_forward_weights, heads, upstream)
    return [dx.tolist(), list(attention), [np.asarray(g) for g in mlp]]
