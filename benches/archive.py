"""Packs the raw data of runs in benches/runs: a run is its page, the charts that docs show, and data.tar.xz.

python -m benches.archive           packs the runs that are not packed yet
python -m benches.archive --check   fails if a run is not packed, or a page shows a chart that is not there
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.harness.process import ROOT

RUNS = ROOT / "benches" / "runs"
DATED = re.compile(r"\d{4}-\d\d-\d\d-.+")
DATA = "data.tar.xz"
PAGE = "README.md"
SHOWN = re.compile(r"benches/runs/([\w./-]+\.svg)")
"""Charts in pages of docs/, by their path below benches/runs."""


def runs() -> list[Path]:
    return sorted(path for path in RUNS.iterdir() if path.is_dir() and DATED.fullmatch(path.name))


@contextmanager
def unpacked(run: Path) -> Iterator[Path]:
    """Yields a folder with the files of a run, packed or not."""
    if not (run / DATA).exists():
        yield run
        return
    with tempfile.TemporaryDirectory(prefix="tricorn-run-") as temporary:
        folder = Path(temporary) / run.name
        folder.mkdir()
        with tarfile.open(run / DATA) as archive:
            # PEP 706, where this Python has it: no entry leaves the folder.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder)
        if (run / PAGE).exists():
            (folder / PAGE).write_text((run / PAGE).read_text())
        yield folder


def pack(run: Path, shown: set[str]) -> None:
    """Moves the files of a run into its archive. A page and charts that docs show stay beside it."""
    data = [path for path in sorted(run.rglob("*")) if path.is_file() and path != run / PAGE]
    with tarfile.open(run / DATA, "w:xz", preset=9) as archive:
        for path in data:
            archive.add(path, path.relative_to(run).as_posix(), filter=_without_owner)
    for path in data:
        if path.relative_to(RUNS).as_posix() not in shown:
            path.unlink()
    for folder in sorted((path for path in run.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Drops what differs between machines: the same files make the same archive."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def charts_in_docs() -> set[str]:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    return {chart for page in pages for chart in SHOWN.findall(page.read_text())}


def main() -> int:
    shown = charts_in_docs()
    loose = [run for run in runs() if not (run / DATA).exists()]
    if sys.argv[1:] != ["--check"]:
        for run in loose:
            pack(run, shown)
        return 0
    gone = sorted(chart for chart in shown if not (RUNS / chart).exists())
    problems = [f"benches/runs/{run.name} is not packed: run python -m benches.archive" for run in loose]
    problems += [f"benches/runs/{chart} is shown in docs, and is not there" for chart in gone]
    print("\n".join(problems) or f"{len(runs())} runs are packed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
