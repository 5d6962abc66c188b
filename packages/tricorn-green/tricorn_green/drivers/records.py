"""Records of libraries: one for each, with the treatment in each kind of greenlet worker."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from tricorn.libraries import Library
from tricorn.record import Record

if TYPE_CHECKING:
    from tricorn.log.types import Log
    from tricorn_green.database import Connections

Level = Literal["debug", "info", "warning"]


class Care(Record):
    """The settings for drivers."""

    doctor: str = "observe"
    """The setting of this name."""
    cures: tuple[str, ...] = ()
    """Libraries that `heal` applies to; empty: all."""
    offload: tuple[str, ...] = ()
    """Functions to run in threads (setting `offload`): `module:Class.method`."""

    def heals(self, title: str) -> bool:
        return self.doctor == "heal" and (not self.cures or title in self.cures)


OBSERVES = Care()
"""Default settings."""


class Ground:
    """Context of treatments, one per process. A fork has a copy, which is updated when the worker installs drivers."""

    def __init__(self, alias: str, log: Log, connections: Connections | None, care: Care = OBSERVES) -> None:
        self.alias = alias
        """The worker class: `gevent` or `eventlet`."""
        self.log = log
        self.connections = connections
        """Counter of database connections. None: they are not counted in this process."""
        self.care = care
        self._said: set[str] = set()

    def renew(self, alias: str, log: Log, connections: Connections | None) -> None:
        self.alias, self.log, self.connections = alias, log, connections

    def say(self, level: Level, text: str) -> None:
        """Logs a line that was not logged before."""
        if text not in self._said:
            self._said.add(text)
            getattr(self.log, level)("%s", text)


Apply = Callable[[Any, Ground], None]
"""Called with the module when it has been executed, and again if it is reloaded."""


class Cure(Record):
    """Treatment with threads that make the blocking calls in C (`doctor = heal`). The application is not changed."""

    apply: Apply
    how: str
    """Sentence for the log and the documentation."""
    imports: tuple[str, ...] = ()
    """Modules in which names are replaced before others import them; empty: those of the record."""
    is_proven: bool = True
    """Whether a test runs with the library itself, which cannot be installed everywhere."""


class Hook(Record):
    """Treatment through an extension point of the library, which makes it wait cooperatively."""

    apply: Apply
    how: str
    """Sentence for the documentation."""


class Check(Record):
    """Cooperative under a condition, which is checked. The log says if it is not met."""

    apply: Apply
    condition: str
    """A sentence for the documentation."""


class Blocks(Record):
    """Blocks the whole worker while it waits. One line in the log says so, and what to do."""

    remedy: str
    """Whole sentences."""
    calls: tuple[str, ...] = ()
    """Functions whose first call logs the line. Empty: the import logs it."""
    level: Level = "warning"
    when: str = ""
    """Condition under which it blocks; empty: always."""
    cure: Cure | None = None


class Cooperative(Record):
    """Pure Python on patched sockets. No treatment is needed."""


Treatment = Hook | Check | Blocks | Cooperative


class Driver(Record):
    """One library."""

    library: Library
    gevent: Treatment
    eventlet: Treatment

    @property
    def title(self) -> str:
        return self.library.title

    @property
    def imports(self) -> tuple[str, ...]:
        return self.library.imports

    @property
    def what(self) -> str:
        return self.library.what

    def under(self, alias: str) -> Treatment:
        return self.eventlet if alias == "eventlet" else self.gevent


def blocks(driver: Driver, treatment: Blocks) -> Apply:
    """Returns the treatment that warns about a library that blocks."""
    text = line(driver, treatment)

    def apply(module: ModuleType, ground: Ground) -> None:
        if ground.care.doctor == "off":
            return
        if treatment.calls:
            for name in treatment.calls:
                _say_at_first_call(module, name, ground, treatment.level, text)
        else:
            ground.say(treatment.level, text)

    return apply


def line(driver: Driver, treatment: Blocks) -> str:
    """Returns the line of the log."""
    when = f" {treatment.when}" if treatment.when else ""
    cure = " With doctor = heal, the server makes its calls in threads." if treatment.cure else ""
    return f"{driver.title} ({driver.what}){when} blocks the whole worker while it waits. {treatment.remedy}{cure}"


def cures(driver: Driver, cure: Cure) -> Apply:
    """Returns the treatment that applies a library's cure."""

    def apply(module: ModuleType, ground: Ground) -> None:
        cure.apply(module, ground)
        ground.say("info", f"{driver.title} ({driver.what}): {cure.how} (doctor = heal)")

    return apply


def _say_at_first_call(module: ModuleType, name: str, ground: Ground, level: Level, text: str) -> None:
    original = getattr(module, name)
    if getattr(original, "__tricorn__", False):
        return

    def first(*args: Any, **kwargs: Any) -> Any:
        if getattr(module, name) is first:
            setattr(module, name, original)
        ground.say(level, text)
        return original(*args, **kwargs)

    first.__name__, first.__doc__ = name, original.__doc__
    first.__tricorn__ = True  # type: ignore[attr-defined]
    setattr(module, name, first)
