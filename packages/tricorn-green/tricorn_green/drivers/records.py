"""Records of libraries: one each, with the treatment in each kind of greenlet worker."""

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
    """Titles of the records that `heal` is for; none: all."""
    offload: tuple[str, ...] = ()
    """Targets that the operator wants run in threads: `module:Class.method`."""

    def heals(self, title: str) -> bool:
        return self.doctor == "heal" and (not self.cures or title in self.cures)


OBSERVES = Care()
"""Default, where the operator has said nothing."""


class Ground:
    """The base of treatments. One per process; a fork has a copy, which is brought up to date when it installs."""

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
    """Treatment by threads (`doctor = heal`), which make the calls that wait in C. The application stays as it is."""

    apply: Apply
    how: str
    """Sentence for the log and the documentation."""
    imports: tuple[str, ...] = ()
    """The modules in which names are replaced, before others take them; none: those of the record."""
    is_proven: bool = True
    """There is a test with the library itself; it cannot be had everywhere."""


class Hook(Record):
    """The library has a place for this, and waits cooperatively from then on."""

    apply: Apply
    how: str
    """Sentence for the documentation."""


class Check(Record):
    """Cooperative under a condition, which is looked at; the log says if it is not met."""

    apply: Apply
    condition: str
    """A sentence for the documentation."""


class Blocks(Record):
    """While it waits nothing else of the worker runs. One line in the log says so, and what to do."""

    remedy: str
    """Whole sentences."""
    calls: tuple[str, ...] = ()
    """Functions of the module: the line waits for the first call of one. None: it comes with the import."""
    level: Level = "warning"
    when: str = ""
    """If it does so only at times: when."""
    cure: Cure | None = None


class Cooperative(Record):
    """Python all the way down to sockets that are patched: nothing is to be done."""


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
    """The line in the log."""
    when = f" {treatment.when}" if treatment.when else ""
    cure = " With doctor = heal threads of the server make its calls." if treatment.cure else ""
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
