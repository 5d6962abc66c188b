"""Forbids system calls as a container's profile does (seccomp(2)): to this process and its children, for good.

Docker's default profile, and those made after it, refuse what is not on their list with EPERM. `CONTAINER` is what the
doctor would use of that: it needs CAP_SYS_PTRACE there (process_vm_readv and ptrace before Linux 4.8 only), and
perf_event_open CAP_PERFMON.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence

NUMBERS = {
    "x86_64": {
        "ptrace": 101,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "pidfd_getfd": 438,
        "process_madvise": 440,
    },
    "aarch64": {
        "ptrace": 117,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "pidfd_getfd": 438,
        "process_madvise": 440,
    },
}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CONTAINER = tuple(NUMBERS["x86_64"])

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
"""BPF: a word of the call's data, a comparison with jumps, an answer."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def is_known() -> bool:
    return platform.machine() in NUMBERS


def forbid(names: Sequence[str] = CONTAINER) -> None:
    """For the calling thread, the threads it makes from now on, and all children. Raises OSError."""
    machine = platform.machine()
    numbers = [NUMBERS[machine][name] for name in names]
    code = _step(LOAD, value=4) + _step(EQUAL, yes=1, value=ARCHITECTURES[machine]) + _step(RETURN, value=ALLOW)
    code += _step(LOAD, value=0)
    for left, number in zip(range(len(numbers) - 1, -1, -1), numbers, strict=True):
        code += _step(EQUAL, yes=left + 1, value=number)
    code += _step(RETURN, value=ALLOW) + _step(RETURN, value=REFUSE)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // 8, code)
    # Without privileges no program may gain any from here on.
    if os.geteuid() != 0 and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


def _step(code: int, *, yes: int = 0, no: int = 0, value: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
