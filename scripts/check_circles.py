"""No Rust file imports itself by way of others: checked in every crate.

    a  ->  b  ->  c         a file without circles can be read, tested and moved with what stands below it
    ^-------------'         the files of a circle only together

No tool does it: cargo-modules compiles rust-analyzer, for minutes. import-linter has the rule for Python.

A path of the code (`use crate::a::B`, `super::a`, `a::b()` where `a` is a module) is an arrow to the file that defines
what it names, also when it is named through a re-export. `pub use` in a lib.rs or mod.rs is no arrow of that file,
unless its own code uses the name too. `self.x()` is an arrow to the file that has the method: a type may have some in
several files, and no import tells which. Modules for tests draw no arrows. Besides, the folders at the top of a crate
form layers: no folder imports itself by way of others either.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATES = (
    "tricorn-proto",
    "tricorn-sys",
    "tricorn-figures",
    "tricorn-diagnosis",
    "tricorn-io",
    "tricorn-py",
    "tricorn-load",
    "tricorn-doctor",
)

Graph = dict[str, set[str]]


# ---- Enough of a lexer to count braces. Comments and literals become blanks, lines stay where they are.

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


def closing_brace(text: str, position: int) -> int:
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


# ---- The tree of modules, what names stand for in each, and which files a path leads to.


@dataclass
class Module:
    file: str
    parent: Module | None
    children: dict[str, Module] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    """What `use` brings in: the name here, and the path it stands for."""
    globs: list[list[str]] = field(default_factory=list)
    imports: list[list[str]] = field(default_factory=list)
    """The paths of `use` that count as arrows, and of the code."""
    code: str = ""

    def is_index(self) -> bool:
        return self.file in {"lib.rs", "main.rs"} or self.file.endswith("/mod.rs") or bool(self.children)


USE = re.compile(r"(?P<public>\bpub\s*(?:\([^)]*\)\s*)?)?\buse\s+(?P<tree>[^;]+);")
FOR_TESTS = re.compile(
    r"#\[cfg\((?:all\(\s*)?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s*(?:\([^)]*\)\s*)?)?(?:use|mod)\b[^;{]*(?P<end>[;{])"
)
CHILD = re.compile(r"\bmod\s+(\w+)\s*;")
IMPL = re.compile(r"^[ \t]*(?:unsafe\s+)?impl\b\s*(?:<(?:[^<>]|<[^<>]*>)*>)?\s*(?P<head>[^{;]+)\{", re.MULTILINE)
TYPE = re.compile(r"[\w:]+")
METHOD = re.compile(r"\bfn\s+(\w+)")
CALL = re.compile(r"\b(?:self\s*\.|Self\s*::)\s*(\w+)\s*(?:::\s*<[^()]*>\s*)?\(")
PATH = re.compile(r"(?<![\w:])\w+(?:\s*::\s*\w+)+")
DEFINITION = r"\b(?:struct|enum|union|trait|type|fn|const|static|mod|macro_rules!)\s+{}\b"


def rust_graph(sources: Path) -> Graph:
    entry = next(name for name in ("lib.rs", "main.rs") if (sources / name).exists())
    root = read_module(sources, entry, None)
    graph: Graph = {}
    for module in modules(root):
        goals = {goal for path in module.imports for goal in files_of(module, path)}
        graph.setdefault(module.file, set()).update(goals - {module.file})
    for file, goals in method_calls(list(modules(root))).items():
        graph[file].update(goals - {file})
    return graph


def method_calls(found: list[Module]) -> Graph:
    """The files that have the methods which a file calls of `self`, where the type has methods in several files."""
    homes: dict[tuple[str, ...], dict[str, set[str]]] = {}
    calls: list[tuple[tuple[str, ...], str, str]] = []
    for module in found:
        for head, body in impls(module.code):
            trait, _, target = head.rpartition(" for ")
            if not (path := TYPE.search(target)):
                continue
            steps = re.split(r"\s*::\s*", path.group())
            type_ = (*sorted(files_of(module, steps) or {module.file}), steps[-1])
            calls += [(type_, module.file, name) for name in CALL.findall(body)]
            if not trait:
                for name in METHOD.findall(body):
                    homes.setdefault(type_, {}).setdefault(name, set()).add(module.file)
    graph: Graph = {}
    for type_, file, name in calls:
        graph.setdefault(file, set()).update(homes.get(type_, {}).get(name, set()))
    return graph


def impls(code: str) -> Iterator[tuple[str, str]]:
    """What stands before and between the braces of each `impl`."""
    for match in IMPL.finditer(code):
        yield match["head"], code[match.end() : closing_brace(code, match.end())]


def modules(module: Module) -> Iterator[Module]:
    yield module
    for child in module.children.values():
        yield from modules(child)


def read_module(sources: Path, file: str, parent: Module | None) -> Module:
    module = Module(file, parent)
    text = without_test_modules(blank_rust((sources / file).read_text()))
    path = Path(file)
    folder = path.parent if path.name in {"lib.rs", "main.rs", "mod.rs"} else path.with_suffix("")
    for name in CHILD.findall(text):
        place = next(place for place in (folder / f"{name}.rs", folder / name / "mod.rs") if (sources / place).exists())
        module.children[name] = read_module(sources, place.as_posix(), module)
    module.code = re.sub(r"\bpub\s*\([^)]*\)", "", USE.sub("", text))
    for use in USE.finditer(text):
        for name, steps in use_tree(use["tree"]):
            if name == "*":
                module.globs.append(steps)
            else:
                module.names[name] = steps
            hands_on = use["public"] and module.is_index()
            if not hands_on or re.search(rf"\b{re.escape(name)}\b", module.code):
                module.imports.append([*steps, "*"] if name == "*" else steps)
    module.imports += [re.split(r"\s*::\s*", path) for path in PATH.findall(module.code)]
    return module


def without_test_modules(text: str) -> str:
    while match := FOR_TESTS.search(text):
        end = match.end() if match["end"] == ";" else closing_brace(text, match.end())
        text = text[: match.start()] + text[end:]
    return text


def use_tree(tree: str) -> Iterator[tuple[str, list[str]]]:
    """Each name that a tree of `use` brings in, with its path: `a::{b, c as d}` is b for a::b and d for a::c."""
    head, brace, rest = tree.strip().partition("{")
    steps = [step.strip() for step in head.split("::") if step.strip()]
    if brace:
        for part in parts_of(rest.rpartition("}")[0]):
            for name, inner in use_tree(part):
                if inner == ["self"]:
                    yield steps[-1] if name == "self" else name, steps
                else:
                    yield name, [*steps, *inner]
        return
    path, *renamed = re.split(r"\s+as\s+", tree.strip())
    steps = [step.strip() for step in path.split("::") if step.strip()]
    if steps[-1] == "*":
        yield "*", steps[:-1]
    else:
        yield renamed[0] if renamed else steps[-1], steps


def parts_of(text: str) -> Iterator[str]:
    """What commas separate that stand in no braces."""
    depth, start = 0, 0
    for position, sign in enumerate(f"{text},"):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            if part := text[start:position].strip():
                yield part
            start = position + 1


def files_of(here: Module, path: list[str], seen: frozenset[tuple[str, str]] = frozenset()) -> set[str]:
    """The files that define what a path names, also through re-exports; none if it leads out of the crate."""
    place, steps = here, path
    while steps and steps[0] in {"crate", "self", "super"}:
        while steps[0] == "crate" and place.parent:
            place = place.parent
        if steps[0] == "super" and place.parent:
            place = place.parent
        steps = steps[1:]
    if steps == path and steps[0] not in here.children and steps[0] not in here.names:
        return set()
    while steps and steps[0] in place.children:
        place, steps = place.children[steps[0]], steps[1:]
    if not steps or (place.file, steps[0]) in seen:
        return {place.file}
    name, seen = steps[0], seen | {(place.file, steps[0])}
    if name in place.names:
        return files_of(place, [*place.names[name], *steps[1:]], seen)
    through = [files_of(place, [*glob, *steps], seen) for glob in place.globs]
    if name == "*":
        return {place.file}.union(*through)
    if re.search(DEFINITION.format(re.escape(name)), place.code):
        return {place.file}
    return next((files for files in through if files), {place.file})


# ---- Circles


def circles(graph: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one file (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for goal in graph.get(node, ()):
            if goal not in index:
                visit(goal)
                low[node] = min(low[node], low[goal])
            elif goal in stack:
                low[node] = min(low[node], index[goal])
        if low[node] == index[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                found.add(frozenset(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def folders(graph: Graph) -> Graph:
    """The arrows between the folders at the top; a file beside them counts as one."""
    found: Graph = {}
    for file, goals in graph.items():
        found.setdefault(top(file), set()).update({top(goal) for goal in goals} - {top(file)})
    return found


def top(file: str) -> str:
    return file.partition("/")[0]


def problems(name: str, graph: Graph) -> Iterator[str]:
    for circle in sorted(circles(graph), key=sorted):
        yield f"{name}: a circle:"
        for file in sorted(circle):
            yield f"    {file} -> {', '.join(sorted(graph[file] & circle))}"


def main() -> int:
    found: list[str] = []
    for crate in CRATES:
        graph = rust_graph(ROOT / "crates" / crate / "src")
        found += [*problems(crate, graph), *problems(f"{crate}, its folders", folders(graph))]
    print("\n".join(found) or "no circles")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
