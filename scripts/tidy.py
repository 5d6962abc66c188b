"""House rules that no linter knows.

* Control flow fits in a head: files up to 500 lines, functions up to 70 (Rust and Python), Rust types up to 15 fields.
  Tests do not count; tables are listed with their reason in scripts/tidy-exempt.txt.
* The subject of a sentence is a thing that has a name. Pronouns for persons that are none have a budget; it only falls.
* Docstrings begin with a verb (functions) or a noun (classes, fields).
* No leftover markers, no machine's paths.
* `tricorn._core` is imported in workers/native.py, workers/core_options.py, gateway/, doctor/engine.py,
  load/engine.py, log/atoms.py, log/outlet.py, metrics/scoreboard.py, self_signed.py only.
* The server imports none of the other distributions, not even for type checkers: entry points name them.
* The arbiter, with stalls and tls, takes modules that greenlet libraries patch from `tricorn.unpatched`.
* Bytes of clients move in stream.rs of tricorn-io, and secured.rs beside it, only.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE = 500
MAX_FUNCTION = 70
MAX_FIELDS = 15
TITLES = {"What", "Of", "Those", "In", "As", "Where", "By", "For"}
SOURCES = ("crates/", "python/", "packages/", "scripts/", "benches/", "fuzz/", "examples/")
CORE = (
    "workers/native.py",
    "workers/core_options.py",
    "workers/contract.py",
    "gateway/",
    "log/atoms.py",
    "log/outlet.py",
    "metrics/scoreboard.py",
    "self_signed.py",
)
CORE_USERS = (
    *(f"python/tricorn/{path}" for path in CORE),
    "packages/tricorn-bench/tricorn_bench/load/engine.py",
    "packages/tricorn-tools/tricorn_tools/doctor/engine.py",
)
SERVER = "python/tricorn/"
OTHERS = ("tricorn_bench", "tricorn_green", "tricorn_tools")
ARBITER = tuple(SERVER + each for each in ("arbiter/", "stalls/", "tls/", "shared_memory.py"))
PATCHED = {"os", "select", "signal", "socket", "time"}

IO = "crates/tricorn-io/src/"
DOORS = (f"{IO}stream.rs", f"{IO}secured.rs", f"{IO}sys/", f"{IO}access_log/sink.rs", f"{IO}collectors/socket.rs")
"""The last ones write to logs and collectors."""
MOVES = re.compile(r"\b(?:sendfile|writev|readv|splice|sendmsg|recvmsg|SendFlags|RecvFlags|Shutdown)\b")
"""System calls that move bytes of sockets, or what they need."""

# Letters in brackets, so that this file does not report itself.
MARKERS = re.compile(r"\bTO[D]O\b|\bFIX[M]E\b|\bX[X]X\b|^<{7} |^>{7} |\bdbg[!]\(|\btodo[!]\(", re.MULTILINE)
MACHINE_PATHS = re.compile(r"/hom[e]/\w|(?<![\w.])/roo[t]/\w|/User[s]/\w")


PRONOUNS = re.compile(r"\b(?:nobod[y]|somebod[y]|whoeve[r]|those wh[o])\b", re.IGNORECASE)
SHOWN_PRONOUNS = re.compile(
    PRONOUNS.pattern + r"|\b(?:(?:any|every)bod[y]|(?:some|any|every)on[e]|no on[e])\b", re.IGNORECASE
)
"""What users read has none of these either."""
BUDGET: dict[str, int] = {}
"""How often a folder may have them; the others have none."""
SHOWN_PAGES = ("docs/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "distributions/", "packages/")
SHOWN_CODE = ("python/", "packages/", "crates/")
"""What users read: pages, and texts of the code that are no comments. There is no budget for pronouns there."""


class Function(NamedTuple):
    name: str
    line: int
    length: int


def main() -> int:
    exempt = read_exemptions()
    gone = (path for path in exempt if not (ROOT / path.split("#")[0]).exists())
    found = [f"scripts/tidy-exempt.txt names {path}, which is gone" for path in gone]
    used: Counter[str] = Counter()
    for path in tracked_files():
        found += check(path, exempt)
        used[path.split("/")[0] if "/" in path else ""] += count_pronouns(path)
    found += over_budget(used)
    print("\n".join(found) or "tidy")
    return 1 if found else 0


def read_exemptions() -> dict[str, str]:
    lines = (ROOT / "scripts/tidy-exempt.txt").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {path.strip(): reason.strip() for path, reason in pairs}


def tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return sorted(path for path in listing.stdout.splitlines() if (ROOT / path).is_file())


def check(path: str, exempt: dict[str, str]) -> Iterator[str]:
    if path.startswith("benches/runs/") or path == "Cargo.lock":
        return
    try:
        text = (ROOT / path).read_text()
    except UnicodeDecodeError:
        return
    for pattern, what in ((MARKERS, "leftover marker"), (MACHINE_PATHS, "path of one machine")):
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {what} {match.group().strip()!r}"
    yield from shown_pronouns(path, text)
    if not path.endswith((".py", ".rs")) or not path.startswith(SOURCES) or "/tests" in path:
        return
    if path.endswith(".rs"):
        text = without_tests(blank_rust(text))
        functions = list(rust_functions(text))
        yield from wide_types(path, text, exempt)
        yield from moved_bytes(path, text)
    else:
        tree = ast.parse(text)
        functions = list(python_functions(tree))
        yield from forbidden_imports(path, tree)
        if path.startswith(("python/", "packages/")):
            yield from translated_titles(path, tree)
    if path in exempt:
        return
    length = text.count("\n")
    if length > MAX_FILE:
        yield f"{path}: {length} lines; control flow fits in {MAX_FILE}"
    for name, line, lines in functions:
        if lines > MAX_FUNCTION:
            yield f"{path}:{line}: {name} has {lines} lines; a function fits in {MAX_FUNCTION}"


# ---- Words


def count_pronouns(path: str) -> int:
    if not path.endswith((".py", ".rs", ".md", ".toml", "Makefile")) or path.startswith("benches/runs/"):
        return 0
    return len(PRONOUNS.findall((ROOT / path).read_text()))


def shown_pronouns(path: str, text: str) -> Iterator[str]:
    """Those that users see: in pages, help, log lines and errors."""
    if path.endswith(".md") and path.startswith(SHOWN_PAGES):
        found = [(number, line) for number, line in enumerate(text.splitlines(), 1)]
    elif path.endswith(".py") and path.startswith(SHOWN_CODE):
        found = list(python_texts(text))
    elif path.endswith(".rs") and path.startswith(SHOWN_CODE) and "/tests/" not in path:
        found = list(rust_texts(text))
    else:
        return
    for line, shown in found:
        for match in SHOWN_PRONOUNS.finditer(shown):
            yield f"{path}:{line}: {match.group()}, in a text that users see. Name what acts"


def translated_titles(path: str, tree: ast.Module) -> Iterator[str]:
    """Yields docstrings, of attributes too, that begin with a question or a genitive."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first = node.value.value.split(maxsplit=1)[:1]
            if TITLES.intersection(first):
                yield f"{path}:{node.lineno}: a docstring begins with {first[0]!r}; begin with a verb or a noun"


def python_texts(text: str) -> Iterator[tuple[int, str]]:
    """Constant texts, without docstrings and those below an attribute."""
    tree = ast.parse(text)
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
            yield node.lineno, node.value


def rust_texts(text: str) -> Iterator[tuple[int, str]]:
    """Literals, up to the tests at the end of a file."""
    end = text.find("#[cfg(test)]\nmod ")
    for match in RUST_TOKENS.finditer(text, 0, len(text) if end < 0 else end):
        if not match.group().startswith(("//", "/*")):
            yield text.count("\n", 0, match.start()) + 1, match.group()


def over_budget(used: Counter[str]) -> Iterator[str]:
    for folder in sorted(used | Counter(BUDGET)):
        count, budget = used[folder], BUDGET.get(folder, 0)
        where = folder or "the top folder"
        if count > budget:
            yield f"{where}: {count} pronouns such as {'who' + 'ever'}; {budget} were there. Name what acts"
        elif count < budget:
            yield f"{where}: {count} pronouns, fewer than the budget in scripts/tidy.py: write {count} there"


# ---- Python


def python_functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)


def forbidden_imports(path: str, tree: ast.AST) -> Iterator[str]:
    if path.startswith(("python/", "packages/")) and not path.startswith(CORE_USERS) and imports_core(tree):
        yield f"{path}: imports tricorn._core; only {', '.join(CORE_USERS)} may"
    if path.startswith(SERVER):
        for name in sorted(each for each in packages(tree) if each in OTHERS):
            yield f"{path}: imports {name}, which the server finds by entry points (tricorn.extensions)"
    if path.startswith(ARBITER):
        for name in sorted(PATCHED & imported(tree)):
            yield f"{path}: imports {name}, which may be patched; take it from tricorn.unpatched"


def imports_core(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name == "tricorn._core" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module == "_core" or module.endswith("._core") or any(alias.name == "_core" for alias in node.names):
                return True
    return False


def packages(tree: ast.AST) -> set[str]:
    """The packages that something is imported from, wherever in the file."""
    nodes = list(ast.walk(tree))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def imported(tree: ast.AST) -> set[str]:
    """The modules that are imported whole."""
    return {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


# ---- Rust: enough of a lexer to count braces. Comments and literals become blanks, lines stay where they are.

RUST_TOKENS = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)
    | b?c?"(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'
    """,
    re.VERBOSE | re.DOTALL,
)


def blank_rust(text: str) -> str:
    return RUST_TOKENS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def without_tests(text: str) -> str:
    while match := re.search(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*\{", text):
        text = text[: match.start()] + text[closing_brace(text, match.end()) :]
    return text


def rust_functions(text: str) -> Iterator[Function]:
    for match in re.finditer(r"\bfn\s+(\w+)", text):
        brace = re.compile(r"[{;]").search(text, match.end())
        if brace and brace.group() == "{":
            end = closing_brace(text, brace.end())
            line = text.count("\n", 0, match.start()) + 1
            yield Function(match.group(1), line, text.count("\n", match.start(), end) + 1)


def wide_types(path: str, text: str, exempt: dict[str, str]) -> Iterator[str]:
    for match in re.finditer(r"\bstruct\s+(\w+)[^;({]*\{", text):
        body = text[match.end() : closing_brace(text, match.end()) - 1]
        fields = len(re.findall(r"^    (?:pub(?:\([^)]*\))?\s+)?\w+\s*:", body, re.MULTILINE))
        if fields > MAX_FIELDS and f"{path}#{match.group(1)}" not in exempt:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group(1)} has {fields} fields; a type has up to {MAX_FIELDS}"


def moved_bytes(path: str, text: str) -> Iterator[str]:
    if path.startswith(IO) and not path.startswith(DOORS):
        for match in MOVES.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group()}; bytes of clients move in stream.rs only"


def closing_brace(text: str, position: int) -> int:
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


if __name__ == "__main__":
    sys.exit(main())
