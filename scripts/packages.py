"""The Python packages of this repository: one for each distribution, the server first."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "python/tricorn"
PACKAGES = (SERVER, *sorted(path for path in (ROOT / "packages").glob("tricorn-*/tricorn_*") if path.is_dir()))
