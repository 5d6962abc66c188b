"""Configuration files: Python that is executed, and whose names are settings."""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import machinery
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from tricorn.config.lookups import ExistingPath, Group, Hook, User
from tricorn.config.registry import BY_NAME, meant_by
from tricorn.config.resolve import Layer, Raw
from tricorn.config.setting import Setting
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME, Asked
from tricorn.config.validators import Bytes, EnvAssignments, Integer, Invalid, OptionalText, Seconds, Umask, WorkerCount
from tricorn.errors import ConfigError
from tricorn.record import Record

if TYPE_CHECKING:
    import ast
    import traceback

MODULE_NAME = "__config__"
DEFAULT_FILES = ("tricorn.conf.py", "gunicorn.conf.py")
EXTENSIONS = (".py", ".pyc")

# None is a value of these or a mistake; for every other kind it means what not writing the line means.
_KNOW_NONE = (
    OptionalText, ExistingPath, User, Group, Integer, WorkerCount, Seconds, Bytes, Umask, Hook,
)  # fmt: skip


class Location(Record):
    """A configuration file: a path, or the name of a module."""

    text: str
    """Text as it was written, and as messages show it."""
    path: str | None = None
    module: str | None = None

    @classmethod
    def parse(cls, text: str) -> Location:
        """Reads PATH, file:PATH or python:MODULE."""
        if text.startswith("python:"):
            return cls(text, module=text.removeprefix("python:"))
        return cls(text, path=text.removeprefix("file:"))

    @property
    def module_name(self) -> str:
        """Under which it is in `sys.modules`; for a file gunicorn's."""
        return MODULE_NAME if self.module is None else self.module


def find_default(directory: str) -> tuple[Location | None, tuple[str, ...]]:
    """The file of `directory` that is read when none is named, and what there is to warn about."""
    found = [name for name in DEFAULT_FILES if os.path.exists(os.path.join(directory, name))]
    if not found:
        return None, ()
    warnings = (f"Both ./{found[0]} and ./{found[1]} exist; using {found[0]}.",) if len(found) > 1 else ()
    return Location("./" + found[0], path=found[0]), warnings


def read(location: Location, directory: str) -> Layer:
    """Executes the file and returns the layer of what it sets. Raises ConfigError.

    Relative paths begin at `directory`, which is the working directory while the file runs.
    """
    warnings: list[str] = []
    asked: list[Asked] = []
    if location.path is not None:
        path = os.path.join(directory, location.path)
        if not os.path.exists(path):
            raise ConfigError(f"The configuration file {location.path!r} doesn't exist.")
        if path.endswith(".toml"):  # hypercorn's
            raise ConfigError(
                f"Cannot read {location.path!r}: configuration files are Python, not TOML. Use NAME = VALUE lines in "
                "a .py file, or [tool.tricorn] in pyproject.toml."
            )
        if os.path.splitext(path)[1] not in EXTENSIONS:
            refuse_uwsgis(path, location.path)
            warnings.append(f"The configuration file {location.path!r} should have the extension .py.")
    else:
        path = ""
    names, source_path = _execute(location, os.path.abspath(path))
    lines = _lines_of_assignments(source_path)
    shown = location.text.removeprefix("file:")
    values = {}
    for name, value in names.items():
        if name in BY_NAME and name != "config":
            setting = BY_NAME[name]
            if value is None and not isinstance(setting.kind, _KNOW_NONE):
                continue
            if isinstance(value, str) and isinstance(setting.kind, EnvAssignments):
                value = [value]  # one assignment, as in gunicorn, whatever stands behind the =
            values[name] = Raw(value, _place(shown, lines.get(name)))
        else:
            place = _place(shown, lines.get(name))
            record = UNAVAILABLE_BY_NAME.get(name)
            if record is None:
                warnings.extend(_judge_stranger(name, value, place))
            elif not (type(value) is ModuleType or record.asks_for_nothing(value)):
                asked.append(record.asked(place))
    return Layer(values, tuple(warnings), tuple(asked))


def refuse_uwsgis(path: str, shown: str) -> None:
    """Raises ConfigError if the file is a configuration of uWSGI."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return
    from tricorn.config import uwsgi

    if (names := uwsgi.options(text)) is not None:
        raise uwsgi.refusal(shown, names)


@contextmanager
def undone_on_failure(location: Location | None) -> Iterator[None]:
    """Puts back what a file has changed if it fails, or is refused. What an intact file changes is its business."""
    name = MODULE_NAME if location is None else location.module_name
    module, path, environ = sys.modules.get(name), sys.path.copy(), os.environ.copy()
    try:
        yield
    except BaseException:
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
        sys.path[:] = path
        _put_back(environ)
        raise


def _put_back(environ: Mapping[str, str]) -> None:
    """One by one: threads of hooks find every variable that was there before, at any moment."""
    for name in os.environ.keys() - environ.keys():
        os.environ.pop(name, None)
    for name, value in environ.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _execute(location: Location, path: str) -> tuple[Mapping[str, Any], str]:
    """The names that the file defines, and the path of its source."""
    name = location.module_name
    try:
        module, code = _find(location, path)
        sys.modules[name] = module
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        raise _failure(location, error, path or name) from None
    return dict(vars(module)), str(getattr(module, "__file__", None) or "")


def _find(location: Location, path: str) -> tuple[ModuleType, CodeType]:
    name = location.module_name
    if location.module is not None:
        importlib.invalidate_caches()  # the file may have been written a moment ago
        spec = importlib.util.find_spec(name)
    else:
        files = machinery.SourcelessFileLoader if path.endswith(".pyc") else machinery.SourceFileLoader
        spec = importlib.util.spec_from_file_location(name, path, loader=files(name, path))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}")
    loader: Any = spec.loader
    if isinstance(loader, machinery.SourceFileLoader):
        # Not by way of __pycache__, which goes by whole seconds and would miss a quick change.
        code: CodeType | None = loader.source_to_code(loader.get_data(loader.path), loader.path)
    else:
        code = loader.get_code(name) if hasattr(loader, "get_code") else None
    if code is None:
        raise ImportError(f"{name!r} is not a module with code")
    return importlib.util.module_from_spec(spec), code


# What went wrong


def _failure(location: Location, error: BaseException, path: str) -> ConfigError:
    import linecache
    import traceback

    shown = location.text.removeprefix("file:")
    linecache.checkcache()
    line = None
    if isinstance(error, SyntaxError) and error.filename == path:
        line, reason = error.lineno, f"SyntaxError: {error.msg}"
    elif isinstance(error, SystemExit):
        reason = f"it calls exit({error.code!r})"
    else:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = _frames_of_the_file(error)
    if line is None:
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == path), None)
        details = "".join(traceback.format_list(frames))
    else:
        details = "".join(traceback.format_exception_only(error)[:-1])
    return ConfigError(f"Failed to read config file: {_place(shown, line)}: {reason}", details=details)


def _frames_of_the_file(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames below ours."""
    import traceback

    frames = list(traceback.extract_tb(error.__traceback__))
    while frames and frames[0].filename == __file__:
        frames.pop(0)
    return [frame for frame in frames if not frame.filename.startswith("<frozen importlib")]


def _place(shown: str, line: int | None) -> str:
    return f"{shown}:{line}" if line else shown


# Names that are no settings


def _judge_stranger(name: str, value: object, place: str) -> Iterator[str]:
    """Warns of what was probably meant to be a setting."""
    if name.startswith("_") or name != name.lower() or name in BY_NAME or hasattr(builtins, name):
        return
    # Not isinstance: it asks an object for its `__class__`, and a lazy one (Django's settings) is made by being asked.
    if type(value) not in PLAIN:
        return
    meant = next((setting for setting in meant_by(name) if _is_value_of(setting, value)), None)
    if meant is not None:
        yield f"{place}: {name} is not a setting and was ignored; did you mean {meant.name}?"


PLAIN = frozenset((str, int, float, bool, list, tuple, dict, FunctionType, type(None)))
"""The types of what is worth a look: modules, classes and other objects are no settings that were misspelt."""


def _is_value_of(setting: Setting[object], value: object) -> bool:
    if (type(value) is FunctionType) != isinstance(setting.kind, Hook):
        return False
    try:
        setting.kind.parse(value)
    except Invalid:
        return False
    return True


def _lines_of_assignments(path: str) -> Mapping[str, int]:
    """The line that gives each name of a file its last value; nothing if there is no source to read."""
    import ast

    try:
        with open(path, "rb") as file:
            body = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return {}
    return dict(_bindings(body))


def _bindings(body: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    import ast

    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id, node.lineno
        else:  # if, try, with, for: their blocks run in the same place
            yield from _bindings(ast.iter_child_nodes(node))
