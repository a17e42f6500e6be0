"""A kernel that takes more than its share is stopped, with the reason, and nobody else notices."""

import resource
import socket
import time

import pytest

from grading.sandbox.manager import has_form

MEBIBYTE = 1 << 20


def ended_because(box) -> str | None:
    """Wait for the end of the sandbox."""
    assert box.manager.provisioner.process.ended.wait(30)
    return box.manager.stopped_because


def test_memory_of_one_process_ends_in_memory_error(new_box):
    box = new_box(memory_bytes=512 * MEBIBYTE)
    assert box.run("held = bytearray(600 << 20)").error.startswith("MemoryError")
    assert box.run("print('alive')").text == "alive\n"


def test_memory_of_many_processes_is_summed(new_box):
    box = new_box(memory_bytes=512 * MEBIBYTE)
    answer = box.run("""
import ctypes, os, time
for _ in range(8):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(4, 0)  # not dumpable: closed to those who look
        held = bytearray(100 << 20)
        time.sleep(60)
time.sleep(60)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 512 MiB of memory"


def test_shared_pages_are_counted_once(new_box):
    box = new_box(memory_bytes=512 * MEBIBYTE)
    answer = box.run("""
import os, time
held = bytearray(os.urandom(1 << 20) * 150)
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print("alive")
""")
    assert answer.text == "alive\n"


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "."])
def test_files_fill_no_more_than_their_share(new_box, folder):
    box = new_box(file_bytes=8 * MEBIBYTE)
    answer = box.run(f"""
for number in range(100):
    with open(f"{folder}/{{number}}", "wb") as file:
        file.write(bytes(1 << 20))
""")
    assert answer.error.startswith("OSError: [Errno 28]")


def test_files_count_as_memory(new_box):
    box = new_box(memory_bytes=256 * MEBIBYTE, file_bytes=300 * MEBIBYTE)
    answer = box.run("""
import time
with open("/tmp/large", "wb") as file:
    for _ in range(250):
        file.write(bytes(1 << 20))
time.sleep(30)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 256 MiB of memory"


def test_empty_files_count_as_memory(new_box):
    box = new_box(memory_bytes=384 * MEBIBYTE)
    answer = box.run("""
number = 0
while True:
    open(f"/tmp/{number}", "w").close()
    number += 1
""", timeout=120)  # fmt: skip
    # the warm sandbox bounds the number of files, the cold one what they take
    assert "Errno 28" in answer.error or (answer.error == "dead" and "memory" in ended_because(box))


def test_one_file_is_bounded(new_box):
    box = new_box(file_bytes=4 * MEBIBYTE)
    assert box.run("open('/tmp/f', 'wb').truncate(5 << 20)").error.startswith("OSError: [Errno 27]")


def test_open_files_are_bounded(new_box):
    box = new_box(open_files=128)
    assert box.run("kept = [open('/dev/null') for _ in range(200)]").error.startswith("OSError: [Errno 24]")


def test_processes_are_bounded_and_others_are_not_hit(new_box):
    hostile, honest = new_box(processes=40, wall_seconds=30), new_box(processes=40)
    answer = hostile.run("""
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    print("refused after", made)
""")
    assert "refused after" in answer.text
    assert int(answer.text.split()[2]) < 40
    assert honest.run("import subprocess\nprint(subprocess.run(['true']).returncode)").text == "0\n"


def test_fork_bomb_ends_with_the_sandbox(new_box):
    box = new_box(processes=40, wall_seconds=6, cpu_seconds=4)
    box.run("""
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""", timeout=60)  # fmt: skip
    assert ended_because(box) in ("ran longer than 6 s", "used more than 4 s of processor time")


def test_processor_time_of_all_processes_is_summed(new_box):
    box = new_box(cpu_seconds=2)
    answer = box.run("""
import os
for _ in range(4):
    if os.fork() == 0:
        while True:
            pass
os.wait()
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 2 s of processor time"


def test_processor_time_of_buried_processes_counts(new_box):
    box = new_box(cpu_seconds=2)
    answer = box.run("""
import os, time
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        os._exit(0)
    os.wait()
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 2 s of processor time"


def test_processor_time_of_processes_that_nobody_buries_counts(new_box):
    box = new_box(cpu_seconds=2, wall_seconds=30)
    answer = box.run("""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        os._exit(0)
    time.sleep(0.25)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 2 s of processor time"


def test_page_tables_count_as_memory(new_box):
    """A page for each two megabytes of an empty mapping, which no process and no file owns."""
    box = new_box(memory_bytes=384 * MEBIBYTE)
    answer = box.run("""
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for _ in range(64):
    start = libc.mmap(None, 1 << 35, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(1 << 35), 15)  # no huge pages
    for offset in range(0, 1 << 35, 1 << 21):
        ctypes.c_char.from_address(start + offset).value
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 384 MiB of memory"


def test_what_sockets_hold_counts_as_memory(new_box):
    box = new_box(memory_bytes=384 * MEBIBYTE, wall_seconds=30)
    answer = box.run("""
import os, socket, time
for _ in range(16):
    if os.fork() == 0:
        pairs = [socket.socketpair() for _ in range(100)]
        for end in [end for pair in pairs for end in pair]:
            end.setblocking(False)
            try:
                while True:
                    end.send(bytes(65536))
            except BlockingIOError:
                pass
        time.sleep(60)
time.sleep(60)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "used more than 384 MiB of memory"


def test_sockets_cannot_ask_to_hold_more(box):
    answer = box.run("""
import socket
for option in (socket.SO_SNDBUF, 32):
    try:
        socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, option, 1 << 22)
    except PermissionError:
        print("refused")
""")
    assert answer.text == "refused\nrefused\n"


def test_loop_that_ignores_signals_is_ended(new_box):
    box = new_box(wall_seconds=3)
    answer = box.run("""
import signal, time
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
""")
    assert answer.error == "dead"
    assert ended_because(box) == "ran longer than 3 s"


def test_stopped_kernel_is_ended(new_box):
    box = new_box(wall_seconds=3)
    assert box.run("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)").error == "dead"
    assert ended_because(box) == "ran longer than 3 s"


def test_print_flood_is_ended_and_not_kept(new_box):
    box = new_box(output_bytes=4 * MEBIBYTE)
    answer = box.run("while True:\n    print('x' * 10000)")
    assert answer.error == "dead"
    # a kernel that is faster than we are packs more than one message may hold
    assert ended_because(box) in (
        "sent more than 4 MiB of output", "sent a message of more than 16 MiB"
    )  # fmt: skip
    assert len(answer.text) <= 4 * MEBIBYTE


def test_one_huge_message_does_not_reach_us(new_box):
    box = new_box(message_bytes=1 * MEBIBYTE, wall_seconds=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = box.run("from IPython.display import display\ndisplay({'text/plain': 'x' * (100 << 20)}, raw=True)")
    assert answer.text == "" and answer.error
    assert "message" in ended_because(box)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_flood_on_the_raw_stream_is_not_kept(new_box):
    box = new_box(wall_seconds=3)
    box.run("""
import os, sys
while True:
    os.write(sys.stderr._original_stdstream_copy, b"x" * 65536)
""")
    assert ended_because(box) == "ran longer than 3 s"
    assert set(box.manager.last_words) == {"x"} and len(box.manager.last_words) <= 4096


def test_forged_messages_end_the_kernel(new_box):
    box = new_box(wall_seconds=20)
    answer = box.run("""
import time
from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
app.iopub_thread.send_multipart([b"topic", b"<IDS|MSG>", b"no signature", b"{", b"{", b"{", b"{"])
time.sleep(30)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "sent a message that is no Jupyter message"


MALFORMED = [
    ("stream", {}), ("stream", {"name": "stdout", "text": 5}), ("display_data", []), ("display_data", {"data": {}}),
    ("update_display_data", {"data": {}, "metadata": {}, "transient": 5}), ("error", {"ename": "a"}), ("status", None),
    ("clear_output", {}), ("execute_result", "x"), ("display_data", {"data": [], "metadata": {}}), (5, {}),
    ("execute_reply", {"status": "ok", "user_expressions": 5}),
    ("execute_reply", {"status": "ok", "user_expressions": {"answer": []}}),
    ("execute_reply", {"status": "ok", "user_expressions": {"answer": {"data": 5}}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content"), MALFORMED)
def test_message_without_its_fields_has_no_form(kind, content):
    rest = {"header": {}, "parent_header": {}, "metadata": {}}
    assert not has_form({"msg_type": kind, "content": content, **rest})
    assert not has_form({"msg_type": "status", "content": {"execution_state": "idle"}, **rest, "parent_header": []})
    assert has_form({"msg_type": "status", "content": {"execution_state": "idle"}, **rest})


def test_message_without_its_fields_ends_the_kernel(new_box):
    box = new_box(wall_seconds=20)
    answer = box.run("""
import time
kernel = get_ipython().kernel
kernel.session.send(kernel.iopub_socket, "stream", {}, parent=kernel.get_parent())
time.sleep(30)
""")
    assert answer.error == "dead"
    assert ended_because(box) == "sent a message that is no Jupyter message"


def test_reply_without_its_fields_ends_the_kernel(new_box):
    box = new_box(wall_seconds=20)
    box.run("get_ipython().user_expressions = lambda names: {'answer': {'data': 5}}")
    assert box.run("1").error == "dead"
    assert ended_because(box) == "sent a message that is no Jupyter message"


def test_neighbour_is_not_hit(new_box):
    honest, hostile = new_box(), new_box(memory_bytes=256 * MEBIBYTE, wall_seconds=5)
    honest.run("value = 41")
    hostile.run("import os\nwhile True:\n    os.fork()")
    ended_because(hostile)
    assert honest.run("print(value + 1)").text == "42\n"


def test_clock_of_the_limit_is_not_the_wall_clock(new_box, monkeypatch):
    box = new_box(wall_seconds=60)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert box.run("print('alive')").text == "alive\n"


def test_storm_of_orphans_does_not_hide_the_end(new_box):
    box = new_box(wall_seconds=60)
    answer = box.run("""
import os
for _ in range(8):
    if os.fork() == 0:
        while True:
            try:
                if os.fork() == 0:
                    if os.fork() == 0:
                        os._exit(0)
                    os._exit(0)
                os.wait()
            except OSError:
                pass
print("storm")
""")
    assert answer.text == "storm\n"
    process = box.manager.provisioner.process
    process._connection.shutdown(socket.SHUT_RDWR)  # as when the grader is gone
    assert process.ended.wait(30)
