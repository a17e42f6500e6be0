"""Kernels in which stranger's code runs shut in.

    manager = SandboxedKernelManager(policy=Policy(read_only_paths=(edition,), files={"corpus.txt": content}))
    NotebookClient(notebook, km=manager).execute()
    manager.isolation          # "warm", "cold" or "none": belongs in the grade's record
    manager.stopped_because    # "used more than 2048 MiB of memory", or None

``available()`` is None or the reason why no sandbox can be made here; starting a kernel then raises SandboxError
with it. ``SandboxedKernelManager(unsafe=True)`` runs without walls and has to be asked for. A stock manager (nbval,
nbconvert) gets the same walls through the provisioner named ``prooflm-sandbox``
(``JUPYTER_DEFAULT_PROVISIONER_NAME=prooflm-sandbox``), but not the bounds on output, which are the client's.

Two walls. bubblewrap shows the interpreter and system libraries read-only, an empty /tmp and /dev/shm, and nothing
else; no network, no environment, no descriptor but the channels and pipes. A cold kernel is a new interpreter there.
For warm kernels an interpreter there has imported the libraries and forks; each fork enters new pid, mount, ipc and
network namespaces (and, unless root, a user namespace), mounts its own /proc, /tmp, /dev/shm and /dev/pts, and drops
what it holds: root becomes a user that owns nothing. Both then pass the same check before stranger's code runs:
no capabilities, none to be had, system call filter, read-only root. What being warm costs is that all forks share
the layout of memory (address randomisation, hash seed) of the process they came from.

The channels are Unix sockets bound by the grader in a folder that the sandbox does not see; the kernel is handed the
listening descriptors. So no path leads from one side to the other. Process 1 of each sandbox holds a socket to the
grader and ends, with everything in its namespace, when that closes, whatever happened to the grader.
"""

from grading.sandbox.bubblewrap import available
from grading.sandbox.policy import Policy, SandboxError

__all__ = ["Policy", "SandboxError", "SandboxedKernelManager", "available"]


def __getattr__(name: str):
    if name == "SandboxedKernelManager":  # with Jupyter's client; who begins a warm process need not wait for it
        from grading.sandbox.manager import SandboxedKernelManager

        return SandboxedKernelManager
    raise AttributeError(f"module 'grading.sandbox' has no attribute {name!r}")
