"""A file of 100 MiB, for servers that send files."""

from __future__ import annotations

from pathlib import Path

LENGTH = 100 * 2**20
PIECE = 64 * 1024
PATH = Path(__file__).resolve().parents[2] / "target" / "benches" / "files" / "long.bin"


def make() -> None:
    if not PATH.exists() or PATH.stat().st_size != LENGTH:
        PATH.parent.mkdir(parents=True, exist_ok=True)
        PATH.write_bytes(b"z" * LENGTH)
