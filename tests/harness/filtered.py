"""Runs a command under the system call filter of a unit: `python -m tests.harness.filtered FILTER… -- COMMAND…`.

FILTER is what stands behind `SystemCallFilter=`: names of calls, and of systemd's groups of them. Other calls end with
EPERM. The process becomes the command.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterable

LIBRARY = "libseccomp.so.2"
PR_SET_NO_NEW_PRIVS = 38
ALLOW = 0x7FFF0000
ERRNO = 0x00050000


def calls(names: Iterable[str]) -> set[str]:
    """What the names mean, groups resolved by systemd."""
    found: set[str] = set()
    for name in names:
        if name.startswith("@"):
            listing = subprocess.run(
                ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True, timeout=30
            )
            lines = [line.strip() for line in listing.stdout.splitlines()[1:]]
            found |= calls(line for line in lines if line and not line.startswith("#"))
        else:
            found.add(name)
    return found


def install(allowed: Iterable[str]) -> None:
    """All other calls of this process, and of what it becomes and starts, end with EPERM from now on."""
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    context = library.seccomp_init(ERRNO | errno.EPERM)
    for name in allowed:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # others are calls of other processors
            assert library.seccomp_rule_add(context, ALLOW, number, 0) == 0, name
    assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert library.seccomp_load(context) == 0


if __name__ == "__main__":
    separator = sys.argv.index("--")
    install(calls(sys.argv[1:separator]))
    os.execv(sys.argv[separator + 1], sys.argv[separator + 1 :])
