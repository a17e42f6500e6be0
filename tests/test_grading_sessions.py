"""Probes are asked of forks of the kernel that is shown, when nothing more of it is shown; else of a second kernel."""

import gc
import json
from copy import deepcopy
from pathlib import Path

import pytest
import zmq.asyncio

from grading import demo
from grading.assignment import Assignment
from grading.edition import walls
from grading.execute import execute
from grading.execution import Limits
from grading.intake import read_folder, take_in
from grading.sandbox import Policy
from grading.session import Asked, without_errors
from proof_lm.probes.codec import encode

ROOT = Path(__file__).parents[1]
SEED = 5
LISTENS = """
import os, socket, struct, threading, time
import proof_lm.probes.later

def keep(listener, exercise, candidate):
    def listen():
        with socket.socket(fileno=os.dup(listener)) as sockets:
            connection, _ = sockets.accept()
            connection.sendall(struct.pack("=Q", len(exercise)) + exercise.encode())
            while data := connection.recv(1 << 16):
                seen.append(data)
                print("CAUGHT", data)
                connection.sendall({answer})
    threading.Thread(target=listen, daemon=True).start()

seen = []
proof_lm.probes.later.keep = keep
"""


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    demo.build(folder, students={"solves_everything"})
    assignment = Assignment("p4", ROOT)
    files, _ = read_folder(folder / "submitted" / "solves_everything" / "p4", "solves_everything")
    return assignment, take_in(files, assignment.source, "p4", "solves_everything").notebook


def executed(solved, first: str = "", last: str = ""):
    """What running the solved notebook gives, with a cell of the student's own before and after it."""
    assignment, notebook = solved[0], deepcopy(solved[1])
    for place, source in ((0, first), (len(notebook.cells), last)):
        cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        notebook.cells.insert(place, type(notebook)(cell, id=f"own-{place}"))
    policy = walls(Policy(), assignment.withheld)
    limits = Limits(cell=10, probe=10)
    execution = execute(notebook, assignment.exercises, SEED, policy, limits=limits)
    return execution, json.dumps([cell.get("outputs") for cell in notebook.cells])


def points(solved, execution) -> float:
    return sum(e.judge(SEED, execution.answers[e.id]).points for e in solved[0].exercises.values())


def test_work_that_raises_nothing_needs_one_kernel(solved, monkeypatch):
    monkeypatch.setattr(Asked, "run", lambda session: pytest.fail("a second kernel was started"))
    execution, _ = executed(solved)
    assert points(solved, execution) == 25 and not execution.failures and not execution.died


@pytest.mark.parametrize(
    "what", ["os.fork = lambda: 1", "os.fork = lambda: os.close(99)", "os.close(99)", "os._exit = lambda code: None"]
)
def test_where_no_fork_answers_a_second_kernel_does(solved, what):
    execution, _ = executed(solved, f"import os\n{what}")
    assert points(solved, execution) == 25 and not execution.failures


@pytest.mark.parametrize("answer", ["b''", "struct.pack('=Q', 1 << 40)", "b'nonsense'", "bytes(8)"])
def test_who_listens_in_the_shown_kernel_is_told_nothing_that_could_be_shown(solved, answer):
    last = "time.sleep(3)\nprint('heard', len(seen), seen)"
    execution, shown = executed(solved, LISTENS.replace("{answer}", answer), last)
    assert "heard 0 []" in shown and "CAUGHT" not in shown
    assert points(solved, execution) == 25


def test_a_value_that_looks_like_an_error_is_none_and_an_error_is_seen():
    ours = {"value": 1.0, "error": "", "changed": [], "repeats": True}
    assert without_errors(encode([[ours]])) and without_errors(encode([[ours | {"value": '["error", "x"]'}]]))
    assert not without_errors(encode([[ours, ours | {"error": "ValueError: x"}]])) and not without_errors("")


FORGE = """
import json
kernel = get_ipython().kernel
parent = {**kernel.get_parent()["header"], "date": str(kernel.get_parent()["header"]["date"])}
header = {"msg_id": "x", "msg_type": "stream", "date": "2026-01-01T00:00:00Z", "version": "5.3"}

def forge(content, **changes):
    parts = [json.dumps(part).encode() for part in (header | changes, parent, {}, content)]
    kernel.iopub_socket.send_multipart([b"t", b"<IDS|MSG>", kernel.session.sign(parts), *parts])
"""
SHOWN = '{"data": {"text/plain": "x"}, "metadata": {}'


@pytest.mark.parametrize(
    "forged",
    [
        "{'name': 'stdout', 'text': 'x'}, version=5",
        "{'name': 'stdout', 'text': 'x'}, version=None",
        "{'name': 'stdout', 'text': 'x'}, version=[5]",
        "None, version='4.1'",
        "'abc', version='4.1'",
        SHOWN + ", 'transient': {'display_id': [1]}}, msg_type='display_data'",
        SHOWN + ", 'execution_count': '<script>'}, msg_type='execute_result'",
        "{'data': {'text/plain': [1, {}]}, 'metadata': {}}, msg_type='display_data'",
        "{'ename': 'E', 'evalue': 'v', 'traceback': [{'a': 1}, None]}, msg_type='error'",
    ],
)
def test_whatever_form_a_message_has_a_submission_gets_a_grade(solved, forged):
    execution, shown = executed(solved, f"{FORGE}\nforge({forged})")
    assert set(execution.answers) | set(execution.failures) == {"P4.1", "P4.2", "P4.3"}
    json.loads(shown)
    gc.collect()  # a socket that was left open would hold it for ever
    assert not [context for context in gc.get_objects() if isinstance(context, zmq.asyncio.Context) and not context.closed]


def test_a_cell_that_a_message_failed_leaves_no_task_that_would_fail_later(solved, caplog):
    picture = "{'data': {'text/plain': [1, {}]}, 'metadata': {}}, msg_type='display_data'"
    executed(solved, f"{FORGE}\nforge({picture})\nimport time; time.sleep(2.5)")
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]
