"""The result of a measurement as JSON: `tricorn-bench/1`. The types below are the schema, which a reader checks.

Times are in seconds, sizes in bytes. A reader refuses another version.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from tricorn_bench.bench.errors import BenchError

SCHEMA = "tricorn-bench/1"


class CpuSeconds(TypedDict):
    """CPU time of all processes of the server during the measurement."""

    total: float
    user: float
    system: float


class Window(TypedDict):
    """A closed load without its end, when requests are answered and no more are sent."""

    seconds: float
    answered: int


class Answers(TypedDict):
    """Figures of every load."""

    seconds: float
    sent: int
    answered: int
    latency: dict[str, float]
    histogram: str
    statuses: dict[str, int]
    errors: dict[str, int]
    late: int
    unsent: int
    generator: dict[str, Any]


class Load(Answers, total=False):
    """Measurement by the load generator: the part of `tricorn-load/1` that reports need. All of it is kept."""

    unanswered: int
    window: Window


class OneProcess(TypedDict):
    pid: int
    name: str
    pss: int
    uss: int
    rss: int
    threads: int


class Parts(TypedDict):
    """Mean seconds of a request, from tricorn's metrics."""

    queue: float
    application: float
    rest: float
    gil: float
    """Time the thread waited for the GIL while the request waited or was not read yet (sync, gthread)."""


class Round(TypedDict):
    load: Load
    cpu: CpuSeconds
    processes: list[OneProcess]
    connections: int
    parts: Parts | None
    database: int | None
    ready: float
    disturbance: float


class Configured(TypedDict):
    """`family` and `at` place it in a chart: the line, and where on it. `absent` is the reason why there is no cell."""

    name: str
    family: str
    server: str
    version: str | None
    command: str | None
    absent: str | None


class Cell(TypedDict):
    configuration: str
    at: float | None
    rounds: list[Round]


class Expected(TypedDict):
    """Latencies that M/M/W predicts at a load."""

    configuration: str
    at: float
    p50: float
    p95: float
    p99: float


class Result(TypedDict):
    schema: str
    made: str
    application: str
    preset: str | None
    axis: str | None
    command: str
    load: str
    machine: dict[str, str]
    answer: str
    configurations: list[Configured]
    cells: list[Cell]
    theory: list[Expected]
    notes: list[str]


def write(result: Result, path: Path) -> None:
    """Writes the result atomically, since it is rewritten after each server and a signal may come at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    beside.replace(path)


def read(path: Path) -> Result:
    """Raises BenchError for a file that is none."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BenchError(f"{path} is no result of tricorn bench: it is not JSON ({error}).") from None
    if not isinstance(found, dict) or "schema" not in found:
        raise BenchError(f"{path} is no result of tricorn bench: it has no 'schema'.")
    if found["schema"] != SCHEMA:
        raise BenchError(f"{path} has the schema {found['schema']!r}; this version reads {SCHEMA!r}.")
    if fault := misfit(found, Result, ""):
        raise BenchError(f"{path} is no whole result of tricorn bench: {fault}.")
    return cast("Result", found)


def misfit(value: object, shape: Any, where: str) -> str | None:
    """Describes, as half a sentence, why `value` is no `shape`; None if it is one. Further keys are allowed."""
    origin, parts = get_origin(shape), get_args(shape)
    if shape is Any:
        return None
    if is_typeddict(shape):
        if not isinstance(value, dict):
            return _expected("an object", value, where)
        return _first(_member_misfit(value, key, kind, shape, where) for key, kind in get_type_hints(shape).items())
    if origin in (Union, types.UnionType):
        faults = [misfit(value, part, where) for part in parts]
        return None if None in faults else faults[0]
    if origin is list:
        if not isinstance(value, list):
            return _expected("a list", value, where)
        return _first(misfit(one, parts[0], f"{where}[{place}]") for place, one in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            return _expected("an object", value, where)
        return _first(misfit(one, parts[1], _joined(where, str(key))) for key, one in value.items())
    allowed = (int, float) if shape is float else shape
    fits = isinstance(value, allowed) and not (isinstance(value, bool) and shape is not bool)
    return None if fits else _expected(_NAMES.get(shape, str(shape)), value, where)


def _member_misfit(value: dict[str, Any], key: str, kind: Any, shape: Any, where: str) -> str | None:
    if key in value:
        return misfit(value[key], kind, _joined(where, key))
    return f"{_joined(where, key)} is missing" if key in shape.__required_keys__ else None


def cells_by_configuration(result: Result) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in result["cells"]:
        found.setdefault(cell["configuration"], []).append(cell)
    return found


def configured(result: Result) -> Mapping[str, Configured]:
    return {one["name"]: one for one in result["configurations"]}


def _first(faults: Any) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


def _joined(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _expected(what: str, value: object, where: str) -> str:
    return f"{where or 'it'} should be {what}, and is {_brief(value)}"


def _brief(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


_NAMES: dict[object, str] = {int: "a whole number", float: "a number", str: "a text", types.NoneType: "null"}


def answers(rounds: Sequence[Round]) -> int:
    return sum(one["load"]["answered"] for one in rounds)
