"""ProofLM's forward pass: figures of the course, blocks, rotation, losses, precision, refusals."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from proof_lm import attention, block
from proof_lm.model import (
    DecoderConfig,
    ProofLM,
    TransformerDecoderBlock,
    masked_cross_entropy,
    rotations,
)

SMALL = DecoderConfig(vocab_size=11, context_length=12, n_layers=2, d_model=24, n_heads=3, d_ff=40)
VARIANTS = [
    SMALL,
    replace(SMALL, position="learned", activation="relu", tie_embeddings=False, head_bias=True),
    replace(SMALL, norm="post", activation="gelu_tanh"),
    replace(SMALL, norm="none", activation="silu", tie_embeddings=False),
]
each_variant = pytest.mark.parametrize("config", VARIANTS, ids=["rope", "gpt", "post", "none"])


def build(config=SMALL, seed=41, scale=1.0):
    """A model; scale > 1 widens its weights, so that logits differ clearly between positions and tokens."""
    torch.manual_seed(seed)
    model = ProofLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


def draw_ids(*shape, seed=0, vocab_size=SMALL.vocab_size):
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


# The figures that the course prints -----------------------------------------------------------------


def test_seed_41_gives_the_figures_of_the_course():
    model = build(DecoderConfig(32, 16, 2, 64, 4, 128))
    tokens, labels = torch.tensor([[1, 4, 7, 9, 3]]), torch.tensor([[4, 7, 9, 3, 2]])
    logits, loss = model(tokens, labels, torch.ones_like(labels, dtype=torch.bool))
    assert logits.shape == (1, 5, 32) and f"{loss.item():.6f}" == "3.640021"
    assert model.parameter_count == 69_120 and model.embeddings_are_tied
    changed, _ = model(torch.tensor([[1, 4, 7, 9, 12]]))
    assert torch.equal(changed[:, :-1], logits[:, :-1]) and not torch.equal(changed[:, -1], logits[:, -1])


def test_the_block_of_width_512_has_the_parameters_of_the_formula():
    parts = dict(TransformerDecoderBlock(512, 8, 2048).named_children())
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    assert counts["attention"] == 4 * 512**2 + 4 * 512 == 1_050_624
    assert counts["mlp"] == 2 * 512 * 2048 + 2048 + 512 == 2_099_712
    assert counts["norm1"] + counts["norm2"] == 4 * 512 == 2_048
    assert sum(counts.values()) == 3_152_384


@pytest.mark.parametrize("vocab_size", [32, 1000])
def test_initial_loss_is_near_log_of_the_vocabulary(vocab_size):
    model = build(replace(SMALL, vocab_size=vocab_size))
    tokens, labels = (draw_ids(8, 12, seed=seed, vocab_size=vocab_size) for seed in (1, 2))
    assert model(tokens, labels)[1].item() == pytest.approx(math.log(vocab_size), rel=0.02)


def test_gpt_variant_counts_what_its_formula_says():
    V, C, L, d = 50, 20, 3, 16
    config = DecoderConfig(
        V, C, L, d, 4, 4 * d, position="learned", activation="relu", tie_embeddings=False, head_bias=True
    )
    assert ProofLM(config).parameter_count == L * (12 * d**2 + 13 * d) + 2 * V * d + V + C * d + 2 * d


# What a model sees ----------------------------------------------------------------------------------


@each_variant
@pytest.mark.parametrize("position", [1, 6, 11])
def test_a_changed_token_changes_no_earlier_logits(config, position):
    model, tokens = build(config, scale=4.0).eval(), draw_ids(3, 12)
    other = tokens.clone()
    other[:, position] = (other[:, position] + 1) % config.vocab_size
    before, after = model(tokens)[0], model(other)[0]
    assert torch.equal(before[:, :position], after[:, :position])
    assert not torch.allclose(before[:, position:], after[:, position:])


@each_variant
def test_a_later_token_does_see_an_earlier_one(config):
    model, tokens = build(config, scale=4.0).eval(), draw_ids(1, 12)
    other = tokens.clone()
    other[:, 0] = (other[:, 0] + 1) % config.vocab_size
    assert not torch.allclose(model(tokens)[0][:, -1], model(other)[0][:, -1])


@each_variant
def test_no_sequence_of_a_batch_sees_another(config):
    model, tokens = build(config, scale=4.0).eval(), draw_ids(4, 9)
    together, alone = model(tokens)[0], torch.cat([model(row[None])[0] for row in tokens])
    torch.testing.assert_close(together, alone)


@each_variant
def test_forward_hidden_gives_what_the_head_reads(config):
    model, tokens = build(config).eval(), draw_ids(2, 5)
    hidden = model.forward_hidden(tokens)
    assert hidden.shape == (2, 5, 24)
    assert torch.equal(model.lm_head(hidden), model(tokens)[0])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_order_of_norm_and_residual_is_what_its_name_says(norm):
    torch.manual_seed(0)
    layer = TransformerDecoderBlock(16, 2, 32, norm=norm)
    x = torch.randn(2, 5, 16)
    if norm == "pre":
        y = x + layer.attention(layer.norm1(x), None, None)
        expected = y + layer.mlp(layer.norm2(y))
    else:
        y = layer.norm1(x + layer.attention(x, None, None))
        expected = layer.norm2(y + layer.mlp(y))
    assert torch.equal(layer(x), expected)


def test_a_block_whose_branches_are_zero_is_the_identity():
    layer, x = TransformerDecoderBlock(16, 2, 32), torch.randn(2, 5, 16)
    for linear in (layer.attention.out, layer.mlp.down):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    assert torch.equal(layer(x), x)


def test_block_equals_the_numpy_block_with_its_weights():
    torch.manual_seed(3)
    layer = TransformerDecoderBlock(12, 3, 20, activation="gelu_tanh").double()
    x = torch.randn(7, 12).double()
    nn.init.zeros_(layer.attention.qkv.bias)  # the NumPy function has no biases in attention
    nn.init.zeros_(layer.attention.out.bias)
    weights = {name: parameter.detach().numpy() for name, parameter in layer.named_parameters()}
    wq, wk, wv = np.split(weights["attention.qkv.weight"].T, 3, axis=1)
    expected = block.decoder_block(
        x.numpy(),
        (weights["norm1.weight"], weights["norm1.bias"], wq, wk, wv, weights["attention.out.weight"].T),
        (
            weights["norm2.weight"],
            weights["norm2.bias"],
            weights["mlp.up.weight"].T,
            weights["mlp.up.bias"],
            weights["mlp.down.weight"].T,
            weights["mlp.down.bias"],
        ),
        heads=3,
    )
    np.testing.assert_allclose(layer(x[None])[0].detach().numpy(), expected, rtol=1e-10, atol=1e-12)


# Rotation -------------------------------------------------------------------------------------------


def rotated(x, positions, heads=3):
    """Queries and keys of an attention layer as it turns them: two of (B, h, T, d_h)."""
    layer = TransformerDecoderBlock(x.shape[-1], heads, 8).attention.to(x.dtype)
    nn.init.zeros_(layer.qkv.bias)
    with torch.no_grad():
        layer.qkv.weight.copy_(torch.eye(x.shape[-1]).repeat(3, 1))  # query = key = value = x
    seen = {}
    layer.attend = lambda q, k, v: seen.update(q=q, k=k, v=v) or v
    layer(x, positions, None)
    return seen["q"], seen["k"], seen["v"]


def test_rotation_equals_the_numpy_function_and_leaves_values_alone():
    x, positions = torch.randn(2, 7, 24, dtype=torch.float64), torch.tensor([0, 1, 2, 5, 100, 1000, 2047])
    query, key, value = rotated(x, positions)
    heads = attention.split_heads(x.numpy(), 3)
    expected = attention.rope(heads, positions.numpy())
    for turned in (query, key):
        np.testing.assert_allclose(turned.detach().numpy(), expected, rtol=0, atol=1e-6)  # float32 tables
    np.testing.assert_array_equal(value.detach().numpy(), heads)


def test_one_pair_at_position_one_turns_by_one_radian():
    query, _, _ = rotated(torch.tensor([[[1.0, 0.0]]]), torch.tensor([1]), heads=1)
    torch.testing.assert_close(query.flatten(), torch.tensor([math.cos(1), math.sin(1)]))


@settings(max_examples=30)
@given(shift=st.integers(0, 2000), seed=st.integers(0, 10**6))
def test_rotated_dot_products_depend_on_distance_alone_and_lengths_stay(shift, seed):
    x = torch.randn(1, 5, 24, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    here, there = (rotated(x, torch.arange(5) + start) for start in (0, shift))
    scores = [query @ key.mT for query, key, _ in (here, there)]
    torch.testing.assert_close(scores[0], scores[1], rtol=0, atol=1e-5)
    plain = x.view(1, 5, 3, 8).transpose(1, 2)
    torch.testing.assert_close(there[0].norm(dim=-1), plain.norm(dim=-1), rtol=1e-5, atol=0)


def test_shifting_every_position_leaves_a_block_as_it_was():
    torch.manual_seed(1)
    layer, x = TransformerDecoderBlock(24, 3, 40), torch.randn(2, 6, 24)
    near, far = layer(x, torch.arange(6)), layer(x, torch.arange(6) + 500)
    torch.testing.assert_close(near, far, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(near, layer(x)), "without positions nothing turns"
    assert torch.equal(layer(x, rotations(torch.arange(6), 8)), near), "rotations may be shared"


def test_gradient_through_the_rotation_equals_finite_differences():
    torch.manual_seed(2)
    layer = TransformerDecoderBlock(8, 2, 12).double()
    x = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x, torch.arange(4)), (x,), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rotations_stay_float32_over_2048_positions_and_out_of_the_state_dict(dtype):
    model = build(replace(SMALL, context_length=2048))
    exact = model.rotations.clone()
    model.to(dtype)
    assert model.token_embedding.weight.dtype == dtype
    assert model.rotations.dtype == torch.float32 and torch.equal(model.rotations, exact)
    angles = np.arange(2048)[:, None] * 10_000.0 ** (-np.arange(0, 8, 2) / 8)
    np.testing.assert_allclose(exact.numpy(), np.stack([np.cos(angles), np.sin(angles)], -1), atol=1e-7)
    assert not any("rotation" in name for name in model.state_dict())


@each_variant
@pytest.mark.parametrize("dtype, bound", [(torch.bfloat16, 0.05), (torch.float16, 0.01)])
def test_half_precision_is_close_to_float32(config, dtype, bound):
    model, tokens = build(replace(config, context_length=2048)).eval(), draw_ids(1, 300)
    labels = draw_ids(1, 300, seed=1)
    exact, loss = model(tokens, labels)
    halved, halved_loss = model.to(dtype)(tokens, labels)
    assert halved.dtype == dtype
    assert (halved.float() - exact).abs().max() < bound * exact.abs().max()
    assert halved_loss.item() == pytest.approx(loss.item(), rel=bound)


# Losses ---------------------------------------------------------------------------------------------


def test_masked_loss_divides_by_the_kept_tokens_alone():
    logits, labels = torch.randn(2, 5, 11), draw_ids(2, 5)
    mask = torch.tensor([[True, False, True, False, False], [False, True, True, False, True]])
    each = -logits.log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1)
    torch.testing.assert_close(masked_cross_entropy(logits, labels, mask), each[mask].mean())
    expected = block.masked_cross_entropy(logits.numpy(), labels.numpy(), mask.numpy())
    assert masked_cross_entropy(logits, labels, mask).item() == pytest.approx(expected, rel=1e-6)


@each_variant
def test_masked_padding_changes_neither_loss_nor_gradients(config):
    tokens, labels, results = draw_ids(2, 6), draw_ids(2, 6, seed=1), []
    for padding in (0, 5):
        model = build(config)
        padded = nn.functional.pad(tokens, (0, padding), value=3)
        filler = nn.functional.pad(labels, (0, padding), value=-100)
        _, loss = model(padded, filler, torch.arange(6 + padding).expand(2, -1) < 6)
        loss.backward()
        results.append((loss.detach(), [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


@each_variant
def test_nothing_kept_gives_loss_zero_and_zero_gradients(config):
    model = build(config)
    _, loss = model(draw_ids(2, 4), draw_ids(2, 4), torch.zeros(2, 4, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0.0
    assert block.masked_cross_entropy(np.ones((2, 4, 11)), np.zeros((2, 4), int), np.zeros((2, 4))) == 0.0
    assert all((parameter.grad == 0).all() for parameter in model.parameters())


def test_labels_are_not_shifted_again():
    logits = torch.full((1, 3, 11), -50.0)
    labels = torch.tensor([[5, 2, 9]])
    logits.scatter_(-1, labels[..., None], 50.0)
    assert masked_cross_entropy(logits, labels).item() == pytest.approx(0.0, abs=1e-6)


def test_a_row_with_nothing_to_look_at_gives_zeros_in_numpy_and_torch():
    query, key, value = (torch.randn(1, 1, 3, 4, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, False, False], [False, False, False], [True, True, False]])
    attended = nn.functional.scaled_dot_product_attention(query, key, value, mask)
    attended.square().sum().backward()
    assert (attended[0, 0, 1] == 0).all()
    assert all(tensor.grad.isfinite().all() for tensor in (query, key, value))
    assert (attention.row_softmax(np.full((1, 3), -np.inf)) == 0).all()


@each_variant
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(config):
    model = build(config)
    model(draw_ids(4, 12), draw_ids(4, 12, seed=1))[1].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@each_variant
def test_one_batch_can_be_learnt_by_heart(config):
    model = build(config)
    tokens = draw_ids(2, 9)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        optimiser.zero_grad()
        loss = model(tokens[:, :-1], tokens[:, 1:])[1]
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.2


# Modes and dtypes -----------------------------------------------------------------------------------


@each_variant
def test_dropout_acts_in_training_and_never_in_evaluation(config):
    model, tokens = build(replace(config, dropout=0.5)), draw_ids(2, 6)
    assert not torch.equal(model(tokens)[0], model(tokens)[0])
    model.eval()
    assert torch.equal(model(tokens)[0], model(tokens)[0])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8])
def test_whole_numbers_of_any_width_are_ids(dtype):
    model, tokens, labels = build(), draw_ids(2, 6), draw_ids(2, 6, seed=1)
    logits, loss = model(tokens, labels)
    narrow = model(tokens.to(dtype), labels.to(dtype))
    assert torch.equal(narrow[0], logits) and torch.equal(narrow[1], loss)
    continued = [model.generate(ids, 3, temperature=0) for ids in (tokens, tokens.to(dtype))]
    assert continued[1].dtype == torch.int64 and torch.equal(*continued)


# Refusals: one line that names the argument ---------------------------------------------------------


@pytest.mark.parametrize(
    "change, name",
    [({name: size}, name) for name in ("vocab_size", "n_layers", "d_model", "d_ff") for size in (0, -1, 2.0)]
    + [
        ({"n_heads": 5}, "n_heads"),
        ({"n_heads": 8}, "n_heads"),  # d_h = 3 is odd
        ({"n_heads": 0}, "n_heads"),
        ({"context_length": 0}, "context_length"),
        ({"n_layers": True}, "n_layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": math.nan}, "dropout"),
        ({"position": "alibi"}, "position"),
        ({"activation": "swish"}, "activation"),
        ({"norm": "rms"}, "norm"),
    ],
)
def test_impossible_sizes_and_options_are_refused_by_name(change, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected [^\n]*$"):
        replace(SMALL, **change)


def test_learned_positions_allow_an_odd_head_width_and_a_config_is_frozen():
    assert replace(SMALL, n_heads=8, position="learned").head_width == 3
    with pytest.raises(FrozenInstanceError):
        SMALL.d_model = 7


@pytest.mark.parametrize(
    "sizes, name",
    [((10, 3, 8), "num_heads"), ((10, 0, 8), "num_heads"), ((10, 2, 0), "d_ff"), ((0, 2, 8), "d_model")],
)
def test_a_block_refuses_impossible_sizes_by_name(sizes, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected"):
        TransformerDecoderBlock(*sizes)


def test_a_block_refuses_odd_pairs_and_wrong_shapes():
    with pytest.raises(ValueError, match=r"^head_width: expected an even number"):
        TransformerDecoderBlock(9, 3, 8)(torch.zeros(1, 2, 9), torch.arange(2))
    for shape in [(5, 12), (1, 5, 11)]:
        with pytest.raises(ValueError, match=r"^x: expected shape \(B, T, 12\)"):
            TransformerDecoderBlock(12, 3, 8)(torch.zeros(shape))


BAD_IDS = {
    "1-D": torch.tensor([1, 2]),
    "3-D": torch.zeros(1, 2, 3, dtype=torch.long),
    "no step": torch.zeros(1, 0, dtype=torch.long),
    "no row": torch.zeros(0, 3, dtype=torch.long),
    "V": torch.tensor([[1, 11]]),
    "negative": torch.tensor([[1, -1]]),
    "float": torch.tensor([[1.0, 2.0]]),
    "bool": torch.tensor([[True]]),
    "list": [[1, 2]],
}


@pytest.mark.parametrize("ids", BAD_IDS.values(), ids=BAD_IDS.keys())
def test_ids_that_are_none_are_refused_by_name(ids):
    model = build()
    for call in (model, model.forward_hidden, lambda ids: model.generate(ids, 1)):
        with pytest.raises(ValueError, match=r"^token_ids: expected [^\n]*$"):
            call(ids)


def test_more_steps_than_the_context_are_refused():
    with pytest.raises(ValueError, match=r"^token_ids: expected at most context_length = 12 steps, got 13$"):
        build()(draw_ids(1, 13))


@pytest.mark.parametrize(
    "labels, mask, name",
    [
        (torch.zeros(2, 3, dtype=torch.long), None, "labels"),  # another length
        (torch.full((2, 4), 11), None, "labels"),  # outside the vocabulary
        (torch.full((2, 4), -100), None, "labels"),  # a filler where nothing is masked
        (torch.zeros(2, 4), None, "labels"),  # float
        ([[0] * 4] * 2, None, "labels"),
        (None, torch.ones(2, 4, dtype=torch.bool), "labels"),
        (torch.zeros(2, 4, dtype=torch.long), torch.ones(2, 4), "loss_mask"),  # float
        (torch.zeros(2, 4, dtype=torch.long), torch.ones(4, dtype=torch.bool), "loss_mask"),
    ],
)
def test_labels_and_masks_that_do_not_fit_are_refused_by_name(labels, mask, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected [^\n]*$"):
        build()(draw_ids(2, 4), labels, mask)


# Compiled -------------------------------------------------------------------------------------------


@each_variant
def test_the_model_is_traced_as_one_graph_with_the_same_loss_and_gradients(config):
    model, tokens, labels = build(config), draw_ids(2, 6), draw_ids(2, 6, seed=1)
    results = []
    torch.compiler.reset()
    for callable_model in (model, torch.compile(model, backend="aot_eager", fullgraph=True)):
        model.zero_grad()
        _, loss = callable_model(tokens, labels)
        loss.backward()
        results.append((loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)
