"""Finds every line that a server can write to its log, or end with, in the sources.

A line is a text with `…` where a value stands. Of Python the calls of a log, the records that the arbiter's policy logs
by and the errors that end a start are read from the syntax tree; of Rust the texts in the files that speak to the log.
A call whose text is made elsewhere is in `CARRIED`, with the functions that make it: one that is not is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/tricorn"
BESIDE = ROOT / "packages/tricorn-green"
GREEN = "tricorn_green/"
"""What names in the other package that servers run begin with; names in the server's begin below it."""

PROGRAMS = ("bench", "cli", "load", "top", "testing", "contrib", "doctor/check", "doctor/slow", "control")
"""Packages and modules of other commands: what these say stands on the terminal of who has called them."""

LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
LOGS = re.compile(r"(^|\.|_)(log|logger|Logger|notices?)$|getLogger\(.*\)$")
ERRORS = ("ConfigError", "BindError", "AppImportError", "BootError", "TricornError")
ANY = "…"

CARRIED: dict[str, tuple[str, ...]] = {
    "tls/certificates.py:Certificates._publish": (),  # the core's, of a file
    "tls/certificates.py:Certificates._take": ("tls/certificates.py:_warnings",),
    "tls/certificates.py:Certificates._warn_of_ends": ("tls/certificates.py:ends",),
    "tls/certificates.py:check": (),
    "tls/certificates.py:make": ("tls/from_settings.py:plan", "tls/ciphers.py:served"),
    "arbiter/effects.py:Effects.perform": ("arbiter/generation.py:describe",),
    "arbiter/loop.py:Loop._note_stall": ("stalls/log_line.py:line", "stalls/log_line.py:_head"),
    "arbiter/effects.py:Effects._reload": (
        "config/sizing.py:sentence",
        "config/config_file.py:find_default",
        "config/config_file.py:read",
        "config/config_file.py:_judge_stranger",
        "config/http2.py:warnings",
        "config/resolve.py:_read_variable",
        "config/resolve.py:_strangers",
        "config/unavailable.py:judge",
        "metrics/application.py:prepare",
        "metrics/application.py:_remove_broken",
    ),
    "arbiter/generation.py:report": ("workers/boot_failure.py:sentence",),
    "arbiter/molds/mold.py:Mold._notice": (),  # core_options.upload_warning
    "workers/fork_audit.py:Audit.check": (),  # the findings, which are in the entry of the cure
    "arbiter/periodic/statsd_gauges.py:StatsdGauges._send": (
        "arbiter/periodic/statsd_gauges.py:run",
        "arbiter/periodic/statsd_gauges.py:_send_load",
    ),
    "arbiter/generation.py:_import_class": ("workers/foreign.py:notes",),
    "arbiter/policy/log_once.py:log_once": (),  # what a worker has said
    "arbiter/policy/booting.py:_size": ("config/sizing.py:sentence",),
    "arbiter/start.py:run": ("config/sizing.py:sentence",),
    "arbiter/start.py:_warn": ("workers/native.py:unknown_atoms", "workers/core_options.py:upload_warning"),
    "tls/files.py:read": ("tls/plan.py:encrypted",),
    "arbiter/upgrade.py:Upgrade.watch_parent": (),  # an error of pidfile.py
    "compat/uvicorn/config.py:Config.bind_socket": (),  # what the system says
    "config/settings/hooks.py:_log_request": (),  # a method and a path
    "tls/from_context.py:_note_chain": ("tls/plan.py:encrypted",),
    "config/unavailable.py:refuse": (),  # the sentences of config/unavailable.py, which the settings have
    "embedded.py:EmbeddedServer.__init__": (),  # those of `arbiter/start.py:_warn`
    "embedded.py:EmbeddedServer._end": (),  # the core's, below
    "gateway/app_loader.py:load": ("gateway/app_loader.py:_not_found",),
    "gateway/reports.py:to_log.on_error": (),  # the core's, below
    "log/logger.py:Logger.setup": ("log/outlet.py:complaint", "log/configured.py:_complaint"),
    "log/logger.py:Logger.critical": (),  # the methods of the log itself
    "log/logger.py:Logger.error": (),
    "log/logger.py:Logger.warning": (),
    "log/logger.py:Logger.info": (),
    "log/logger.py:Logger.debug": (),
    "log/logger.py:Logger.exception": (),
    "log/logger.py:Logger.access": (),  # a line of the access log
    "log/statsd.py:Statsd.__init__": ("log/outlet.py:complaint",),
    "log/targets.py:or_refused": (),  # the log or the file, and what the system says of it
    "workers/auto.py:AutoWorker.loaded": (),  # core_options.upload_warning
    "workers/base.py:Worker._let_stand_in": ("workers/base.py:_start_application",),
    "workers/base.py:Worker._run_core": (),  # the core's, below
    "workers/base.py:Worker.notice": (),
    "workers/boot_failure.py:check_module": (),  # as `write`, before the fork
    "workers/boot_failure.py:write": ("workers/boot_failure.py:sentence",),
    "workers/aiohttp.py:AiohttpWorker._set_up": (),  # aiohttp's own words
    "tricorn_green/workers/green.py:GreenWorker._refused": ("tricorn_green/database.py:sentence",),
    "tricorn_green/workers/green.py:Notices.debug": (),
    "tricorn_green/workers/green.py:Notices.error": (),
    "tricorn_green/workers/green.py:Notices.info": (),
    "tricorn_green/workers/green.py:Notices.warning": (),
    "workers/handlers.py:Handlers._reopen_logs": (),  # the core's, below
    "workers/messages.py:_decode": (),  # what a worker has said
    "workers/native.py:make_core": (),  # the core's, below
}
"""Calls whose text is made elsewhere: `file:function` of the call, and those of the functions that make the text."""

MADE_AT = {
    "arbiter/periodic/statsd_gauges.py:run": "debug",
    "arbiter/periodic/statsd_gauges.py:_send_load": "debug",
    "arbiter/generation.py:describe": "info",
    "tls/plan.py:encrypted": "ConfigError",
    "gateway/app_loader.py:_not_found": "AppImportError",
    "tricorn_green/database.py:sentence": "error",
    "workers/base.py:_start_application": "error",
    "workers/boot_failure.py:sentence": "error",
}
"""The level of what these functions make, if it is no warning."""

CORE = {
    "tricorn-figures/src/access_log/mod.rs": "warning",
    "tricorn-figures/src/collectors/relay.rs": "warning",
    "tricorn-io/src/engine/buffering.rs": "warning",
    "tricorn-io/src/monitor/life.rs": "warning",
    "tricorn-io/src/monitor/orphan.rs": "warning",
    "tricorn-io/src/reactor/connections/adopt.rs": "warning",
    "tricorn-io/src/reactor/connections/exchanges.rs": "warning",
    "tricorn-io/src/reactor/connections/handshake.rs": "warning",
    "tricorn-io/src/reactor/connections/log.rs": "warning",
    "tricorn-io/src/reactor/connections/proxied.rs": "warning",
    "tricorn-io/src/reactor/connections/read.rs": "warning",
    "tricorn-io/src/reactor/connections/reject.rs": "warning",
    "tricorn-io/src/reactor/connections/trunks.rs": "warning",
    "tricorn-io/src/reactor/hand_over.rs": "warning",
    "tricorn-io/src/reactor/handshake.rs": "warning",
    "tricorn-io/src/reactor/stranded.rs": "warning",
    "tricorn-io/src/reactor/warnings.rs": "warning",
    "tricorn-proto/src/message/refusal.rs": "warning",
    "tricorn-proto/src/response/fault.rs": "error",
    "tricorn-proto/src/websocket/handshake/wrong.rs": "warning",
    "tricorn-py/src/asgi/call.rs": "error",
    "tricorn-py/src/asgi/failure.rs": "error",
    "tricorn-py/src/asgi/ground.rs": "info",
    "tricorn-py/src/asgi/opening.rs": "warning",
    "tricorn-py/src/asgi/websocket/socket.rs": "error",
    "tricorn-py/src/call/call.rs": "error",
    "tricorn-py/src/call/gateway.rs": "error",
    "tricorn-py/src/panics.rs": "error",
    "tricorn-py/src/report.rs": "error",
    "tricorn-py/src/transport/reading.rs": "error",
}
"""Files of the core that speak to the log, and the level of most of what they say."""


class Line(NamedTuple):
    text: str
    level: str
    """Of the log; or the name of the error that ends the start."""
    place: str
    """The file, from the root of the repository."""


class Opaque(NamedTuple):
    place: str
    """`file:function`, the file from the package on."""
    number: int


def _place(name: str) -> str:
    return f"packages/tricorn-green/{name}" if name.startswith(GREEN) else f"python/tricorn/{name}"


def python_lines() -> tuple[list[Line], list[Opaque]]:
    lines: list[Line] = []
    opaque: list[Opaque] = []
    found = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    found |= {path.relative_to(BESIDE).as_posix(): path for path in (BESIDE / GREEN).rglob("*.py")}
    for name, path in sorted(found.items()):
        if name.startswith(PROGRAMS):
            continue
        reader = Reader(ast.parse(path.read_text()), name)
        reader.read()
        lines += reader.lines
        opaque += reader.opaque
    return lines, opaque


class Reader:
    """What one module says."""

    def __init__(self, tree: ast.Module, name: str) -> None:
        self.tree, self.name = tree, name
        self.lines: list[Line] = []
        self.opaque: list[Opaque] = []
        self.constants = _assigned(tree.body)

    def read(self) -> None:
        self._read(self.tree, "", self.constants)

    def _read(self, node: ast.AST, function: str, names: dict[str, list[ast.expr]]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = f"{function}.{node.name}".lstrip(".")
            names = {**names, **_assigned(list(ast.walk(node)))}
        elif isinstance(node, ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call):
            for level, text in _spoken(node):
                self._say(level, text, function, names)
        for child in ast.iter_child_nodes(node):
            self._read(child, function, names)

    def _say(self, level: str, text: ast.expr, function: str, names: dict[str, list[ast.expr]]) -> None:
        for found in _texts(text, names, 4):
            words = line_of(found)
            if re.search(r"[A-Za-z]{2}", words):
                self.lines.append(Line(words, level, _place(self.name)))
            else:
                self.opaque.append(Opaque(f"{self.name}:{function}", text.lineno))


def _spoken(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The level and the text of a call that logs, or makes an error."""
    match call.func:
        case ast.Attribute(value, level) if level in LEVELS and LOGS.search(ast.unparse(value)) and call.args:
            text = call.args[1] if ast.unparse(value) == "Logger" and len(call.args) > 1 else call.args[0]
            yield {"exception": "error"}.get(level, level), text
        case ast.Attribute(ast.Name("self"), level) if level in LEVELS and _is_text(call):
            yield {"exception": "error"}.get(level, level), call.args[0]
        case ast.Name("Log" | "Notice") | ast.Attribute(attr="notice") if len(call.args) >= 2:
            said = call.args[0].value if isinstance(call.args[0], ast.Constant) else "info or error"
            yield str(said), call.args[1]
        case ast.Name("_say" | "say" | "_tell") if call.args:
            yield "warning", call.args[0]
        case ast.Name(name) if name in ERRORS and call.args:
            yield name, call.args[0]


def _is_text(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant)


def _assigned(nodes: list[ast.AST] | list[ast.stmt]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _texts(node: ast.expr, names: dict[str, list[ast.expr]], depth: int) -> list[str]:
    """Every text that an expression can be, with `…` for what is not known here."""
    if depth == 0:
        return [ANY]
    match node:
        case ast.Constant(str(words)):
            return [words]
        case ast.JoinedStr(values):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else ANY for part in values)]
        case ast.BinOp(left, ast.Add(), right):
            return [a + b for a in _texts(left, names, depth) for b in _texts(right, names, depth)]
        case ast.BinOp(left, ast.Mod(), _):
            return _texts(left, names, depth)
        case ast.IfExp(_, one, other):
            return _texts(one, names, depth) + _texts(other, names, depth)
        case ast.Call(ast.Attribute(value, "format"), _, _):
            return [re.sub(r"\{[^}]*\}", ANY, text) for text in _texts(value, names, depth)]
        case ast.Name(name) if name in names:
            return [text for value in names[name] for text in _texts(value, names, depth - 1)]
    return [ANY]


def line_of(text: str) -> str:
    """A text as it is told: `…` for each value, on one line."""
    text = re.sub(r"%(\(\w+\))?[-\d.]*[sdrgfi]", ANY, text.replace("%%", "\0")).replace("\0", "%")
    return re.sub(r"(…\s?)+…|…", ANY, re.sub(r"\s+", " ", text)).strip()


def carried_lines() -> list[Line]:
    """What the functions of `CARRIED` say: every text of theirs with three words."""
    found = []
    for place in sorted({maker for makers in CARRIED.values() for maker in makers}):
        name, _, function = place.partition(":")
        tree = ast.parse(((BESIDE if name.startswith(GREEN) else PACKAGE) / name).read_text())
        bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
        if not bodies:
            raise SystemExit(f"scripts/log_lines.py: {name} has no function {function}")
        level = MADE_AT.get(place, "warning")
        texts = sorted({*_sentences(bodies[0], _assigned(tree.body))})
        found += [Line(text, level, _place(name)) for text in texts if len(text.split()) > 2]
    return found


def _sentences(node: ast.AST, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The texts in a function but for its docstring, each as long as it is put together there."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()) | ast.Call(ast.Attribute(attr="format")):
            yield from map(line_of, _texts(node, names, 2))
        case ast.Expr(ast.Constant()):
            return
        case ast.Constant(str(text)):
            yield line_of(text)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _sentences(child, names)


LITERAL = re.compile(r'"((?:[^"\\]|\\.|\\\n)*)"', re.DOTALL)


def core_lines() -> list[Line]:
    """What the core says: the texts with three words that begin as a sentence or with a value."""
    found = []
    for name, level in CORE.items():
        for text in rust_texts((ROOT / "crates" / name).read_text()):
            line = line_of(re.sub(r"\{[^{}]*\}", ANY, text))
            if len(re.findall(r"[A-Za-z]{2,}", line)) > 2 and re.match(rf"[A-Z{ANY}]|tricorn", line):
                quiet = any(words in line for words in QUIET)
                found.append(Line(line, "debug" if quiet else level, f"crates/{name}"))
    return found


def rust_texts(source: str) -> Iterator[str]:
    """The texts of a Rust file, without those of its tests, comments and attributes."""
    source = re.sub(r"^\s*(//|#\[).*$", "", source.partition("#[cfg(test)]")[0], flags=re.MULTILINE)
    for literal in LITERAL.finditer(source):
        yield re.sub(r"\\\n\s*", "", literal[1]).replace('\\"', '"')


QUIET = (
    "left before its request",
    "the client disconnected,",
    "was ended after its response",
    "the WebSocket is closed,",
)
"""In these lines of the core, whose level is debug."""


def silent_files() -> list[str]:
    """Files of the core that speak to the log and are not in `CORE`."""
    spoken = []
    for path in sorted((ROOT / "crates").glob("tricorn-*/src/**/*.rs")):
        name = path.relative_to(ROOT / "crates").as_posix()
        if name not in CORE and re.search(r"\.notice\((true|false), \|\| (format!|\")", path.read_text()):
            spoken.append(f"crates/{name}")
    return spoken


def all_lines() -> list[Line]:
    """Each line once, by its text."""
    lines, opaque = python_lines()
    unknown = sorted({each.place for each in opaque} - set(CARRIED))
    gone = sorted(set(CARRIED) - {each.place for each in opaque})
    problems = [f"{place} logs a text that is made elsewhere: say in CARRIED where" for place in unknown]
    problems += [f"{place} is in CARRIED and logs no such text" for place in gone]
    problems += [f"{name} speaks to the log: name it in CORE" for name in silent_files()]
    if problems:
        raise SystemExit("scripts/log_lines.py: " + "; ".join(problems))
    by_text: dict[tuple[str, str], Line] = {}
    for line in (*lines, *carried_lines(), *core_lines()):
        before = by_text.setdefault((line.text, line.place), line)
        if before.level != line.level:
            by_text[line.text, line.place] = before._replace(level=_span(before.level, line.level))
    return sorted(by_text.values(), key=lambda line: (line.place, line.text))


def _span(one: str, other: str) -> str:
    return " or ".join(dict.fromkeys((*one.split(" or "), *other.split(" or "))))


if __name__ == "__main__":
    for line in all_lines():
        print(f"{line.place}\t{line.level}\t{line.text}")
