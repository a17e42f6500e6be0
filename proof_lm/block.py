"""The pre-norm decoder block in NumPy: LayerNorm, feed-forward, residual stream, logits and loss.

Axis letters: B batch, T time, d model width, h heads, d_ff feed-forward width, V vocabulary.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proof_lm.attention import MultiHeadAttention, multi_head_attention


def layer_norm(values: ArrayLike, gamma: ArrayLike, beta: ArrayLike, epsilon: float = 1e-5) -> NDArray:
    """Normalise every position alone over its features, then scale by gamma and shift by beta.

    values (..., d), gamma (d,), beta (d,) -> (..., d). Biased variance, epsilon inside the root, so a
    constant row becomes beta. Source: Ba, Kiros, Hinton, "Layer Normalization" (2016).
    """
    values = np.asarray(values)
    mean = values.mean(axis=-1, keepdims=True)  # (..., 1)
    variance = values.var(axis=-1, keepdims=True)  # (..., 1)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta


def gelu(values: ArrayLike) -> NDArray:
    """x Φ(x) with Φ, the normal distribution function, in its tanh form; elementwise, any shape.

    Within 5e-4 of the exact form. Source: Hendrycks, Gimpel, "Gaussian Error Linear Units" (2016).
    """
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))


def feed_forward(values: ArrayLike, w1: ArrayLike, b1: ArrayLike, w2: ArrayLike, b2: ArrayLike) -> NDArray:
    """Two linear maps with GELU between them, the same at every position.

    values (..., d), w1 (d, d_ff), b1 (d_ff,), w2 (d_ff, d), b2 (d,) -> (..., d).
    Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.3.
    """
    return gelu(np.asarray(values) @ w1 + b1) @ w2 + b2


def decoder_block(
    values: NDArray, attention_weights: tuple, feed_forward_weights: tuple, heads: int
) -> NDArray:
    """Pre-norm block on one sequence: x + attention(norm(x)), then y + feed_forward(norm(y)).

    values (T, d) -> (T, d). attention_weights is (gamma1, beta1, wq, wk, wv, wo), feed_forward_weights
    is (gamma2, beta2, w1, b1, w2, b2). ValueError if heads does not divide d.
    Source: Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020).
    """
    gamma1, beta1, wq, wk, wv, wo = attention_weights
    gamma2, beta2, w1, b1, w2, b2 = feed_forward_weights
    attended, _, _ = multi_head_attention(layer_norm(values, gamma1, beta1), wq, wk, wv, wo, heads)
    values = values + attended
    return values + feed_forward(layer_norm(values, gamma2, beta2), w1, b1, w2, b2)


def tiny_transformer_forward(
    token_ids: ArrayLike,
    token_embedding: NDArray,
    positional_embedding: NDArray,
    blocks: list[tuple[tuple, tuple]],
    output_projection: NDArray,
    heads: int,
) -> NDArray:
    """Logits of one sequence: embed, add learned positions, pass the blocks, project on the vocabulary.

    token_ids (T,) int, token_embedding (V, d), positional_embedding (context, d), blocks a list of
    (attention_weights, feed_forward_weights), output_projection (d, V) -> (T, V). No final norm.
    ValueError for ids outside 0..V-1 and for sequences longer than the table of positions.
    """
    token_ids = np.asarray(token_ids)
    if np.any((token_ids < 0) | (token_ids >= len(token_embedding))):
        raise ValueError(f"token_ids must lie in 0..{len(token_embedding) - 1}, got {token_ids.tolist()}")
    if len(token_ids) > len(positional_embedding):
        raise ValueError(f"token_ids has {len(token_ids)} steps, more than {len(positional_embedding)} positions")
    hidden = token_embedding[token_ids] + positional_embedding[: len(token_ids)]  # (T, d)
    for attention_weights, feed_forward_weights in blocks:
        hidden = decoder_block(hidden, attention_weights, feed_forward_weights, heads)
    return hidden @ output_projection  # (T, V)


def masked_cross_entropy(logits: ArrayLike, labels: ArrayLike, loss_mask: ArrayLike) -> float:
    """Mean of -log softmax(logits)[label] in nats over the positions where loss_mask is True.

    logits (..., V), labels (...) int and already shifted, loss_mask (...) bool. No kept position: 0.0.
    What the mask hides is never read, so labels there may be any filler. ValueError if the leading
    shapes differ or a kept label lies outside 0..V-1.
    """
    logits, labels, kept = np.asarray(logits, float), np.asarray(labels), np.asarray(loss_mask, bool)
    if not logits.shape[:-1] == labels.shape == kept.shape:
        raise ValueError(f"logits {logits.shape}, labels {labels.shape}, loss_mask {kept.shape} do not match")
    logits, labels = logits[kept], labels[kept]  # (kept, V), (kept,)
    if len(labels) == 0:
        return 0.0
    if labels.min() < 0 or labels.max() >= logits.shape[-1]:
        raise ValueError(f"labels must lie in 0..{logits.shape[-1] - 1} wherever loss_mask is True")
    shifted = logits - logits.max(axis=-1, keepdims=True)  # largest logit 0: exp cannot overflow
    log_probability = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return float(-log_probability[np.arange(len(labels)), labels].mean())


class LayerNorm:
    """layer_norm with its own gamma (d,) of ones and beta (d,) of zeros; 2 d parameters."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        self.gamma = np.ones(d_model)
        self.beta = np.zeros(d_model)
        self.epsilon = epsilon

    def __call__(self, values: NDArray) -> NDArray:
        return layer_norm(values, self.gamma, self.beta, self.epsilon)

    def parameters(self) -> dict[str, NDArray]:
        """gamma and beta by name, the arrays themselves and not copies."""
        return {"gamma": self.gamma, "beta": self.beta}


class MLP:
    """feed_forward with its own weights: normal draws from rng of scale 1 / sqrt(inputs), biases zero.

    2 d d_ff + d_ff + d parameters.
    """

    def __init__(self, d_model: int, d_ff: int, rng: np.random.Generator) -> None:
        self.w1 = rng.normal(scale=d_model**-0.5, size=(d_model, d_ff))
        self.b1 = np.zeros(d_ff)
        self.w2 = rng.normal(scale=d_ff**-0.5, size=(d_ff, d_model))
        self.b2 = np.zeros(d_model)

    def __call__(self, values: NDArray) -> NDArray:
        return feed_forward(values, self.w1, self.b1, self.w2, self.b2)

    def parameters(self) -> dict[str, NDArray]:
        """Weights and biases by name, the arrays themselves and not copies."""
        return {"w1": self.w1, "b1": self.b1, "w2": self.w2, "b2": self.b2}


class DecoderBlock:
    """A decoder block over a batch: hidden (B, T, d) -> (B, T, d).

    norm="pre" normalises what a sublayer reads, x + f(norm(x)); norm="post" what the residual sum
    gives, norm(x + f(x)). ValueError for another norm, and if num_heads does not divide d_model.
    """

    def __init__(
        self, d_model: int = 8, num_heads: int = 2, d_ff: int = 32, seed: int = 7, norm: str = "pre"
    ) -> None:
        if norm not in ("pre", "post"):
            raise ValueError(f"norm must be 'pre' or 'post', got {norm!r}")
        rng = np.random.default_rng(seed)
        self.norm = norm
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads, rng)
        self.mlp = MLP(d_model, d_ff, rng)

    def __call__(self, hidden: NDArray) -> NDArray:
        if self.norm == "pre":
            hidden = hidden + self.attention(self.norm1(hidden))
            return hidden + self.mlp(self.norm2(hidden))
        hidden = self.norm1(hidden + self.attention(hidden))
        return self.norm2(hidden + self.mlp(hidden))

    def parameters(self) -> dict[str, NDArray]:
        """Every array of the four parts, named "norm1.gamma", "attention.wq", ..., not copied."""
        parts = {"norm1": self.norm1, "attention": self.attention, "norm2": self.norm2, "mlp": self.mlp}
        return {
            f"{part}.{name}": array
            for part, layer in parts.items()
            for name, array in layer.parameters().items()
        }

    @property
    def parameter_count(self) -> int:
        """4 d^2 + 2 d d_ff weights, with 9 d + d_ff biases, gammas and betas."""
        return sum(array.size for array in self.parameters().values())
