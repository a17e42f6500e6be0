"""What a student may do works as in any kernel, and the same in a warm one."""

import asyncio
import base64
import os
import signal
import time
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from grading.sandbox import Policy, SandboxedKernelManager, bubblewrap
from grading.sandbox.warm import WarmProcess, close_all, warm_process
from sandbox.conftest import Box


def test_numpy_and_torch_compute_and_learn(box):
    answer = box.run("""
import numpy, torch
torch.manual_seed(41)
layer = torch.nn.Linear(3, 1)
optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
inputs = torch.ones(4, 3)
losses = []
for _ in range(3):
    loss = (layer(inputs) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(losses[0] > losses[1] > losses[2], numpy.linalg.inv(numpy.eye(3)).sum())
""")
    assert answer.text == "True 3.0\n"


@pytest.mark.parametrize("leave", ["exit", "quit()", "exit(keep_kernel=True)"])
def test_who_leaves_in_a_cell_goes_on_in_the_next(box, leave):
    box.run(leave)
    time.sleep(0.3)  # a kernel that ends does so a moment later
    assert box.run("print('alive')").text == "alive\n"


def test_figures_are_shown(box):
    answer = box.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('loss')\nplt.show()")
    assert answer.error is None
    assert base64.b64decode(answer.pictures[0]).startswith(b"\x89PNG")


def test_figure_without_show_is_shown_at_the_end_of_a_cell(box):
    assert len(box.run("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([3, 2, 1]);").pictures) == 1


def test_files_of_the_assignment_are_there_and_may_be_changed(new_box):
    box = new_box(files={"data/corpus.txt": b"to be", "weights.npy": bytes(range(256)) * 4096})
    assert box.run("print(open('data/corpus.txt').read())").text == "to be\n"
    assert box.run("print(len(open('weights.npy', 'rb').read()))").text == "1048576\n"
    assert box.run("open('data/corpus.txt', 'a').write('!'); print(open('data/corpus.txt').read())").text == "to be!\n"


def test_file_that_finds_no_place_is_missing_and_the_kernel_starts(new_box):
    box = new_box(files={"a": b"1", "a/b": b"2", "n" * 300: b"3", "c": b"4"})
    assert box.run("import os\nprint(sorted(os.listdir()))").text == "['a', 'c']\n"


def test_read_only_packages_can_be_imported_and_not_changed(new_box, tmp_path):
    package = tmp_path / "edition" / "lesson_kit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("ANSWER = 42\n")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    box = new_box(read_only_paths=(package,))
    assert box.run("import lesson_kit\nprint(lesson_kit.ANSWER, lesson_kit.__file__)").text == (
        "42 /packages/lesson_kit/__init__.py\n"
    )
    error = box.run("open('/packages/lesson_kit/__init__.py', 'w')").error
    assert error.startswith(("PermissionError", "OSError: [Errno 30]"))


def test_file_of_the_student_shadows_no_library(new_box):
    box = new_box(files={"numpy.py": b"raise SystemExit('shadow')", "helper.py": b"def twice(x): return 2 * x"})
    assert box.run("import numpy, helper\nprint(numpy.zeros(2), helper.twice(4))").text == "[0. 0.] 8\n"


def test_helpers_may_use_processes(box):
    answer = box.run("""
import subprocess, torch
print(subprocess.run(["echo", "hello"], capture_output=True, text=True).stdout, end="")
loader = torch.utils.data.DataLoader(torch.arange(8).float(), batch_size=4, num_workers=2)
print([batch.sum().item() for batch in loader])
""")
    assert answer.text == "hello\n[6.0, 22.0]\n"


def test_forked_children_can_be_heard(box):
    answer = box.run("""
import os, time
if os.fork() == 0:
    print("from a child", flush=True)
    time.sleep(0.5)
    os._exit(0)
os.wait()
""")
    assert answer.text == "from a child\n"


def test_shell_escape_works(box):
    assert box.run("!echo hello").text.strip() == "hello"


def test_kernel_asks_for_nothing(box):
    assert box.run("input('name?')").error.startswith("StdinNotImplementedError")


def test_random_numbers_differ_between_kernels(new_box):
    draw = "import numpy, torch, random\nprint(numpy.random.rand(), random.random(), torch.rand(1).item())"
    first, second = (new_box().run(draw).text.split() for _ in range(2))
    assert len(set(first) | set(second)) == 6


def test_cold_and_warm_give_the_same_outputs():
    code = """
import sys, os, threading, pdb, signal
import numpy as np, torch
print(np.arange(3) / 3, torch.get_num_threads(), torch.ones(2))
print(get_ipython().__class__.__name__, pdb.Pdb.__module__, threading.current_thread().name)
print(os.getcwd(), sys.path, sorted(os.environ), sys.argv, __name__)
print({n: str(signal.getsignal(n)) for n in sorted(signal.valid_signals()) if signal.getsignal(n) is not None})
1 / 0
"""
    answers = []
    for start in ("cold", "warm"):
        box = Box(start=start)
        answers.append(box.run(code))
        assert box.manager.isolation == start
        box.close()
    assert answers[0] == answers[1]
    assert answers[0].error == "ZeroDivisionError: division by zero"


def test_warm_process_stays_single_threaded():
    policy = Policy()
    process = warm_process(policy)
    box = Box(start="warm")
    box.run("import torch\ntorch.ones(500, 500) @ torch.ones(500, 500)")
    box.close()
    assert process.alive()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    inner = [child for pid in children for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    for pid in (process.pid, *children, *inner):
        threads = Path(f"/proc/{pid}/status").read_text().partition("Threads:")[2].split()[0]
        assert threads == "1"
    assert inner


def test_module_that_starts_threads_is_refused_and_the_kernel_is_cold(tmp_path, caplog):
    package = tmp_path / "threaded"
    package.mkdir()
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()"
    (package / "__init__.py").write_text(code)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    box = Box(start="warm", read_only_paths=(package,), preload=("threaded",))
    assert box.manager.isolation == "cold"
    assert "started 1 thread" in caplog.text
    assert box.run("print('alive')").text == "alive\n"
    box.close()


@pytest.mark.parametrize("end", [WarmProcess.close, lambda process: os.kill(process.pid, signal.SIGKILL)])
def test_warm_process_that_died_is_replaced(end):
    process = warm_process(Policy())
    end(process)
    while process.alive():  # what holds it is dead, it ends a moment later
        time.sleep(0.01)
    box = Box(start="warm")
    assert box.manager.isolation == "warm"
    assert box.run("print('alive')").text == "alive\n"
    box.close()


def test_where_namespaces_within_namespaces_are_refused_the_kernel_is_cold(monkeypatch, caplog):
    if os.geteuid() == 0:
        monkeypatch.setattr(bubblewrap, "WARM_CAPABILITIES", bubblewrap.KERNEL_CAPABILITIES)
    else:
        pytest.skip("an ordinary user holds the right to nest in a namespace of its own")
    box = Box(start="warm", preload=("colorsys",))
    assert box.manager.isolation == "cold"
    assert "clone: Operation not permitted" in caplog.text
    assert box.run("print('alive')").text == "alive\n"
    box.close()


def test_a_fork_of_the_grader_shares_its_warm_process_and_leaves_it_running():
    process = warm_process(Policy())
    child = os.fork()
    if child == 0:
        shared = warm_process(Policy()) is process
        close_all()
        os._exit(0 if shared else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.alive() and warm_process(Policy()) is process


def notebook(*cells: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


async def run_through(nb: nbformat.NotebookNode, manager: SandboxedKernelManager) -> None:
    """By nbclient, with patience for a busy machine; the kernel ends with it, which is ours to ask for."""
    patient = NotebookClient(nb, km=manager, shutdown_kernel="immediate", iopub_timeout=60)
    await patient.async_execute(cleanup_kc=True)


def test_nbclient_runs_a_notebook_unchanged(start):
    nb = notebook("x = 20", "print(x + 1)\nx * 2")
    manager = SandboxedKernelManager(policy=Policy(start=start))
    asyncio.run(run_through(nb, manager))
    assert [output.get("text") or output["data"]["text/plain"] for output in nb.cells[1].outputs] == ["21\n", "40"]


def test_no_output_is_lost_when_the_kernel_is_faster_than_we_are(start):
    nb = notebook("for number in range(2000):\n    display(number)")
    asyncio.run(run_through(nb, SandboxedKernelManager(policy=Policy(start=start))))
    assert [int(output["data"]["text/plain"]) for output in nb.cells[0].outputs] == list(range(2000))


def test_nbclient_hears_of_a_dead_kernel(start):
    from nbclient.exceptions import DeadKernelError

    manager = SandboxedKernelManager(policy=Policy(start=start, wall_seconds=3))
    with pytest.raises(DeadKernelError):
        asyncio.run(run_through(notebook("while True: pass"), manager))
    assert manager.stopped_because == "ran longer than 3 s"


def test_stock_manager_uses_the_provisioner_by_its_name():
    async def ask() -> str:
        manager = AsyncKernelManager(kernel_name="python3")
        manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": "prooflm-sandbox"}
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        text = []
        await client.execute_interactive(
            "import socket\nprint(socket.gethostname())",
            output_hook=lambda message: text.append(message["content"].get("text", "")),
        )
        client.stop_channels()
        await manager.shutdown_kernel()
        return "".join(text)

    assert asyncio.run(ask()) == "sandbox\n"


def test_unsafe_kernel_must_be_asked_for_and_says_so():
    async def ask() -> str | None:
        manager = SandboxedKernelManager(unsafe=True)
        await manager.start_kernel()
        await manager.shutdown_kernel(now=True)
        return manager.isolation

    assert asyncio.run(ask()) == "none"


def test_many_kernels_at_once(start):
    async def ask(number: int) -> str:
        nb = notebook(f"print({number} ** 2)")
        await run_through(nb, SandboxedKernelManager(policy=Policy(start=start)))
        return nb.cells[0].outputs[0]["text"]

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*map(ask, range(6)))

    assert asyncio.run(all_of_them()) == [f"{number**2}\n" for number in range(6)]
