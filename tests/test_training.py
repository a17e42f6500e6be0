"""Training: data, optimiser, schedule and loop, each by what it must do."""

import csv
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm.model import DecoderConfig, ProofLM
from proof_lm.proofs import decode, encode, is_proof, parse_theorem
from proof_lm.training import (
    Batch,
    ProofData,
    Report,
    TextData,
    TrainConfig,
    TrainingError,
    checked,
    held_out,
    learning_rate,
    load_data,
    make_optimiser,
    new_state,
    parameter_groups,
    prove,
    share,
    shifted,
    speed,
    train,
    train_step,
    validate,
)
from proof_lm.training.baselines import NGram, remove_attention
from proof_lm.training.progress import CsvLog
from proof_lm.training.speed import InBfloat16, prepare, settled

SMALL = TrainConfig(
    examples=64, hardest=2, batch_size=8, steps=6, warmup=2, n_layers=2, d_model=16, n_heads=2, d_ff=32, context_length=96,
    validate_every=3, save_every=2,
)


@pytest.fixture
def config(tmp_path):
    return replace(SMALL, run=str(tmp_path / "run"))


@pytest.fixture(scope="module")
def data():
    return load_data(SMALL)


def small_model(seed=0, **options):
    torch.manual_seed(seed)
    return ProofLM(DecoderConfig(50, 64, 2, 16, 2, 32, **options))


def test_labels_are_the_next_tokens_and_the_loss_counts_from_the_start_on():
    batch = shifted([[5, 6, 7, 8], [9, 4]], starts=[2, 1])
    assert batch.token_ids.tolist() == [[5, 6, 7], [9, 4, 0]]
    assert batch.labels.tolist() == [[6, 7, 8], [4, 0, 0]]
    assert batch.loss_mask.tolist() == [[False, True, True], [True, False, False]]


def sequences(batch):
    """Each row as it was before it was shifted: (tokens that are given, tokens that are asked for)."""
    for tokens, labels, asked in zip(*batch, strict=True):
        first = int(asked.nonzero()[0])
        yield [int(tokens[0]), *labels[:first].tolist()], labels[asked].tolist()


def test_the_loss_counts_on_the_whole_proof_and_on_nothing_else(data):
    for statement, proof in sequences(data.batch(3)):
        assert is_proof(parse_theorem(decode(statement)), decode(proof))


def test_every_epoch_shows_every_example_once_in_another_order(data):
    def epoch(number):
        return [example for step in range(8 * number, 8 * number + 8) for example in sequences(data.batch(step))]

    assert len(data.sequences) == 8 * SMALL.batch_size
    assert sorted(epoch(0)) == sorted(epoch(1))
    assert sorted(given + asked for given, asked in epoch(0)) == sorted(data.sequences)
    assert epoch(0) != epoch(1)


def test_a_batch_depends_on_seed_and_step_alone(data):
    again = load_data(SMALL)
    for step in (17, 0, 9):
        assert all(map(torch.equal, data.batch(step), again.batch(step)))
    assert not torch.equal(data.batch(0).token_ids, load_data(replace(SMALL, seed=1)).batch(0).token_ids)


def test_training_and_validation_share_no_theorem():
    validation = load_data(SMALL, "validation")
    assert not set(map(tuple, load_data(SMALL).sequences)) & set(map(tuple, validation.sequences))


def test_windows_of_a_text_are_the_text():
    text = np.arange(200, dtype=np.uint8)
    batch = TextData(text, context_length=16, seed=0, batch_size=4).batch(5)
    assert torch.equal(batch.labels, batch.token_ids + 1)
    assert batch.loss_mask.all()


def test_every_window_of_a_text_can_come():
    text = np.arange(10, dtype=np.uint8)
    data = TextData(text, context_length=8, seed=0, batch_size=16)
    assert {int(row[0]) for row in data.batch(0).token_ids} == {0, 1}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.zeros(16, dtype=np.int64), "text: 16 tokens, expected more than context_length = 16"),
        (np.full(40, 256), "text: ids from 256 to 256, expected 0 to 255"),
        (np.full(40, -1), "text: ids from -1 to -1"),
    ],
)
def test_a_text_that_cannot_be_trained_on_is_refused(ids, message):
    with pytest.raises(TrainingError, match=message):
        TextData(ids, context_length=16, seed=0, batch_size=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0}, {"steps": 1.5}, {"learning_rate": math.nan}, {"learning_rate": -1.0}, {"precision": "float16"},
        {"n_heads": 3}, {"beta2": 1.0}, {"dropout": 1.0}, {"compile": "yes"}, {"clip": math.inf},
    ],
)
def test_a_config_that_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(TrainingError, match=f"^{next(iter(wrong))}: expected [^\n]*$"):
        TrainConfig(**wrong)


def test_matrices_decay_and_vectors_do_not():
    model = small_model()
    decaying, free = parameter_groups(model, 0.1)
    assert (decaying["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
    assert all(p.dim() == 2 for p in decaying["params"])
    assert all(p.dim() == 1 for p in free["params"])
    assert sum(p.numel() for group in (decaying, free) for p in group["params"]) == model.parameter_count


def test_one_step_is_adamw_by_hand(data):
    config = replace(SMALL, clip=1e9)
    model, batch, rate = small_model(), data.batch(0), 0.01
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model(*batch)[1].backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    train_step(model, make_optimiser(model, config), [batch], int(batch.loss_mask.sum()), rate, config.clip)
    for name, after in model.named_parameters():
        g, w = gradients[name], before[name]
        decay = config.weight_decay if w.dim() == 2 else 0.0
        # in the first step both moments, freed of their bias, are the gradient and its square
        expected = w * (1 - rate * decay) - rate * g / (g.abs() + 1e-8)
        torch.testing.assert_close(after, expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 50), st.integers(60, 500))
def test_the_rate_climbs_to_its_peak_and_falls_to_its_end(warmup, steps):
    config = TrainConfig(warmup=warmup, steps=steps, learning_rate=3e-3, final_rate=0.1)
    rates = [learning_rate(step, config) for step in range(steps)]
    peak = max(warmup - 1, 0)
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak] == pytest.approx(3e-3)
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert rates[-1] == pytest.approx(3e-4)
    assert min(rates) > 0


def test_a_batch_in_parts_gives_the_step_of_the_whole(data):
    batch = data.batch(1)
    asked = int(batch.loss_mask.sum())
    results = []
    for count in (1, 4):
        model = small_model()
        loss, norm = train_step(model, make_optimiser(model, SMALL), batch.parts(count), asked, 1e-3, clip=1e9)
        results.append((loss, norm))
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    counts = {int(part.loss_mask.sum()) for part in batch.parts(4)}
    assert len(counts) > 1, "the parts must differ, or a mean of means would pass"


def test_the_gradient_is_clipped_to_the_norm(data):
    model, batch = small_model(), data.batch(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    before = torch.cat([p.detach().flatten().clone() for p in model.parameters()])
    _, norm = train_step(model, optimiser, [batch], int(batch.loss_mask.sum()), 1.0, clip=0.5)
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert norm > 0.5
    assert (after - before).norm().item() == pytest.approx(0.5, rel=1e-3)


def test_one_batch_can_be_learned_by_heart(data):
    model, batch = small_model(), data.batch(0)
    optimiser = make_optimiser(model, SMALL)
    for _ in range(150):
        loss, _ = train_step(model, optimiser, [batch], int(batch.loss_mask.sum()), 1e-2, clip=1.0)
    assert loss < 0.1


def test_a_batch_without_anything_asked_changes_no_gradient(data):
    model = small_model()
    batch = data.batch(0)
    model(batch.token_ids, batch.labels, torch.zeros_like(batch.loss_mask))[1].backward()
    assert all(not p.grad.any() for p in model.parameters() if p.grad is not None)


def test_validation_is_the_mean_over_all_positions_and_leaves_the_mode(data):
    model = small_model(dropout=0.5).train()
    expected = [(model.eval()(*data.batch(k))[1].item(), int(data.batch(k).loss_mask.sum())) for k in range(3)]
    model.train()
    mean = sum(loss * count for loss, count in expected) / sum(count for _, count in expected)
    assert validate(model, data, batches=3) == pytest.approx(mean)
    assert model.training


def test_training_reports_every_step_and_leaves_global_random_numbers_alone(config, data):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    reports = []
    state = train(new_state(config, ProofData.vocab_size), data, data, watch=reports.append)
    assert [report.step for report in reports] == list(range(1, 7))
    assert [report.validation_loss is not None for report in reports] == [False, False, True] * 2
    assert state.step == 6
    assert torch.equal(torch.rand(1), expected)


def test_a_loss_that_is_no_number_stops_before_the_weights_change(config, data):
    state = new_state(config, ProofData.vocab_size)
    with torch.no_grad():
        state.model.final_norm.weight[0] = math.nan
    before = [p.detach().clone() for p in state.model.parameters()]
    with pytest.raises(TrainingError, match=r"^step 1: loss nan, .*the weights are still those of step 0[^\n]*$"):
        train(state, data)
    for old, new in zip(before, state.model.parameters(), strict=True):
        torch.testing.assert_close(old, new, rtol=0, atol=0, equal_nan=True)


def test_batches_that_cannot_be_divided_evenly_are_refused(config, data):
    with pytest.raises(TrainingError, match="batch_size: expected a multiple of processes x accumulate = 1 x 3, got 8"):
        train(new_state(replace(config, accumulate=3), ProofData.vocab_size), data)


def test_bfloat16_trains_close_to_float32(config, data):
    losses = {}
    for precision in ("float32", "bfloat16"):
        reports = []
        train(new_state(replace(config, precision=precision), ProofData.vocab_size), data, watch=reports.append)
        losses[precision] = [report.loss for report in reports]
    assert losses["float32"] != losses["bfloat16"]
    assert losses["float32"] == pytest.approx(losses["bfloat16"], rel=0.02)


@pytest.mark.parametrize("options", [{}, {"position": "learned"}, {"norm": "post"}], ids=["rope", "learned", "post"])
def test_bfloat16_gives_the_loss_and_gradients_of_float32_up_to_its_rounding(data, options):
    batch, results = data.batch(0), []
    assert not batch.loss_mask.all(), "statements and padding must be left out by both"
    model = small_model(**options)
    for prepared in (model, InBfloat16(model)):
        model.zero_grad()
        loss = prepared(*batch)[1]
        loss.backward()
        results.append((loss.item(), {name: p.grad.clone() for name, p in model.named_parameters()}))
    (loss, gradients), (rounded_loss, rounded) = results
    assert rounded_loss == pytest.approx(loss, rel=0.01)
    for name, gradient in gradients.items():
        assert rounded[name].dtype == torch.float32
        assert (rounded[name] - gradient).norm() < 0.05 * max(gradient.norm(), 1e-3), name


def test_what_is_masked_stays_unread_and_dropout_stays_random_in_bfloat16(data):
    tokens, labels, asked = data.batch(0)
    still, random = InBfloat16(small_model()), InBfloat16(small_model(dropout=0.3))
    assert torch.equal(still(tokens, labels, asked)[1], still(tokens, labels.masked_fill(~asked, 7), asked)[1])
    assert random(tokens, labels, asked)[1] != random(tokens, labels, asked)[1]
    random.eval()
    assert torch.equal(random(tokens, labels, asked)[1], random(tokens, labels, asked)[1])


@pytest.mark.parametrize(("cost", "chosen"), [(0.5, "bfloat16"), (0.95, "float32"), (11.0, "float32")])
def test_auto_chooses_bfloat16_where_it_clearly_pays_and_nowhere_else(monkeypatch, cost, chosen):
    """With a clock that a step moves by what it is said to cost."""
    clock = [0.0]

    def step(model, *_):
        clock[0] += cost if isinstance(model, InBfloat16) else 1.0

    monkeypatch.setattr(speed, "_step", step)
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert settled(replace(SMALL, precision="auto")).precision == chosen


def test_a_context_shorter_than_the_trial_is_no_reason_against_bfloat16():
    said, config = [], replace(SMALL, context_length=5, precision="bfloat16")
    assert isinstance(prepare(ProofLM(config.decoder(50)), config, said.append), InBfloat16)
    assert said == []


def test_auto_settles_on_a_precision_once():
    assert settled(replace(SMALL, precision="auto")).precision in ("float32", "bfloat16")
    assert settled(SMALL) is SMALL


def test_a_switch_that_does_not_work_here_says_so_in_one_line_and_training_goes_on(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", lambda model, **_: type("Broken", (torch.nn.Module,), {"forward": broken})())
    monkeypatch.setattr(speed, "functional_call", broken)
    said, model = [], small_model()
    assert prepare(model, replace(SMALL, precision="bfloat16", compile=True), said.append) is model
    assert [line.split(":")[0] for line in said] == ["precision", "compile"]


def test_a_model_that_knows_the_proofs_is_counted_as_proving_them(config):
    """Learn a few theorems by heart; the checker must then accept the model's own text."""
    examples = held_out("train", 8, SMALL.seed, levels=(1, 2), largest_formula=SMALL.largest_formula)
    config = replace(config, steps=250, learning_rate=1e-2, examples=8)
    data = ProofData("train", 8, SMALL.seed, 8, SMALL.hardest, SMALL.largest_formula)
    state = new_state(config, ProofData.vocab_size)
    assert share(checked(state.model, examples)) == 0.0
    train(state, data)
    counts = checked(state.model, examples)
    assert sum(asked for _, asked in counts.values()) == 8
    assert share(counts) > 0.8


def test_proofs_written_side_by_side_are_those_written_alone():
    model = small_model()
    statements = [theorem for theorem, _ in held_out("test", 6, 1)]
    assert prove(model, statements) == [prove(model, [theorem])[0] for theorem in statements]


def test_a_statement_as_long_as_the_context_gets_an_empty_proof():
    theorem = parse_theorem("p |- p")
    torch.manual_seed(0)
    model = ProofLM(DecoderConfig(50, len(encode(f"{theorem}\n")), 1, 16, 2, 32))
    assert prove(model, [theorem]) == [""]


def test_rows_and_parts_of_a_batch_are_its_rows():
    batch = Batch(*(torch.arange(12).reshape(6, 2) + offset for offset in (0, 100, 200)))
    assert torch.equal(torch.cat([part.labels for part in batch.parts(3)]), batch.labels)
    assert batch.rows(slice(1, None, 2)).token_ids.tolist() == [[2, 3], [6, 7], [10, 11]]


def test_a_disk_too_full_for_the_log_costs_one_line(config):
    log = CsvLog(new_state(config, ProofData.vocab_size))
    log.file.close()
    log.file = open("/dev/full", "w")  # noqa: SIM115 (closed by the log)
    log.rows = csv.DictWriter(log.file, log.rows.fieldnames)
    with pytest.raises(TrainingError, match=r"^[^\n]*log.csv: not written: [^\n]*$"):
        log(Report(1, 0.5, 1e-3, 1.0, 100, 0.1))
    log.close()


@pytest.mark.parametrize("order", [1, 3])
def test_an_n_gram_continues_by_the_likeliest_token_after_the_longest_known_context(order):
    gram = NGram([[1, 2, 3], [1, 2, 3], [4, 2, 5, 2, 2]], order)
    assert gram.next_token([1, 2]) == (3 if order == 3 else 2)
    assert gram.next_token([4, 2]) == (5 if order == 3 else 2)
    assert gram.next_token([9, 9]) == 2


def test_without_attention_no_position_sees_another():
    model = remove_attention(small_model()).eval()
    one, other = torch.tensor([[1, 2, 3]]), torch.tensor([[7, 8, 3]])
    assert torch.equal(model(one)[0][:, -1], model(other)[0][:, -1])
    assert not torch.equal(small_model().eval()(one)[0][:, -1], small_model().eval()(other)[0][:, -1])
    assert torch.equal(model.generate(one, 4, 0, use_cache=False)[:, :3], one)
