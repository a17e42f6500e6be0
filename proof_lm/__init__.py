"""ProofLM: a decoder-only Transformer whose every piece is proved.

The NumPy functions of the lessons are re-exported here; PyTorch is imported by `proof_lm.model` only.
"""

from proof_lm.attention import (
    MultiHeadAttention,
    batched_multi_head_attention,
    causal_attention,
    causal_mask,
    merge_heads,
    multi_head_attention,
    rope,
    row_softmax,
    single_head_attention,
    split_heads,
)
from proof_lm.block import (
    MLP,
    DecoderBlock,
    LayerNorm,
    decoder_block,
    feed_forward,
    gelu,
    layer_norm,
    masked_cross_entropy,
    tiny_transformer_forward,
)

__all__ = [
    "MLP",
    "DecoderBlock",
    "LayerNorm",
    "MultiHeadAttention",
    "batched_multi_head_attention",
    "causal_attention",
    "causal_mask",
    "decoder_block",
    "feed_forward",
    "gelu",
    "layer_norm",
    "masked_cross_entropy",
    "merge_heads",
    "multi_head_attention",
    "rope",
    "row_softmax",
    "single_head_attention",
    "split_heads",
    "tiny_transformer_forward",
]
