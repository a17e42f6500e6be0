"""Attention and loss in bfloat16 against torch's own in float32."""

import pytest
import torch
from torch.nn import functional as F

from proof_lm.bfloat16 import POSITIONS, QUERIES, CausalAttention, CrossEntropy, pays_for
from proof_lm.rotary import TurnedQKV, rotations


@pytest.mark.parametrize("T", [1, 9, 2 * QUERIES + 9])
@pytest.mark.parametrize("rope", [True, False], ids=["rope", "plain"])
def test_attention_is_the_fused_one_up_to_its_rounding(rope, T):
    generator = torch.Generator().manual_seed(0)
    B, h, d_h = 2, 4, 8
    half = torch.randn(B, T, 3, h, d_h, generator=generator).bfloat16().requires_grad_()
    whole = half.detach().float().requires_grad_()
    upstream = torch.randn(B, T, h, d_h, generator=generator)
    turns = rotations(torch.arange(T), d_h) if rope else None
    q, k, v = TurnedQKV.apply(whole.clone(), turns) if rope else whole.permute(2, 0, 3, 1, 4)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    attended = CausalAttention.apply(half, turns)
    torch.testing.assert_close(attended.float(), expected, atol=0.03, rtol=0.03)
    attended.backward(upstream.bfloat16())
    expected.backward(upstream)
    torch.testing.assert_close(half.grad.float(), whole.grad, atol=0.06, rtol=0.06)


def test_one_compiled_graph_of_attention_serves_any_length():
    torch.compiler.reset()
    attend = torch.compile(lambda qkv: CausalAttention.apply(qkv, None), backend="aot_eager", dynamic=True, fullgraph=True)
    generator = torch.Generator().manual_seed(0)
    few, many = (
        torch.randn(2, T, 3, 2, 4, generator=generator).bfloat16().requires_grad_() for T in (QUERIES // 4, 3 * QUERIES)
    )
    attend(few).sum().backward()
    with torch.compiler.set_stance("fail_on_recompile"):
        attended = attend(many)
    torch.testing.assert_close(attended, CausalAttention.apply(many, None))


@pytest.mark.parametrize("scale", [1.0, 100.0], ids=["small", "a-probability-underflows"])
def test_the_loss_is_torchs_up_to_its_rounding_in_any_number_of_parts(scale):
    generator = torch.Generator().manual_seed(0)
    N, V = 2 * POSITIONS + 3, 17
    logits = (scale * torch.randn(N, V, generator=generator)).bfloat16().requires_grad_()
    labels = torch.randint(-4, V, (N,), generator=generator).clamp(min=-1)  # -1: left out
    wide = logits.detach().float().requires_grad_()
    loss, expected = CrossEntropy.apply(logits, labels), F.cross_entropy(wide, labels, ignore_index=-1, reduction="sum")
    torch.testing.assert_close(loss, expected)
    (loss / 3).backward()
    (expected / 3).backward()
    torch.testing.assert_close(logits.grad.float(), wide.grad, atol=1e-6, rtol=0.01)
    assert not logits.grad[labels < 0].any()


def test_only_what_is_trained_in_bfloat16_takes_this_path():
    assert pays_for(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
    assert not pays_for(torch.ones(2, dtype=torch.bfloat16))
    assert not pays_for(torch.ones(2, requires_grad=True))
    with torch.autocast("cpu"):
        assert not pays_for(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
