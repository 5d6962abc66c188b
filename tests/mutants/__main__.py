"""Does the suite notice faults? Each row of tests/mutants is put into a copy of the tree, and its tests must fail.

    python -m tests.mutants [--check | --list] [--only TEXT,…] [--portion N/M] [--jobs N]

All faults of the Rust code are compiled at once, each behind a switch that a variable of the environment turns on, so
that the copy is built once (mutant schemata), and not at all if `--only` chooses faults of Python. Such a fault has a
copy of the package to itself, or of the scripts and tests. First all tests have to pass without any fault. A table says
which test noticed each; the status is 1 if fewer than 95 % were noticed, or if a row no longer fits its file. `--check`
only looks at the latter.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants import FAULTS
from tests.mutants.fault import Fault

ROOT = Path(__file__).resolve().parent.parent.parent
SCRATCH = ROOT / "target/mutants"
TREE = SCRATCH / "tree"
VARIABLE = "TRICORN_FAULT"
WANTED = 0.95
PATIENCE = 420
"""Seconds for the tests of one fault. Tests that hang have noticed it."""

SWITCH = f"""
/// Whether the fault of this name is switched on.
pub fn fault(name: &str) -> bool {{
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("{VARIABLE}").unwrap_or_default()) == name
}}
"""


PROTO = "tricorn-proto"
IMPORT = "\n#[allow(unused_imports)]\nuse tricorn_proto::fault;\n"
"""Crates above it share its switch; one that does not stand on it has its own."""


CONDITION = re.compile(r"if ([^{}]+?)( \{)?")


class Misfit(Exception):
    """A row and its file do not go together."""


class Outcome(NamedTuple):
    fault: Fault
    noticed: str | None
    """Which test failed, as the runner calls it."""
    seconds: float


def place(fault: Fault, text: str) -> int:
    """Where `before` begins in the text of the file."""
    start = 0
    if fault.at:
        if text.count(fault.at) != 1:
            raise Misfit(f"{fault.name}: {fault.path} has {text.count(fault.at)} times {fault.at!r}, not once")
        start = text.index(fault.at) + len(fault.at)
    elif text.count(fault.before) != 1:
        raise Misfit(f"{fault.name}: {fault.path} has {text.count(fault.before)} times {fault.before!r}, not once")
    found = text.find(fault.before, start)
    if found < 0:
        raise Misfit(f"{fault.name}: {fault.path} has no {fault.before!r} after {fault.at!r}")
    return found


def misfits() -> list[str]:
    """What is wrong with the table, before anything runs."""
    found = []
    names = [fault.name for fault in FAULTS]
    found += [f"{name}: a name has one row" for name in sorted(set(names)) if names.count(name) > 1]
    for fault in FAULTS:
        if not (ROOT / fault.path).is_file():
            found.append(f"{fault.name}: {fault.path} is gone")
            continue
        try:
            place(fault, (ROOT / fault.path).read_text())
        except Misfit as error:
            found.append(str(error))
        for test in fault.tests:
            path = test.split(" ")[0].split("::")[0]
            if not (ROOT / path).exists():
                found.append(f"{fault.name}: its test {path} is gone")
    return found


def is_rust(fault: Fault) -> bool:
    return fault.path.endswith(".rs")


def faulty_crates() -> list[str]:
    """Crates that have a fault, and the one that has the switch of the others."""
    return sorted({Path(fault.path).parts[1] for fault in FAULTS if is_rust(fault)} | {PROTO})


def switched(fault: Fault) -> str:
    """Rust that is either: an expression in parentheses, a condition with its `if`, or a statement."""
    conditions = [CONDITION.fullmatch(half) for half in (fault.before, fault.after)]
    if all(conditions):
        before, after = (found for found in conditions if found)
        return f'if (if crate::fault("{fault.name}") {{ {after[1]} }} else {{ {before[1]} }}){before[2] or ""}'
    choice = f'if crate::fault("{fault.name}") {{ {fault.after} }} else {{ {fault.before} }}'
    return choice if fault.before.rstrip().endswith((";", "}")) else f"({choice})"


def copy_tree() -> None:
    """The files of the repository, at times that let cargo see what changed."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {name for name in listing.stdout.splitlines() if (ROOT / name).is_file()}
    for name in names:
        write(TREE / name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode)
    for path in [path for path in TREE.rglob("*") if path.is_file() and path.suffix in {".py", ".rs"}]:
        if str(path.relative_to(TREE)) not in names:
            path.unlink()


def write(path: Path, content: bytes, mode: int) -> None:
    """Only if it differs: an older time is a compilation saved."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def put_switches() -> None:
    """All faults of Rust into the copy. Each file is written once, with everything that belongs into it."""
    texts = {path: (ROOT / path).read_text() for path in {fault.path for fault in FAULTS if is_rust(fault)}}
    for fault in filter(is_rust, FAULTS):
        text = texts[fault.path]
        start = place(fault, text)
        texts[fault.path] = text[:start] + switched(fault) + text[start + len(fault.before) :]
    for crate in faulty_crates():
        path = f"crates/{crate}/src/lib.rs"
        needs_proto = PROTO in (ROOT / f"crates/{crate}/Cargo.toml").read_text()
        switch = IMPORT if needs_proto and crate != PROTO else SWITCH
        texts[path] = texts.get(path, (ROOT / path).read_text()) + switch
        for test in Path(ROOT, "crates", crate, "tests").glob("*.rs"):
            text = test.read_text()
            if '#[path = "../src/' in text:  # it compiles files of the crate for itself
                texts[str(test.relative_to(ROOT))] = text + switch
    for path, text in texts.items():
        write(TREE / path, text.encode(), 0o644)


def environ(**more: str) -> dict[str, str]:
    variables = {
        "CARGO_TARGET_DIR": str(SCRATCH / "target"),
        "PYO3_PYTHON": sys.executable,
        "PYTHONPATH": python_path(TREE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TEST_PATIENCE": "10",  # much that tests wait for never comes here
    }
    return {**os.environ, **variables, **more}


def build() -> None:
    """The core with its switches, and the Rust tests."""
    say("Building the core with its faults, and the Rust tests")
    cargo("build", "--release", "-p", "tricorn-py")
    core = TREE / f"python/tricorn/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    write(core, (SCRATCH / "target/release/libtricorn_py.so").read_bytes(), 0o755)
    tested = {Path(test.split(" ")[0]).name for fault in FAULTS for test in fault.tests if test.startswith("crates/")}
    cargo("test", "--profile", "testing", "--no-run", *(word for crate in sorted(tested) for word in ("-p", crate)))


def take_core() -> None:
    """The core that `make build` has compiled, for faults of Python."""
    for core in (ROOT / "python/tricorn").glob("_core*.so"):
        write(TREE / "python/tricorn" / core.name, core.read_bytes(), 0o755)


def cargo(*arguments: str) -> None:
    done = subprocess.run(["cargo", *arguments, "--quiet"], cwd=TREE, env=environ(RUSTFLAGS="-A warnings"))
    if done.returncode:
        sys.exit("The copy with the faults does not compile: both halves of a row must have one type.")


def command(test: str) -> list[str]:
    if not test.startswith("crates/"):
        # A file that a fault of Python has changed is another one's copy: no cache is shared.
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
        return [*pytest, *test.split(" ")]
    crate, target, *names = test.split(" ")
    chosen = ["--lib"] if target == "lib" else ["--test", target]
    return ["cargo", "test", "--profile", "testing", "--quiet", "-p", Path(crate).name, *chosen, "--", *names]


def fails(test: str, variables: dict[str, str], where: Path = TREE) -> str | None:
    """The name of the first test that fails. Exits when the test cannot be run at all."""
    variables = {**variables, "RUSTFLAGS": "-A warnings"}
    process = subprocess.Popen(
        command(test),
        cwd=where,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=PATIENCE)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"{test} (hangs)"
    if process.returncode == 0:
        ran = re.search(r"[1-9]\d* passed", output)
        if ran is None:
            sys.exit(f"No test ran: {' '.join(command(test))}\n{output}")
        return None
    if not test.startswith("crates/") and process.returncode not in (1, 2):
        sys.exit(f"The tests cannot be run: {' '.join(command(test))}\n{output}")
    found = re.search(
        r"^(?:FAILED|ERROR) (\S+)|^    ([a-z]\w*(?:::\w+)*)$|^test (\S+) \.\.\. FAILED", output, re.MULTILINE
    )
    return next(filter(None, found.groups())) if found else f"{test}: status {process.returncode}"


def python_path(tree: Path) -> str:
    return os.pathsep.join(map(str, (tree / "python", *sorted((tree / "packages").glob("tricorn-*")))))


def overlay(fault: Fault) -> Path:
    """A copy of the packages with one fault."""
    path = SCRATCH / "overlays" / fault.name
    shutil.rmtree(path, ignore_errors=True)
    for folder in ("python", "packages"):
        shutil.copytree(TREE / folder, path / folder, ignore=shutil.ignore_patterns("_core*.so", "__pycache__"))
    for core in (TREE / "python/tricorn").glob("_core*.so"):
        (path / "python/tricorn" / core.name).symlink_to(core)
    put(fault, path / fault.path)
    return path


def put(fault: Fault, file: Path) -> None:
    text = file.read_text()
    start = place(fault, text)
    file.write_text(text[:start] + fault.after + text[start + len(fault.before) :])


def is_of_the_checks(fault: Fault) -> bool:
    """Of scripts/, tests/ and files beside them, which tests find from the directory that they run in."""
    return not fault.path.startswith(("python/", "packages/", "crates/"))


def checkout(fault: Fault) -> Path:
    """The tree with one fault outside of the package; what cannot have one is a link."""
    path = SCRATCH / "overlays" / fault.name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    for entry in TREE.iterdir():
        if entry.name in ("scripts", "tests", Path(fault.path).parts[0]):
            shutil.copytree(entry, path / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (path / entry.name).symlink_to(entry)
    put(fault, path / fault.path)
    return path


def try_fault(fault: Fault) -> Outcome:
    began = time.monotonic()
    where, variables = TREE, environ()
    if is_rust(fault):
        variables = environ(**{VARIABLE: fault.name})
    elif is_of_the_checks(fault):
        where = checkout(fault)
    else:
        variables = environ(PYTHONPATH=python_path(overlay(fault)))
    noticed = None
    for test in fault.tests:
        noticed = fails(test, variables, where)
        if noticed is not None:
            break
    if not is_rust(fault):
        shutil.rmtree(SCRATCH / "overlays" / fault.name, ignore_errors=True)
    return Outcome(fault, noticed, time.monotonic() - began)


def without_faults(faults: list[Fault], pool: ThreadPoolExecutor) -> list[str]:
    """The tests that fail without one; a busy machine gets a second chance."""
    tests = sorted({test for fault in faults for test in fault.tests})
    say(f"{len(tests)} sets of tests, without a fault")

    def broken(test: str) -> str | None:
        return fails(test, environ()) and fails(test, environ())

    return [f"{test}: {found}" for test, found in zip(tests, pool.map(broken, tests), strict=True) if found]


def say(text: str) -> None:
    print(f"\033[1m== {text}\033[0m", flush=True)


def choose(arguments: argparse.Namespace) -> list[Fault]:
    wanted = arguments.only.split(",")
    chosen = [fault for fault in FAULTS if any(text in f"{fault.name} {fault.path}" for text in wanted)]
    number, _, count = arguments.portion.partition("/")
    return chosen[int(number) - 1 :: int(count)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Does the suite notice faults?")
    parser.add_argument("--check", action="store_true", help="only see that every row fits its file")
    parser.add_argument("--list", action="store_true", help="print the table")
    parser.add_argument("--only", default="", metavar="TEXT,…", help="rows with one of these in their name or path")
    parser.add_argument("--portion", default="1/1", metavar="N/M", help="every M-th row, beginning with the N-th")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    wrong = misfits()
    if wrong:
        print("\n".join(wrong))
        return 1
    faults = choose(arguments)
    if arguments.check or arguments.list:
        for fault in faults if arguments.list else ():
            print(f"{fault.name:<32} {fault.breaks}")
        print(f"{len(FAULTS)} faults, and each fits its file")
        return 0
    copy_tree()
    if any(map(is_rust, faults)):
        put_switches()
        build()
    else:
        take_core()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        if broken := without_faults(faults, pool):
            print("These fail without a fault, so they prove nothing:\n" + "\n".join(broken))
            return 1
        say(f"{len(faults)} faults")
        outcomes = []
        for outcome in pool.map(try_fault, faults):
            outcomes.append(outcome)
            word = "noticed " if outcome.noticed else "SURVIVES"
            who = outcome.noticed or outcome.fault.breaks
            print(f"  {outcome.fault.name:<32} {word} {outcome.seconds:5.0f} s  {who}", flush=True)
    noticed = sum(outcome.noticed is not None for outcome in outcomes)
    print(f"\n{noticed} of {len(outcomes)} faults were noticed ({noticed / max(len(outcomes), 1):.0%})")
    return 0 if noticed >= WANTED * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
