"""A file of 100 MiB, for servers that send files."""

from __future__ import annotations

from benches.harness.process import ROOT

LENGTH = 100 * 2**20
PIECE = 64 * 1024
PATH = ROOT / "target" / "benches" / "tls" / "long.bin"


def make() -> None:
    if not PATH.exists() or PATH.stat().st_size != LENGTH:
        PATH.parent.mkdir(parents=True, exist_ok=True)
        PATH.write_bytes(b"z" * LENGTH)
