"""Problem set P5: that its cases hold what they claim to hold, and what a student is told."""

import math

import numpy as np
import pytest
import torch

from grading.exercises import find
from proof_lm.checks import PropertyFailed, check, hint
from proof_lm.checks.core import draw_cases
from proof_lm.checks.p5 import EXERCISES, adamw, generation, loss, resumption, sampling, schedule
from proof_lm.probes.language_model import small_model
from proof_lm.probes.resumption import Run

SEEDS = range(5)
IDS = [exercise.id for exercise in EXERCISES]
REFERENCES = {
    "P5.1": (loss.shifted_targets, loss.masked_loss),
    "P5.2": adamw.adamw_step,
    "P5.3": schedule.learning_rate,
    "P5.4": (resumption.save_run, resumption.restore_run),
    "P5.5": (generation.cached_attention, generation.generate),
    "P5.6": (sampling.top_k_filter, sampling.top_p_filter),
}


def secret_cases(exercise_id, seed):
    for part in find(exercise_id).parts:
        yield from draw_cases(part.property, seed)


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_reference_earns_everything_and_passes_the_public_check(exercise_id, capsys):
    reference = REFERENCES[exercise_id]
    verdict = find(exercise_id).grade(reference, seed=11)
    assert verdict.points == verdict.max_points, str(verdict)
    check(exercise_id, *(reference if isinstance(reference, tuple) else (reference,)))
    assert "fails" not in capsys.readouterr().out


# The references against what others computed


def test_the_loss_and_its_gradient_are_those_of_torch():
    rng = np.random.default_rng(0)
    logits, labels, kept = rng.normal(size=(3, 7, 5)), rng.integers(5, size=(3, 7)), rng.random((3, 7)) < 0.5
    tensor = torch.from_numpy(logits).requires_grad_()
    target = torch.from_numpy(np.where(kept, labels, -100))
    expected = torch.nn.functional.cross_entropy(tensor.flatten(0, 1), target.flatten())
    expected.backward()
    value, gradient = loss.masked_loss(logits, labels, kept)
    assert math.isclose(value, expected.item(), rel_tol=1e-12)
    assert np.allclose(gradient, tensor.grad.numpy(), rtol=1e-12, atol=1e-15)


def test_five_steps_of_adamw_are_those_of_torch():
    rng = np.random.default_rng(1)
    parameters = {"matrix": rng.normal(size=(3, 4)), "bias": rng.normal(size=4)}
    tensors = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in parameters.items()}
    groups = [{"params": [tensors["matrix"]], "weight_decay": 0.3}, {"params": [tensors["bias"]], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=0.05, betas=(0.8, 0.9), eps=1e-3)
    zeros = {name: np.zeros_like(value) for name, value in parameters.items()}
    state = {"step": 0, "first": zeros, "second": zeros}
    for _ in range(5):
        gradients = {name: rng.normal(size=value.shape) for name, value in parameters.items()}
        parameters, state = adamw.adamw_step(parameters, gradients, state, 0.05, ["matrix"], 0.8, 0.9, 1e-3, 0.3)
        for name, tensor in tensors.items():
            tensor.grad = torch.from_numpy(gradients[name])
        optimiser.step()
        for name, tensor in tensors.items():
            assert np.allclose(parameters[name], tensor.detach().numpy(), rtol=1e-12)


def test_the_schedule_is_that_of_the_training_program():
    from proof_lm.training import TrainConfig, learning_rate

    for steps, warmup in ((20, 6), (9, 0), (7, 6)):
        config = TrainConfig(steps=steps, warmup=warmup, learning_rate=0.3, final_rate=0.2)
        for step in range(steps + 1):
            expected = learning_rate(step, config)
            assert math.isclose(schedule.learning_rate(step, steps, warmup, 0.3, 0.2), expected, rel_tol=1e-12)


def test_attention_through_a_cache_is_that_of_torch():
    rng = np.random.default_rng(2)
    query, key, value = (rng.normal(size=(2, 3, 9, width)) for width in (4, 4, 5))
    cache, outputs = None, []
    for piece in (slice(0, 4), slice(4, 5), slice(5, 9)):
        output, cache = generation.cached_attention(*(part[:, :, piece] for part in (query, key, value)), cache)
        outputs.append(output)
    tensors = [torch.from_numpy(part) for part in (query, key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)
    assert np.allclose(np.concatenate(outputs, axis=2), expected.numpy(), rtol=1e-10)


# The models and runs that students' code is tried on


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_goes_on_depends_on_every_part_of_its_state(seed):
    """Whatever is forgotten, the restored run differs: no part of the state is idle."""
    case = next(case for case in secret_cases("P5.4", seed) if case.probe == "resumption.restored")
    config, _ = case.calls[0]
    for part in ("weights", "first", "second", "step", "rng", "batches"):
        run, fresh = Run(config), Run(config)
        run.train(9)
        whole = resumption.restore_run(resumption.save_run(run))
        setattr(whole, part, getattr(fresh, part))
        run.train(4), whole.train(4)
        assert not np.array_equal(run.weights["up"], whole.weights["up"]), part


def test_the_small_model_reads_in_pieces_as_at_once_and_sees_the_past_alone():
    model = small_model(attention=generation.cached_attention)
    plain = small_model()
    ids = np.random.default_rng(3).integers(11, size=(3, 9))
    changed = np.where(np.arange(9) == 5, (ids + 1) % 11, ids)
    for one in (model, plain):
        whole, _ = one.read(ids)
        first, cache = one.read(ids[:, :4])
        second, cache = one.read(ids[:, 4:5], cache)
        third, _ = one.read(ids[:, 5:], cache)
        assert np.allclose(np.concatenate([first, second, third], axis=1), whole, rtol=1e-10)
        moved = np.abs(one.read(changed)[0] - whole).max(axis=(0, 2))
        assert (moved[:5] == 0).all() and (moved[5:] > 1e-6).all()


@pytest.mark.parametrize("ids", [np.zeros((1, 17), int), np.zeros(3, int), np.zeros((1, 0), int), np.zeros((2, 2))])
def test_the_small_model_refuses_what_it_cannot_read(ids):
    with pytest.raises(ValueError, match="token_ids"):
        small_model(context_length=16).read(ids)


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_tokens_differ_by_row_and_step_so_that_mistakes_show(seed):
    differ = []
    for case in secret_cases("P5.5", seed):
        if case.probe != "language_model.generated":
            continue
        weights, heads, (order, *_) = case.calls[0]
        (rows, length), context = order["prompt"].shape, len(weights["position_embedding"])
        if rows > 1 and 2 < order["new"] <= context - length:
            new = generation._uncached(weights, heads, order)[:, length:]
            differ.append(len({tuple(row) for row in new}) > 1)
    assert sum(differ) > len(differ) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_no_sum_of_probabilities_comes_near_p(seed):
    looked_at = 0
    for part in find("P5.6").parts:
        if part.property.item == 1 and not part.property.judges_errors:
            for case in draw_cases(part.property, seed):
                for logits, p in case.calls:
                    shares = torch.tensor(np.asarray(logits, dtype=float)).softmax(-1).sort(descending=True).values
                    if p < 1:
                        assert (shares.cumsum(-1) - p).abs().min() > 1e-5, (part.property.name, case.label)
                        looked_at += 1
    assert looked_at


# What a student is told


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_an_open_answer_and_a_constant_fail_the_public_check_in_one_line(exercise, capsys):
    def stub(*arguments, **keywords):
        raise NotImplementedError

    count = exercise.name.count(", ") + 1
    for candidate, told in ((stub, "not written yet"), (lambda *arguments, **keywords: True, "properties fail")):
        with pytest.raises(PropertyFailed) as failure:
            check(exercise.id, *[candidate] * count)
        assert "\n" not in str(failure.value) and told in str(failure.value)
    assert "fails: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exercise_id", "candidate", "told"),
    [
        ("P5.1", (loss.shifted_targets, lambda *given: loss.masked_loss(*given)[0]), "loss and gradient were expected, float came"),
        ("P5.2", lambda *given, **named: adamw.adamw_step(*given, **named)[0], "new parameters and new state were expected, dict came"),
        ("P5.4", (lambda run: resumption.save_run(run) | {"rng": run.rng}, resumption.restore_run), "result['rng']: Generator is not plain"),
    ],
)  # fmt: skip
def test_a_result_of_another_form_is_told_by_the_names_of_its_parts(exercise_id, candidate, told, capsys):
    with pytest.raises(PropertyFailed):
        check(exercise_id, *(candidate if isinstance(candidate, tuple) else (candidate,)))
    out = capsys.readouterr().out
    assert told in out and "items were" not in out and "dictionary update" not in out


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_hints_come_in_three_steps_named_after_a_symptom(exercise, capsys):
    for step in (1, 2, 3):
        hint(exercise.id, step)
        told = capsys.readouterr().out
        assert told.startswith(f"{exercise.id}, hint {step} of 3: ")
        assert "return " not in told and "def " not in told


@pytest.mark.parametrize("exercise_id", IDS)
def test_every_property_points_to_a_lesson_and_earns_points(exercise_id):
    for part in find(exercise_id).parts:
        assert part.points > 0 and part.property.lesson.startswith("lesson 0"), part.property.name
    assert sum(len(part.property.mistakes) for part in find(exercise_id).parts) >= 5
