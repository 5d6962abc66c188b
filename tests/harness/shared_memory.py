"""Shared memory that says how much of it exists."""

from __future__ import annotations

import mmap
import os


class SharedMemory:
    def __init__(self, size: int) -> None:
        descriptor = os.memfd_create("test")
        os.ftruncate(descriptor, size)
        self.map = mmap.mmap(descriptor, size)
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def allocated(self) -> int:
        """Bytes that were ever read or written, in whole pages."""
        return os.fstat(self._descriptor).st_blocks * 512
