"""ProofLM.generate: what it draws, what it refuses, what it leaves as it was; and the cache behind it."""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm import generation
from proof_lm.model import ProofLM
from tests.test_model import SMALL, build, draw_ids, each_variant

CONTEXT = SMALL.context_length


def lively(config=SMALL, seed=41):
    """A model whose next token depends on the whole text, not on the last token alone."""
    return build(config, seed, scale=6.0)


def continue_by_hand(model, tokens, count):
    """Greedy continuation with the public forward pass and a crop by hand."""
    model.eval()
    for _ in range(count):
        logits, _ = model(tokens[:, -model.config.context_length :])
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return tokens


# The cache ------------------------------------------------------------------------------------------


@each_variant
@pytest.mark.parametrize("chunks", [[12], [1] * 12, [5, 1, 1, 5], [1, 11], [11, 1], [3, 4, 5]])
def test_cached_states_equal_uncached_ones_whatever_the_chunks(config, chunks):
    model, tokens = lively(config).eval(), draw_ids(3, CONTEXT)
    cache = model.new_cache(batch=3)
    with torch.inference_mode():
        pieces = [model.forward_hidden(chunk, cache) for chunk in tokens.split(chunks, dim=1)]
        whole = model.forward_hidden(tokens)
    assert [block.length for block in cache] == [CONTEXT] * config.n_layers
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-4, atol=1e-4)


def test_a_full_cache_takes_no_further_step():
    model, cache = build(), build().new_cache()
    with torch.inference_mode():
        model.forward_hidden(draw_ids(1, CONTEXT), cache)
        with pytest.raises(ValueError, match=r"^token_ids: expected at most context_length = 12 steps, got 13$"):
            model.forward_hidden(draw_ids(1, 1), cache)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_cache_for_another_number_of_rows_is_refused(rows):
    model = build()
    with pytest.raises(ValueError, match=rf"^cache: expected room for {rows} rows, got 2$"):
        model.forward_hidden(draw_ids(rows, 4), model.new_cache(batch=2))


@each_variant
@pytest.mark.parametrize("length", [1, 5, CONTEXT - 1, CONTEXT, CONTEXT + 7])
def test_cached_and_uncached_generation_are_the_crop_by_hand(config, length):
    model, prompt = lively(config), draw_ids(3, length)
    expected = continue_by_hand(model, prompt, 20)
    for use_cache in (True, False):
        assert torch.equal(model.generate(prompt, 20, temperature=0, use_cache=use_cache), expected)


def test_sampled_tokens_are_the_same_with_and_without_cache():
    model, prompt = lively(), draw_ids(2, 4)
    drawn = [model.generate(prompt, 30, temperature=1.5, use_cache=use_cache) for use_cache in (True, False)]
    assert torch.equal(*drawn)


def test_a_second_call_remembers_nothing_of_the_first():
    model, prompt, other = lively(), draw_ids(2, 4), draw_ids(2, 9, seed=5)
    first = model.generate(prompt, 8, temperature=0)
    model.generate(other, 3, temperature=0)
    assert torch.equal(model.generate(prompt, 8, temperature=0), first)
    assert torch.equal(model.generate(first, 8, temperature=0), model.generate(prompt, 16, temperature=0))


# What is drawn --------------------------------------------------------------------------------------


def test_no_new_token_gives_the_prompt_itself():
    prompt = draw_ids(2, 5)
    result = build().generate(prompt, 0)
    assert torch.equal(result, prompt) and result.data_ptr() != prompt.data_ptr()


def test_the_prompt_stays_in_front_and_is_not_written_to():
    prompt = draw_ids(2, CONTEXT + 3)
    before = prompt.clone()
    result = lively().generate(prompt, 6)
    assert result.shape == (2, CONTEXT + 9) and torch.equal(result[:, : CONTEXT + 3], before)
    assert torch.equal(prompt, before)


def test_rows_are_independent():
    model, prompt = lively(), draw_ids(3, 5)
    together = model.generate(prompt, 12, temperature=0)
    assert torch.equal(together, torch.cat([model.generate(row[None], 12, temperature=0) for row in prompt]))
    other = prompt.clone()
    other[1:] = draw_ids(2, 5, seed=9)
    assert torch.equal(model.generate(other, 12, temperature=1.5)[0], model.generate(prompt, 12, temperature=1.5)[0])


@pytest.mark.parametrize("top_k, top_p", [(1, None), (None, 1e-9), (1, 1.0), (V := SMALL.vocab_size, 1e-9)])
def test_a_cut_to_one_token_is_greedy_at_any_temperature(top_k, top_p):
    model, prompt = lively(), draw_ids(2, 5)
    greedy = model.generate(prompt, 12, temperature=0)
    for temperature in (0.5, 30.0):
        assert torch.equal(model.generate(prompt, 12, temperature, top_k, top_p), greedy)


def test_a_vanishing_temperature_is_greedy_and_does_not_overflow():
    model, prompt = lively(), draw_ids(2, 5)
    assert torch.equal(model.generate(prompt, 12, 1e-300), model.generate(prompt, 12, 0))


def test_top_k_of_the_vocabulary_and_beyond_cut_nothing():
    model, prompt = lively(), draw_ids(2, 5)
    drawn = [model.generate(prompt, 25, 2.0, top_k) for top_k in (V, V + 40)]
    assert torch.equal(*drawn)
    assert set(choices(torch.zeros(1, V), top_k=V + 40)) == set(range(V))


def choices(logits, draws=400, temperature=1.0, top_k=None, top_p=None):
    """How often each token is chosen from logits (1, V)."""
    points = torch.rand(draws, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    drawn = generation.choose_token(logits.expand(draws, -1), temperature, top_k, top_p, points)
    return Counter(drawn.tolist())


@settings(max_examples=50)
@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    top_k=st.integers(1, 10) | st.none(),
    top_p=st.floats(0.01, 1.0) | st.none(),
)
def test_cuts_keep_the_fewest_likeliest_tokens_and_of_equals_the_lowest_ids(values, top_k, top_p):
    logits = torch.tensor([values], dtype=torch.float32)
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))[:top_k]
    weights = [math.exp(values[token]) for token in order]
    reached, kept = 0.0, []
    for token, weight in zip(order, weights, strict=True):
        if top_p is None or reached < top_p - 1e-6 or not kept:
            kept.append(token)
        reached += weight / sum(weights)
    drawn = choices(logits, 2000, top_k=top_k, top_p=top_p)
    edge = top_p is not None and any(
        abs(sum(weights[:n]) / sum(weights) - top_p) < 2e-6 for n in range(1, len(weights))
    )
    assert edge or set(drawn) <= set(kept)
    assert edge or all(drawn[t] for t, w in zip(order, weights, strict=True) if t in kept and w > 0.02 * sum(weights))


def test_ties_never_let_more_than_k_tokens_through():
    assert set(choices(torch.zeros(1, 6), top_k=2)) == {0, 1}
    assert set(choices(torch.zeros(1, 6), temperature=0)) == {0}
    assert set(choices(torch.zeros(1, 6), top_p=0.5)) == {0, 1, 2}


def test_frequencies_follow_softmax_of_logits_over_temperature():
    logits, draws = torch.tensor([[0.0, 1.0, 2.5, -1.0]]), 40_000
    for temperature, cuts in [(1.0, {}), (0.7, {"top_k": 4}), (2.0, {"top_p": 1.0})]:
        found = choices(logits, draws, temperature, **cuts)
        expected = (logits[0] / temperature).softmax(-1)
        for token, probability in enumerate(expected.tolist()):
            assert abs(found[token] / draws - probability) < 5 * math.sqrt(probability / draws)


# One token without modules ---------------------------------------------------------------------------


def check_token_reader(model, start):
    """Tokens read one by one after a cache of `start` steps give the logits of the whole forward pass."""
    model, tokens = model.eval(), draw_ids(3, CONTEXT)
    with torch.inference_mode():
        cache = model.new_cache(batch=3)
        if start:
            model.forward_hidden(tokens[:, :start], cache)
        with generation.token_reader(model, cache) as read:
            logits = torch.stack([read(token) for token in tokens[:, start:].T], dim=1)  # (B, T - start, V)
        expected = model(tokens)[0][:, start:]
    assert [block.length for block in cache] == [start] * 2 and torch.backends.mkldnn.enabled
    unit = torch.finfo(logits.dtype).eps  # the rounding of half precision, some times over
    torch.testing.assert_close(
        logits, expected, rtol=1e-4 + 8 * unit, atol=1e-4 + 8 * unit * expected.abs().max().item()
    )


def without_biases(model):
    for block in model.blocks:
        for layer in (block.attention.qkv, block.attention.out, block.mlp.up, block.mlp.down):
            layer.bias = None


ODD = replace(SMALL, position="learned", n_heads=3, d_model=9)  # a head width that no pair fits


@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@each_variant
def test_reading_one_token_computes_what_the_modules_compute(config, dtype, start):
    check_token_reader(lively(config).to(dtype), start)


@pytest.mark.parametrize("start", [0, 3, 4])
def test_a_readers_memory_grows_as_it_fills(monkeypatch, start):
    monkeypatch.setattr(generation, "ROOM", 3)
    check_token_reader(lively(), start)


@pytest.mark.parametrize("change", [lambda model: None, without_biases], ids=["odd heads", "no biases"])
def test_any_head_width_and_layers_without_bias_are_read(change):
    model = lively(ODD)
    change(model)
    assert generation.has_only_known_parts(model)
    check_token_reader(model, start=4)


def hooked(model):
    model.blocks[0].mlp.register_forward_hook(lambda module, args, output: output * 3)


def patched(model):
    model.blocks[0].attention.attend = lambda q, k, v: v[:, :, -q.shape[2] :]


def with_a_foreign_part(model):
    class Loud(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 3

    model.blocks[0].mlp.up.__class__ = Loud


@pytest.mark.parametrize("change", [hooked, patched, with_a_foreign_part], ids=lambda change: change.__name__)
def test_a_changed_model_generates_what_its_modules_say(change):
    model, prompt = lively(), draw_ids(2, 4)
    before = model.generate(prompt, 16, temperature=0)
    assert generation.has_only_known_parts(model)
    change(model)
    assert not generation.has_only_known_parts(model)
    after = model.generate(prompt, 16, temperature=0)
    assert torch.equal(after, model.generate(prompt, 16, temperature=0, use_cache=False))
    assert not torch.equal(after, before)


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_diverged_model_is_refused(temperature):
    model = build()
    torch.nn.init.constant_(model.final_norm.weight, math.nan)
    with pytest.raises(ValueError, match=r"^logits: expected finite numbers"):
        model.generate(draw_ids(1, 3), 2, temperature)


# What is left as it was -----------------------------------------------------------------------------


def test_no_gradient_is_tracked_and_the_result_may_be_trained_on():
    model = build()
    result = model.generate(draw_ids(2, 5), 4)
    assert all(parameter.grad is None for parameter in model.parameters())
    model(result[:, :-1], result[:, 1:])[1].backward()  # a tensor made in inference mode would refuse
    assert all(parameter.grad is not None for parameter in model.parameters())


class Boom(Exception):
    pass


def boom(*_):
    raise Boom


@pytest.mark.parametrize("raises", [False, True])
def test_modes_and_the_global_generator_are_left_as_they_were_even_when_it_raises(raises):
    model, prompt = build(replace(SMALL, dropout=0.5)), draw_ids(2, 5)
    model.train()
    model.blocks[1].eval()
    modes = {name: module.training for name, module in model.named_modules()}
    if raises:
        model.final_norm.register_forward_hook(boom)
    torch.manual_seed(7)
    state = torch.get_rng_state()
    if raises:
        with pytest.raises(Boom):
            model.generate(prompt, 4)
    else:
        model.generate(prompt, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_generation_ignores_dropout():
    model, prompt = lively(replace(SMALL, dropout=0.5)), draw_ids(2, 5)
    assert torch.equal(model.train().generate(prompt, 15, 0), model.eval().generate(prompt, 15, 0))


def test_the_seed_decides_and_a_generator_of_ones_own_moves_on():
    model, prompt = build(), draw_ids(1, 5)
    torch.manual_seed(1)
    first, again = model.generate(prompt, 20), model.generate(prompt, 20)
    torch.manual_seed(2)
    assert torch.equal(first, again) and not torch.equal(first, model.generate(prompt, 20))
    generator = torch.Generator().manual_seed(1)
    drawn = [model.generate(prompt, 20, generator=generator) for _ in range(2)]
    assert torch.equal(drawn[0], first) and not torch.equal(drawn[1], first)


# Refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"max_new_tokens": 2.0}, "max_new_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": -3}, "top_k"),
        ({"top_k": 2.5}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_p": math.nan}, "top_p"),
    ],
)
def test_impossible_arguments_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected [^\n]*$"):
        build().generate(**{"token_ids": draw_ids(1, 3), "max_new_tokens": 1} | arguments)


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match=r"^token_ids: expected [^\n]*$"):
        ProofLM(SMALL).generate(torch.zeros(1, 0, dtype=torch.long), 3)
