"""The system calls that no sandboxed process may make, as a classic BPF program.

Hand-assembled (about 200 instructions) because the same bytes must serve bubblewrap and a forked kernel, and a
library would need libseccomp installed beside Python. What needs a capability is not listed: there is none.
"""

from __future__ import annotations

import errno
import os
import struct

from grading.sandbox.policy import SandboxError

# name: number on (x86_64, aarch64). Grouped by why.
DENIED = {
    # new namespaces and mounts: a way back to capabilities
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    # other processes' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    # memory that no process and no file system accounts for
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "msgget": (68, 186), "semget": (64, 190),
    # what happens to files that every sandbox sees
    "inotify_add_watch": (254, 27),
    # the user's keyrings, shared by every namespace
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # large kernel surfaces that no notebook needs
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "personality": (135, 92),
    "syslog": (103, 116), "quotactl": (179, 60), "quotactl_fd": (443, 443),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
SOCKET, SOCKETPAIR, IOCTL, SETSOCKOPT = (41, 198), (53, 199), (16, 29), (54, 208)
SOCKET_IOCTLS = 0x8900, 0x8A00  # SIOCGIFCONF and the like
FLOCK, FCNTL = (73, 32), (72, 25)
LOCKS = (6, 7, 37, 38, 1024, 1026)  # F_SETLK, F_SETLKW, their OFD kin, F_SETLEASE, F_NOTIFY
AUDIT_ARCH = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, kernel's name for it
CLONE_NEW_ANYTHING = 0x7E020000  # CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
SOL_SOCKET, SO_SNDBUF, SO_SNDBUFFORCE = 1, 7, 32
AF_UNIX, AF_NETLINK, NETLINK_ROUTE = 1, 16, 0

LOAD, JUMP_EQUAL, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, ARGUMENT = 0, 4, (16, 24, 32)  # offsets in struct seccomp_data, low words
ALLOW, KILL = 0x7FFF0000, 0x80000000


def _fail(code: int) -> int:
    return 0x00050000 | code  # SECCOMP_RET_ERRNO


def program(machine: str | None = None) -> bytes:
    """The filter as an array of ``struct sock_filter`` for ``machine`` (default: this one).

    Raises SandboxError on a processor whose system call numbers are not in the table.
    """
    machine = machine or os.uname().machine
    if machine not in AUDIT_ARCH:
        raise SandboxError(f"no system call table for processor {machine!r}; known: {', '.join(AUDIT_ARCH)}")
    column, arch = AUDIT_ARCH[machine]
    code: list[tuple[int, int, int, int]] = []  # operation, jump if true, jump if false, operand

    def unless(operation: int, operand: int, *then: tuple[int, int, int, int]) -> None:
        """Run ``then`` when the comparison holds, else go on behind it."""
        code.extend([(operation, 0, len(then), operand), *then])

    code += [(LOAD, 0, 0, ARCH), (JUMP_EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":  # the x32 calls are a second door to the same rooms
        unless(JUMP_GE, 0x40000000, (RETURN, 0, 0, _fail(errno.ENOSYS)))
    for numbers in DENIED.values():
        unless(JUMP_EQUAL, numbers[column], (RETURN, 0, 0, _fail(errno.EPERM)))
    # clone3 hides its flags behind a pointer; told that it is missing, the C library takes clone
    unless(JUMP_EQUAL, CLONE3[column], (RETURN, 0, 0, _fail(errno.ENOSYS)))
    unless(
        JUMP_EQUAL, CLONE[column],
        (LOAD, 0, 0, ARGUMENT[0]), (JUMP_SET, 0, 1, CLONE_NEW_ANYTHING), (RETURN, 0, 0, _fail(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )  # fmt: skip
    # AF_VSOCK and others ignore network namespaces; libzmq asks netlink for interfaces
    for call in (SOCKET, SOCKETPAIR):
        unless(
            JUMP_EQUAL, call[column],
            (LOAD, 0, 0, ARGUMENT[0]),
            (JUMP_EQUAL, 3, 0, AF_UNIX),
            (JUMP_EQUAL, 0, 3, AF_NETLINK),
            (LOAD, 0, 0, ARGUMENT[2]),
            (JUMP_EQUAL, 0, 1, NETLINK_ROUTE),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, _fail(errno.EAFNOSUPPORT)),
        )  # fmt: skip
    # the channels' sockets were made outside, and through them these calls would tell of the host's interfaces
    unless(
        JUMP_EQUAL, IOCTL[column],
        (LOAD, 0, 0, ARGUMENT[1]),
        (JUMP_GE, 0, 2, SOCKET_IOCTLS[0]),
        (JUMP_GE, 1, 0, SOCKET_IOCTLS[1]),
        (RETURN, 0, 0, _fail(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )  # fmt: skip
    # what sockets hold for nobody is counted by their number, so no one may hold more
    unless(
        JUMP_EQUAL, SETSOCKOPT[column],
        (LOAD, 0, 0, ARGUMENT[1]),
        (JUMP_EQUAL, 0, 3, SOL_SOCKET),
        (LOAD, 0, 0, ARGUMENT[2]),
        (JUMP_EQUAL, 2, 0, SO_SNDBUF),
        (JUMP_EQUAL, 1, 0, SO_SNDBUFFORCE),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, _fail(errno.EPERM)),
    )  # fmt: skip
    # locks on what all sandboxes see would carry messages between them: said to be held, and not set
    unless(JUMP_EQUAL, FLOCK[column], (RETURN, 0, 0, _fail(0)))
    unless(
        JUMP_EQUAL, FCNTL[column],
        (LOAD, 0, 0, ARGUMENT[1]),
        *((JUMP_EQUAL, len(LOCKS) - at, 0, command) for at, command in enumerate(LOCKS)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, _fail(0)),
    )  # fmt: skip
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
