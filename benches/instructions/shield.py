"""Runs a program for which prctl(PR_GET_AUXV) is refused, as kernels before 6.4 refuse it.

valgrind 3.19 lets the call through. What the kernel answers tells of valgrind's own memory, and the core, which looks
for the vDSO there, crashes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

PR_GET_AUXV = 0x41555856
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
NUMBER_OF_PRCTL = {"x86_64": 157, "aarch64": 167}
EINVAL = 22
# linux/filter.h: load a word of struct seccomp_data, go on or skip so many, end with a verdict.
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def refuse_auxv() -> None:
    """For this process and all it becomes (seccomp(2))."""
    rules = [
        (LOAD, 0, 0, NUMBER),
        (EQUALS, 0, 3, NUMBER_OF_PRCTL[platform.machine()]),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (EQUALS, 0, 1, PR_GET_AUXV),
        (RETURN, 0, 0, ERRNO | EINVAL),
        (RETURN, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = struct.pack("@HP", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)):
        if libc.prctl(*words):
            sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    refuse_auxv()
    os.execvp(sys.argv[1], sys.argv[1:])
