"""Another revision of tricorn, built beside this one: `target/versions/<commit>/python` holds a package that runs."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benches.harness.process import ROOT

VERSIONS = ROOT / "target" / "versions"


def packages(revision: str) -> Path:
    """The directory to put on PYTHONPATH for a revision; builds it once per commit.

    Ends the program with a sentence when there is no such revision or it does not build.
    """
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    commit = found.stdout.strip()
    if not commit:
        sys.exit(f"{revision!r} names no commit of this repository")
    folder = VERSIONS / commit
    library = folder / "python" / "tricorn" / "_core.so"
    if not library.exists():
        print(f"  building {revision} ({commit[:12]}) into {folder.relative_to(ROOT)}", flush=True)
        unpack(commit, folder)
        shutil.copyfile(built(folder), library)
    return folder / "python"


def unpack(commit: str, folder: Path) -> None:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder)


def built(folder: Path) -> Path:
    """The extension module of a checkout, in release mode; all revisions share one directory of dependencies."""
    target = VERSIONS / "build"
    done = subprocess.run(
        ["cargo", "build", "--release", "--quiet", "-p", "tricorn-py", "--target-dir", str(target)],
        cwd=folder,
        env={**os.environ, "PYO3_PYTHON": sys.executable},
    )
    if done.returncode:
        sys.exit(f"{folder.relative_to(ROOT)} does not build")
    return target / "release" / "libtricorn_py.so"
