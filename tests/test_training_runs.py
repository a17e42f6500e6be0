"""Training runs as processes of their own: stopped, killed, resumed, shared among processes, refused in one line."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from proof_lm.model import DecoderConfig
from proof_lm.training import ProofData, load_newest, save_checkpoint
from proof_lm.training.checkpoints import checkpoints
from proof_lm.training.progress import read_log

ROOT = Path(__file__).parents[1]
STEPS = 60
OPTIONS = {
    "examples": 96, "hardest": 2, "batch-size": 8, "steps": STEPS, "warmup": 2, "n-layers": 1, "d-model": 16, "n-heads": 2,
    "d-ff": 32, "context-length": 96, "save-every": 5, "validate-every": 30, "dropout": 0.1,
}  # fmt: skip


def flags(run, **changes):
    options = OPTIONS | {"run": run} | {name.replace("_", "-"): value for name, value in changes.items()}
    return [text for name, value in options.items() for text in (f"--{name}", str(value))]


def start(*arguments, launcher=("-m", "proof_lm")):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, *launcher, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)


def finished(*arguments, **options):
    """(exit code, stdout, stderr) of a run that is left to end by itself."""
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def torchrun(*arguments):
    """`--` keeps torchrun from taking --run for an option of its own."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "--", "proof_lm")
    return finished(*arguments, launcher=launcher)


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing stopped: its folder and what it printed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    code, out, err = finished("train", *flags(run))
    assert code == 0, err
    return run, out


def losses(run):
    return [float(row["loss"]) for row in read_log(run / "log.csv")]


def same_weights(one, other):
    first, second = (load_file(checkpoints(run)[0]) for run in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_logs_every_step_and_ends_with_the_share_of_theorems_proved(whole):
    run, out = whole
    assert len(losses(run)) == STEPS
    assert losses(run)[-1] < losses(run)[0]
    assert re.search(r"^held-out theorems proved: \d+\.\d%; ", out, re.M)
    assert re.search(r"^longer theorems proved: \d+\.\d%; ", out, re.M)


def test_output_that_is_no_terminal_shows_no_bar(whole):
    assert "\r" not in whole[1]
    assert [line.split(":")[0] for line in whole[1].splitlines() if line.startswith("step")] == ["step 30", "step 60"]


def test_a_run_stopped_by_ctrl_c_exits_with_0_and_goes_on_to_the_same_bits(whole, tmp_path):
    run = tmp_path / "a run"
    process = start("train", *flags(run))
    wait_for(lambda: len(checkpoints(run)) > 1, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    stopped, command = re.search(r"stopped after step (\d+); go on with: (.* -m proof_lm resume .*)", out).groups()
    assert int(checkpoints(run)[0].stem.removeprefix("step-")) == int(stopped)
    python, *arguments = shlex.split(command)
    assert (ROOT / python).samefile(sys.executable)
    code, _, err = finished(*arguments, launcher=())
    assert code == 0, err
    assert same_weights(run, whole[0])
    assert losses(run) == losses(whole[0])


def test_a_killed_run_loses_one_interval_at_most_and_goes_on_to_the_same_bits(whole, tmp_path):
    run = tmp_path / "run"
    process = start("train", *flags(run))
    wait_for(lambda: (found := checkpoints(run)) and int(found[0].stem.removeprefix("step-")) >= 10, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert int(checkpoints(run)[0].stem.removeprefix("step-")) % OPTIONS["save-every"] == 0
    code, _, err = finished("resume", "--run", run)
    assert code == 0, err
    assert same_weights(run, whole[0])
    assert losses(run) == losses(whole[0])


def test_two_processes_follow_the_loss_curve_of_one_and_one_goes_on_where_two_stopped(tmp_path):
    """Without dropout, whose masks differ by process; sums of gradients are rounded in another order."""
    code, _, err = finished("train", *flags(tmp_path / "one", dropout=0, steps=12))
    assert code == 0, err
    code, _, err = torchrun("train", *flags(tmp_path / "two", dropout=0, steps=12))
    assert code == 0, err
    curves = {name: losses(tmp_path / name) for name in ("one", "two")}
    assert len(curves["one"]) == 12
    assert curves["two"] == pytest.approx(curves["one"], abs=1e-4)
    checkpoints(tmp_path / "two")[0].unlink()  # as if stopped after step 10
    code, _, err = finished("resume", "--run", tmp_path / "two")
    assert code == 0, err
    assert losses(tmp_path / "two") == pytest.approx(curves["one"], abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n-heads", "3"], "n_heads: expected a divisor of d_model"),
        (["--steps", "many"], "argument --steps: invalid int value: 'many'"),
        (["--batch-size", "0"], "batch_size: expected at least 1, got 0"),
        (["--position", "absolute"], "position: expected one of rope, learned, got 'absolute'"),
        (["--norm", "Pre"], "norm: expected one of pre, post, none, got 'Pre'"),
        (["--activation", "elu"], "activation: expected one of gelu, gelu_tanh, relu, silu, got 'elu'"),
        (["--tie-embeddings", "no"], "unrecognized arguments: no"),
        (["--text", "{tmp}/short.txt"], "its last tenth must be longer than context_length"),
        (["--text", "{tmp}/none.txt"], "No such file or directory"),
        (["--run", "/proc/run"], "/proc/run"),
        (["--run", ""], "run: expected a folder, got ''"),
        (["--hardest", "1000"], "hardest: expected at most 7 lines, got 1000"),
        (["--learning-rate", "nan"], "learning_rate: expected at least 0, got nan"),
        (["--learning-rate", "inf"], "learning_rate: expected at least 0 and finite, got inf"),
        (["--seed", str(2**63)], "seed: expected less than 2**63"),
        (["--d-model", str(2**40)], "not enough memory"),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_one_line(arguments, said, tmp_path, capsys):
    from proof_lm.cli import main

    (tmp_path / "short.txt").write_text("p" * 100)
    arguments = [text.format(tmp=tmp_path) for text in arguments]
    try:
        code = main(["train", "--run", str(tmp_path / "run"), "--examples", "64", *arguments])
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert code in (1, 2)
    assert said in captured.err
    assert captured.err.count("\n") == 1 and "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "architecture"),
    [
        ([], {}),
        (["--norm", "post"], {"norm": "post"}),
        (
            ["--position", "learned", "--activation", "relu", "--no-tie-embeddings", "--head-bias"],
            {"position": "learned", "activation": "relu", "tie_embeddings": False, "head_bias": True},
        ),
    ],
)
def test_the_architecture_is_an_option_and_a_checkpoint_keeps_it(arguments, architecture, tmp_path, monkeypatch):
    from proof_lm import cli as command_line

    started = []
    monkeypatch.setattr(command_line, "train_to_the_end", lambda state, world: started.append(state))
    assert command_line.main(["train", "--run", str(tmp_path), *arguments]) == 0
    (state,) = started
    assert state.model.config == DecoderConfig(ProofData.vocab_size, 128, 4, 64, 4, 256, **architecture)
    save_checkpoint(state)
    assert load_newest(tmp_path).model.config == state.model.config


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--context-length", "8"], "context_length: expected at least "),
        (["--run", "{tmp}/file"], "{tmp}/file/log.csv: Not a directory"),
    ],
)
def test_what_shows_only_with_the_data_is_refused_in_one_line_too(arguments, said, tmp_path, capsys):
    from proof_lm.cli import main

    (tmp_path / "file").touch()
    assert main(["train", *flags(tmp_path / "run"), *(text.format(tmp=tmp_path) for text in arguments)]) == 1
    err = capsys.readouterr().err
    assert said.format(tmp=tmp_path) in err and err.count("\n") == 1


def test_a_reader_that_goes_away_costs_one_line(whole):
    process = start("evaluate", "--run", whole[0], "--theorems", 1)
    process.stdout.close()
    assert process.stderr.read() == "python -m proof_lm: output: Broken pipe\n"
    assert process.wait() == 1
    process.stderr.close()


def test_a_folder_that_holds_a_run_is_not_overwritten(whole, capsys):
    from proof_lm.cli import main

    assert main(["train", *flags(whole[0])]) == 1
    assert "holds a run already" in capsys.readouterr().err


def test_a_trained_run_is_sampled_from_and_its_proof_is_judged(whole, capsys):
    from proof_lm.cli import main

    assert main(["sample", "--run", str(whole[0]), "p -> q, p |- q"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("p -> q\np\n|- q\n")
    assert "checked: every line follows" in out or "not a proof:" in out
    assert main(["sample", "--run", str(whole[0]), "p->Q |- q"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "formula 'p -> Q'" in err


def test_nothing_cannot_be_continued(tmp_path, capsys):
    from proof_lm.cli import main

    text = tmp_path / "text"
    text.write_text("p" * 1000)
    assert main(["train", *flags(tmp_path / "run", text=text, steps=1)]) == 0
    assert main(["sample", "--run", str(tmp_path / "run"), ""]) == 1
    assert capsys.readouterr().err.endswith("prompt: expected at least one byte to continue\n")


def test_an_evaluation_on_no_theorems_is_refused(whole, capsys):
    from proof_lm.cli import main

    assert main(["evaluate", "--run", str(whole[0]), "--theorems", "0"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_ctrl_c_before_anything_has_begun_leaves_no_traceback(tmp_path):
    """It comes while torch is imported, which takes seconds."""
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "proof_lm", "train", "--run", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGINT and done.stderr == ""
