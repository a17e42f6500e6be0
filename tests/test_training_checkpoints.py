"""Checkpoints: the same bits after any stop, and nothing lost to a torn, foreign or unwritable file."""

import json
import random
import resource
import signal
from dataclasses import asdict, replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from proof_lm.training import (
    ProofData,
    TrainConfig,
    TrainingError,
    load_checkpoint,
    load_data,
    load_newest,
    new_state,
    save_checkpoint,
    train,
)
from proof_lm.training.checkpoints import checkpoints, restore

SMALL = TrainConfig(
    examples=48, hardest=2, batch_size=8, steps=9, warmup=2, n_layers=2, d_model=16, n_heads=2, d_ff=32, context_length=96,
    save_every=100, dropout=0.2,
)


@pytest.fixture
def config(tmp_path):
    return replace(SMALL, run=str(tmp_path / "run"))


@pytest.fixture(scope="module")
def data():
    return load_data(SMALL)


def fresh(config):
    return new_state(config, ProofData.vocab_size)


def everything(state):
    """All numbers of a state that training goes on from."""
    moments = [state.optimiser.state[p] for p in state.model.parameters()]
    tensors = [*state.model.parameters(), *(m[name] for m in moments for name in ("exp_avg", "exp_avg_sq", "step"))]
    return [state.step, *(tensor.detach().clone() for tensor in tensors)]


def equal(one, other):
    return all(map(torch.equal, one[1:], other[1:])) and one[0] == other[0]


class Stop(Exception):
    """Ends a run as a crash would."""


def train_until(state, data, step):
    def watch(report):
        if report.step == step:
            raise Stop

    with pytest.raises(Stop):
        train(state, data, watch=watch)


@pytest.mark.parametrize("stop", [1, 4, 8])
def test_a_run_saved_and_restored_gives_the_bits_of_one_that_never_stopped(config, data, stop):
    """With dropout, over an epoch's end, through the warm-up: model, moments, schedule, masks and data position."""
    whole = everything(train(fresh(replace(config, run=f"{config.run}-whole")), data))
    state = fresh(config)
    train_until(state, data, stop)
    save_checkpoint(state)
    del state
    torch.manual_seed(random.randrange(2**32))  # what came before in the process must not matter
    resumed = load_newest(config.run)
    assert resumed.step == stop
    assert equal(everything(train(resumed, load_data(SMALL))), whole)


def test_the_comparison_of_states_sees_one_changed_bit(config, data):
    state = train(fresh(config), data)
    before = everything(state)
    assert equal(before, everything(state))
    moment = state.optimiser.state[state.model.final_norm.weight]["exp_avg_sq"]
    moment[0] = torch.nextafter(moment[0], torch.tensor(1.0))
    assert not equal(before, everything(state))


def test_a_restored_model_is_tied_and_its_optimiser_moves_it(config, data):
    save_checkpoint(fresh(config))
    state = load_newest(config.run)
    assert state.model.embeddings_are_tied
    before = everything(state)
    assert not equal(before, everything(train(state, data)))


@pytest.mark.parametrize("damage", ["cut", "emptied", "bit", "zeros", "gone"])
def test_a_torn_checkpoint_costs_one_interval_only(config, data, damage):
    state = train(fresh(replace(config, save_every=3)), data)
    newest, before = checkpoints(config.run)
    content = bytearray(newest.read_bytes())
    if damage == "cut":
        content = content[: random.randrange(1, len(content))]
    elif damage == "emptied":
        content.clear()
    elif damage == "bit":
        place = random.randrange(len(content))
        content[place] ^= 1 << random.randrange(8)
    elif damage == "zeros":  # what some file systems leave after a power cut
        content[-4096:] = bytes(4096)
    newest.write_bytes(content) if damage != "gone" else newest.unlink()
    said = []
    resumed = load_newest(config.run, said.append)
    assert resumed.step == 6
    assert len(said) == (damage != "gone")
    assert all(str(newest) in line and "\n" not in line for line in said)
    assert before == checkpoints(config.run)[damage != "gone"]
    assert equal(everything(train(resumed, data)), everything(state))


def test_a_half_written_file_is_not_taken_for_a_checkpoint(config):
    path = save_checkpoint(fresh(config))
    path.with_name("step-00000005.draft").write_bytes(path.read_bytes()[:100])
    assert load_newest(config.run).step == 0


def test_a_run_without_a_readable_checkpoint_says_so(config, tmp_path):
    with pytest.raises(TrainingError, match=r"nowhere: no checkpoint .* `python -m proof_lm train`$"):
        load_newest(tmp_path / "nowhere")


def test_a_run_whose_checkpoints_are_all_torn_is_to_be_removed_before_it_is_started_anew(config, data):
    train(fresh(config), data)
    for path in checkpoints(config.run):
        path.write_bytes(b"")
    said = []
    with pytest.raises(TrainingError, match=rf"remove {config.run}, then start anew with `python -m proof_lm train`$"):
        load_newest(config.run, said.append)
    assert len(said) == 2 and [line.endswith("; trying the one before") for line in said] == [True, False]


def test_another_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "step-00000001.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(TrainingError, match="its content is not what was written"):
        load_checkpoint(path)


@pytest.mark.parametrize("change", [{"d_model": 32}, {"n_layers": 1}, {"n_layers": 3}, {"d_ff": 16}])
def test_a_checkpoint_of_another_config_is_refused_by_the_first_weight_that_differs(config, change):
    with safe_open(save_checkpoint(fresh(config)), "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    state = fresh(replace(config, **change))
    before = [parameter.detach().clone() for parameter in state.model.parameters()]
    with pytest.raises(TrainingError, match=r"^checkpoint of another config: [^\n]*: expected [^\n]*, found [^\n]*$"):
        restore(state, tensors)
    assert all(map(torch.equal, before, state.model.parameters())), "what is refused must leave the state alone"


def test_a_disk_that_is_full_costs_one_line_and_no_earlier_checkpoint(config, data):
    state = fresh(config)
    save_checkpoint(state)
    state.step = 5
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        with pytest.raises(TrainingError, match=r"^[^\n]*step-00000005.safetensors: not written: [^\n]*$"):
            save_checkpoint(state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in (checkpoints(config.run)[0].parent).iterdir()] == ["step-00000000.safetensors"]
    assert load_newest(config.run).step == 0


def test_only_the_newest_two_are_kept_and_nothing_is_pickled(config, data):
    train(fresh(replace(config, save_every=2)), data)
    names = sorted(path.name for path in checkpoints(config.run)[0].parent.iterdir())
    assert names == ["step-00000008.safetensors", "step-00000009.safetensors"]
    with safe_open(checkpoints(config.run)[0], "pt") as file:
        about = json.loads(file.metadata()["about"])
    assert TrainConfig(**about["config"]) == replace(config, save_every=2)
    assert about["step"] == 9
    assert asdict(load_newest(config.run).config) == about["config"]
