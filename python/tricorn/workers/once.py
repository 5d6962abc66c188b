"""Deduplicates boot errors: of workers that fail alike, the first one logs.

They share a file in memory: for each text a digest, and when it was last said. A record lock (fcntl(2)) is released
when its process ends, however that happens.
"""

from __future__ import annotations

import struct

from tricorn.unpatched import os, time

PAUSE = 10.0
"""Seconds, after which a text may be said again: a worker that never boots is tried for hours."""
ENTRY = struct.Struct("16sd")
MOST = 1 << 16
"""Bytes that are read: more texts than workers have in `PAUSE` seconds."""


class Once:
    def __init__(self) -> None:
        """Made in the arbiter; forks have it as well."""
        self.file: int | None = os.memfd_create("tricorn-once") if self.is_shared() else None

    @staticmethod
    def is_shared() -> bool:
        """Whether the system has what it takes."""
        return hasattr(os, "memfd_create")

    def claim(self, text: str) -> bool:
        """Whether this process is to say it."""
        if self.file is None:
            return True
        import fcntl  # for failures only, as is the other one
        from hashlib import blake2b

        digest, now = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest(), time.monotonic()
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        try:
            said = dict(ENTRY.iter_unpack(os.pread(self.file, MOST // ENTRY.size * ENTRY.size, 0)))
            recent = {other: at for other, at in said.items() if now - at < PAUSE}
            if digest in recent:
                return False
            entries = b"".join(ENTRY.pack(*entry) for entry in {**recent, digest: now}.items())
            os.ftruncate(self.file, os.pwrite(self.file, entries, 0))
            return True
        finally:
            fcntl.lockf(self.file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None
