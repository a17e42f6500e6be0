"""The only part that runs inside the sandbox; copied there, it imports nothing of this package.

``kernel FD`` becomes one kernel (cold; bubblewrap made the namespaces).
``warm FD MODULE...`` imports the modules, then forks a kernel for every message on FD (warm; each fork
makes namespaces of its own). Warm is single-threaded and never reads a request: what it reads, later kernels
would inherit. ``probe UID`` only looks whether the walls stand.

FD is a Unix socket to the grader. A kernel reads its request there (eight bytes of length, JSON, listening sockets
for its five channels and one for forks of it that answer later), shuts itself in, says one byte (the kernel tells the grader who sent it) and waits for one in return.
"""

import base64
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import types

WORK, TEMPORARY, SHARED_MEMORY = "/tmp/work", "/tmp", "/dev/shm"
PRIVATE = (TEMPORARY, SHARED_MEMORY)
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)  # fmt: skip
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 4, 22, 38, 2
CAPABILITY_VERSION_3 = 0x20080522
ANSWERING = 99  # the descriptor on which forks of a kernel may answer the grader when all else is over

# imported by a kernel while it starts; without pdb and what meets a shell at import (matplotlib_inline)
OF_EVERY_KERNEL = ("tornado.platform.asyncio", "tornado.queues", "faulthandler", "code", "IPython.core.completerlib",
                   "IPython.extensions.storemagic", "IPython.core.logger", "IPython.core.oinspect")  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)
system = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock, which a fork must hold
SYSCALL_CLONE = {"x86_64": 56, "aarch64": 220}  # by machine


def call(name, *arguments):
    """A libc function that sets errno; raises OSError naming it."""
    if getattr(libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def receive(connection):
    """(request, listening sockets): the grader's message to one kernel."""
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 8)
    (length,) = struct.unpack("=Q", head)
    body = bytearray()
    while len(body) < length:
        chunk = connection.recv(min(1 << 20, length - len(body)))
        if not chunk:
            raise EOFError("the grader hung up before the request was complete")
        body += chunk
    return json.loads(bytes(body)), [socket.socket(fileno=number) for number in descriptors]


def close_all_but(*kept):
    """Close every descriptor above stderr except ``kept``."""
    low = 3
    for number in sorted(kept):
        os.closerange(low, number)
        low = number + 1
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


# --- walls ------------------------------------------------------------------------------------------------------


def fork_apart():
    """Like os.fork, but the child is the first process of new ipc, pid, mount and network namespaces.

    An ordinary user needs a user namespace to be allowed. unshare would need a second fork, and each copies the page
    tables of all that was imported.
    """
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | signal.SIGCHLD
    uid, gid = os.geteuid(), os.getegid()
    number = SYSCALL_CLONE[os.uname().machine]
    ctypes.pythonapi.PyOS_BeforeFork()
    child = system.syscall(number, flags if uid == 0 else flags | CLONE_NEWUSER, None, None, None, None)
    if child != 0:
        error = ctypes.get_errno()
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        if child < 0:
            raise OSError(error, f"clone: {os.strerror(error)}")
        return child
    ctypes.pythonapi.PyOS_AfterFork_Child()
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    return 0


def mount_private(uid, file_bytes):
    """Own /proc and empty temporary folders over those of the warm process; all else stays read-only."""
    owner = uid if os.geteuid() == 0 else os.geteuid()
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    options = f"size={file_bytes},nr_inodes=65536,mode=1777,uid={owner}".encode()
    for path in PRIVATE:
        kept = {place: os.open(place, os.O_PATH) for place in mounts_below(path)}
        call("mount", b"tmpfs", path.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)
        for place, number in kept.items():  # an interpreter that lies there
            os.makedirs(place, mode=0o755)
            call("mount", f"/proc/self/fd/{number}".encode(), place, None, MS_BIND | MS_REC, None)
            os.close(number)
    call("mount", b"devpts", b"/dev/pts", b"devpts", MS_NOSUID | MS_NOEXEC, b"newinstance,ptmxmode=0666,mode=620")
    call("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)


def mounts_below(path):
    """Where something is mounted on the file system that is mounted at `path`."""
    with open("/proc/self/mountinfo", "rb") as file:  # number, parent's number, device, root, place
        lines = [line.split()[:5] for line in file]
    tops = [number for number, _, _, _, place in lines if os.fsdecode(place) == path]
    # blanks and the like are written as octal numbers
    return [place.decode("unicode_escape").encode("latin-1") for _, parent, _, _, place in lines if parent in tops]


def drop_privileges(uid):
    """A fresh user if we are root, no capabilities and none to be had, closed to others of the same user."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call("capset", struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24))
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def install_filter(program):
    """The system call filter; bubblewrap has installed it for a cold kernel."""
    buffer = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0)


def limit(limits):
    """Hard limits (nobody here may raise them), and first to go when the machine runs short of memory.

    DATA is on top of what this process was given, which in a fork is shared and not its own.
    """
    with open("/proc/self/statm") as file:
        limits["DATA"] += int(file.read().split()[5]) * resource.getpagesize()
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    with contextlib.suppress(PermissionError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def check_walls():
    """Refuse to run anything if a wall is missing: the last look before a stranger's code."""
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    holds = {
        "ordinary user": "0" not in status["Uid"].split(),
        "no capabilities": all(int(status[f"Cap{kind}"], 16) == 0 for kind in ("Inh", "Prm", "Eff", "Amb")),
        "no new privileges": status["NoNewPrivs"] == "1",
        "system call filter": status["Seccomp"] == "2",
        "own process namespace": os.getppid() <= 1,
        "no network": socket.if_nameindex() in ([], [(1, "lo")]),
        "read-only root": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
    }
    missing = [wall for wall, there in holds.items() if not there]
    if missing:
        raise RuntimeError(f"sandbox incomplete: {', '.join(missing)}")


# --- kernel -----------------------------------------------------------------------------------------------------


def split(connection, request, listeners):
    """Fork the kernel and stay behind as process 1 of its namespace, whose end is the end of all in it."""
    limit(request["limits"])
    kernel = os.fork()
    if kernel == 0:
        call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # its own /proc/self; process 1 stays closed to it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run_kernel(connection, request, listeners)
    close_all_but(connection.fileno())
    be_first(kernel, connection)


def be_first(kernel, connection):
    """Bury orphans until the kernel ends or the grader hangs up, however it ended.

    A parent-death signal would not do: bubblewrap gives up the right to signal the user that we became.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.write(writer, b"\0")  # have a first look: the kernel may have ended before there was a handler
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    poller.register(connection, select.POLLRDHUP)
    number = 0
    while number != kernel:
        # no wait while there may be more to bury, but a look at the grader each time: a storm must not hide its end
        if any(at == connection.fileno() for at, _ in poller.poll(0 if number else None)):
            break
        with contextlib.suppress(BlockingIOError):
            os.read(reader, 4096)
        number = os.waitpid(-1, os.WNOHANG)[0]
    os._exit(0)


def run_kernel(connection, request, listeners):
    """Place the files, tell the grader, wait for its word, be an IPython kernel; never returns."""
    check_walls()
    os.makedirs(WORK, mode=0o700)
    os.chdir(WORK)
    for name, content in request["files"].items():
        with contextlib.suppress(OSError):  # a file that finds no place is missing, as it would be anywhere
            if os.path.dirname(name):
                os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "xb") as file:
                file.write(base64.b64decode(content))
    connection.sendall(b"\0")
    if not connection.recv(1):
        os._exit(1)
    connection.close()
    del sys.argv[1:]  # how it came to be is no business of a notebook
    *listeners, answering = listeners
    answering.setblocking(True)
    os.dup2(answering.detach(), ANSWERING, inheritable=False)
    application = kernel_application().instance(listeners, request["connection"])
    application.initialize(request["arguments"])
    application.shell.ask_exit = lambda: None  # exit() in a cell ends no grading
    sys.path[:] = [*filter(os.path.isdir, filter(None, sys.path)), WORK]  # last: no file here shadows a library
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        application.start()
    os._exit(0)


def kernel_application():
    """IPKernelApp that serves on sockets made by the grader, so that no path is shared with the sandbox."""
    sys.modules["debugpy"] = None  # half of a kernel's start, and nobody debugs here
    import ipykernel.debugger  # noqa: F401  finds now that there is none
    import zmq
    from ipykernel import ipkernel, kernelapp
    from ipykernel.heartbeat import Heartbeat
    from ipykernel.iostream import IOPubThread
    from zmq.eventloop.zmqstream import ZMQStream

    def bind(listener, server):
        server.setsockopt(zmq.SNDHWM, 0)  # what the grader has not read yet waits here, where memory is bounded
        server.setsockopt(zmq.USE_FD, listener.detach())
        server.bind("ipc:///kernel")  # a name only: the descriptor is bound already
        server.setsockopt(zmq.USE_FD, -1)

    class GivenHeartbeat(Heartbeat):
        listener = None

        def _bind_socket(self):
            bind(self.listener, self.socket)

    class LocalPipeThread(IOPubThread):
        """What forked children print comes by a Unix socket of our namespace: there is no TCP."""

        pipe = "ipc://@children"

        def _setup_pipe_in(self):
            self._pipe_uuid = os.urandom(16)
            receiver = self.socket.context.socket(zmq.PULL)
            receiver.bind(self.pipe)
            self._pipe_in = ZMQStream(receiver, self.io_loop)
            self._pipe_in.on_recv(self._handle_pipe_msg)

        def _setup_pipe_out(self):
            context = zmq.Context()  # a new one after a fork
            sender = context.socket(zmq.PUSH)
            sender.linger = 3000
            sender.connect(self.pipe)
            return context, sender

    kernelapp.IOPubThread = LocalPipeThread

    class GivenSocketsApp(kernelapp.IPKernelApp):
        ignore_cwd = True
        parent_handle = 1  # watch no parent, and do not greet a terminal

        def __init__(self, listeners, connection, **options):
            super().__init__(**options)
            self.listeners = dict(enumerate(listeners, start=1))
            self.given_connection = connection
            self.config.HistoryManager.enabled = False  # In and Out stay; no database of what was typed

        def init_connection_file(self):
            self.load_connection_info(self.given_connection)

        def write_connection_file(self, **options):
            """The grader has one."""

        def _bind_socket(self, s, port):
            bind(self.listeners.pop(port), s)
            s.bind(f"inproc://channel-{port}")  # for the kernel's own client: the last endpoint must be reachable
            return port

        def parse_command_line(self, argv=None):
            """Nothing to parse: building the parser of every option takes longer than starting the shell."""
            if argv:
                super().parse_command_line(argv)

        def _configure_logging(self):
            """Nobody reads a log here."""

        def init_pdb(self):
            """Nobody debugs here."""

        def init_kernel(self):
            """Without the list of all modules' files, a debugger's: a fork copies each module's memory to read it."""
            ipkernel.sys = types.SimpleNamespace(modules={})
            try:
                super().init_kernel()
            finally:
                ipkernel.sys = sys

        def init_heartbeat(self):
            self.heartbeat = GivenHeartbeat(zmq.Context(), (self.transport, self.ip, self.hb_port))
            self.heartbeat.listener = self.listeners.pop(self.hb_port)
            self.heartbeat.start()

    return GivenSocketsApp


# --- warm -------------------------------------------------------------------------------------------------------


def preload(modules):
    """Import what every submission imports; raises RuntimeError if that started a thread."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as ipykernel sets it; read at import
    for name in (*modules, *OF_EVERY_KERNEL):
        with contextlib.suppress(ImportError):  # who needs a module that is not there is told when it imports it
            importlib.import_module(name)
    kernel_application()
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"importing {', '.join(modules)} started {threads - 1} thread(s); forking is not safe")


def reseed():
    """Random numbers that no other fork has; Python's own generator does it by itself."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()  # torch.seed() also writes a traceback for each accelerator


def serve(control, modules):
    """Fork a kernel for every message (one byte, its socket and its stderr) until the grader hangs up."""
    gc.disable()  # the collector would go through all that is imported, again and again
    try:
        preload(modules)
        rehearse()
    except Exception as error:
        control.sendall(f"{type(error).__name__}: {error}".encode()[:4000])
        return
    gc.freeze()  # later collections in the forks leave the shared pages alone
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps for us
    control.sendall(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not message:
            return
        try:
            if fork_apart() == 0:
                become_first(control, *descriptors)
        except OSError as error:
            os.write(descriptors[1], f"{error.strerror}\n".encode())
        for number in descriptors:
            os.close(number)


def rehearse():
    """Raise RuntimeError where namespaces within namespaces are refused, before a submission needs them."""
    child = fork_apart()
    if child == 0:
        try:
            mount_private(os.geteuid(), 1 << 20)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        raise RuntimeError(f"namespaces within namespaces are refused: {os.strerror(status)}")


def become_first(control, socket_number, stderr_number):
    """From here on nothing is shared with the warm process but memory that it will not write again."""
    try:
        control.close()
        stdin, writer = os.pipe()
        os.close(writer)
        for source, target in ((stdin, 0), (stderr_number, 1), (stderr_number, 2)):
            os.dup2(source, target)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 ignores
        os.setsid()
        connection = socket.socket(fileno=socket_number)
        request, listeners = receive(connection)
        close_all_but(socket_number, *(listener.fileno() for listener in listeners))
        mount_private(request["uid"], request["file_bytes"])
        drop_privileges(request["uid"])
        install_filter(base64.b64decode(request["filter"]))
        reseed()
        gc.enable()
        split(connection, request, listeners)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def main():
    role, number, *rest = sys.argv[1:]
    os.umask(0o022)  # the way to what is shown must be open to a fresh user
    if role == "probe":
        drop_privileges(int(number))
        check_walls()
        return
    connection = socket.socket(fileno=int(number))
    if role == "warm":
        serve(connection, rest)
        return
    try:
        request, listeners = receive(connection)
        close_all_but(int(number), *(listener.fileno() for listener in listeners))
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 ignores
        drop_privileges(request["uid"])
        split(connection, request, listeners)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


if __name__ == "__main__":
    main()
