"""Memory that forks share, and that others may be given to read.

It is a memfd, which is sealed once the arbiter has mapped it: its size stays as it is, and no other mapping can write
(memfd_create(2), F_SEAL_FUTURE_WRITE of Linux 5.1). The mapping that forks inherit stays writable.
"""

from __future__ import annotations

import mmap

from tricorn.unpatched import os

F_ADD_SEALS = 1033
SEALS = 0x0001 | 0x0002 | 0x0004 | 0x0010
"""F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE (linux/fcntl.h)."""


class Memory:
    def __init__(self, name: str, size: int) -> None:
        descriptor = _memfd(name, size)
        try:
            mapping = mmap.mmap(descriptor, size)
            # In no core dump, which would fill it: a memfd is sparse.
            if hasattr(mmap, "MADV_DONTDUMP"):
                mapping.madvise(mmap.MADV_DONTDUMP)
        except BaseException:
            _close(descriptor)
            raise
        self.view = memoryview(mapping)
        self.descriptor = -1
        """To be given to readers; -1 if they could write, or if there is none."""
        if _sealed(descriptor):
            self.descriptor = descriptor
        else:
            _close(descriptor)  # the mapping has one of its own

    def release(self) -> None:
        """Closes the descriptor in a worker, which does not hand it out. The memory stays."""
        descriptor, self.descriptor = self.descriptor, -1
        _close(descriptor)

    def __del__(self) -> None:
        _close(getattr(self, "descriptor", -1))


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _sealed(descriptor: int) -> bool:
    if descriptor < 0:
        return False
    import fcntl

    try:
        fcntl.fcntl(descriptor, F_ADD_SEALS, SEALS)
    except OSError:  # Linux before 5.1
        return False
    return True


def _memfd(name: str, size: int) -> int:
    """-1 where there is none: then the memory is anonymous.

    Sparse: it reserves no memory, whatever vm.overcommit_memory is.
    """
    if not hasattr(os, "memfd_create"):
        return -1
    try:
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:
        return -1
    try:
        os.truncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
