"""One record per setting: flag, environment, default, help and documentation are all rendered from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar, overload

from tricorn.config.validators import Boolean, Kind, Preloading
from tricorn.record import Record

T = TypeVar("T")


class Action(Enum):
    """Effect of a flag on its value."""

    STORE = "store"
    APPEND = "append"
    SET = "store_true"
    UNSET = "store_false"


class Values(Protocol):
    """Values by name: the part of a configuration that a setting sees."""

    def value(self, name: str) -> object: ...


class Part(Record):
    """Derivation of a setting from a wider one: `body_buffer_total` is a share of `memory_budget`."""

    whole: str
    """The name of the wider setting."""
    derive: Callable[[object], object]
    """Makes the value of the part; of the whole's default it makes the default of the part."""
    yields: bool = True
    """Gives way to a whole that a stronger source sets: `FORWARDED_ALLOW_IPS=*` to `--trusted-proxies`."""


def share(whole: str, parts: int, of: int) -> Part:
    """A fixed share of a number of bytes."""

    def derive(total: object) -> object:
        assert isinstance(total, int)
        return total * parts // of

    return Part(whole, derive)


def member(whole: str, name: str) -> Part:
    """Whether a list has this name."""

    def derive(names: object) -> object:
        assert isinstance(names, tuple)
        return name in names

    return Part(whole, derive)


def same(whole: str) -> Part:
    return Part(whole, lambda value: value)


def fixed(whole: str, value: object) -> Part:
    """The same value whatever the whole is: there was no reason yet for another one."""
    return Part(whole, lambda _: value, yields=False)


def by_level(whole: str, values: Mapping[object, object]) -> Part:
    return Part(whole, values.__getitem__)


class Section:
    """Settings of one topic; a configuration has all sections as its bases."""

    SECTION: ClassVar[str]
    """Its heading in documents."""


class Setting(Record, Generic[T]):
    """An attribute of a section, from which it has its name.

    Its flag is the name, as `--queue-limit`, unless it says others, or none. A boolean one is a switch: `--reload` if
    it is off without it, and `--no-sendfile` if it is on; or what its `action` says.

    On an instance of `Config` it reads as the value: `cfg.workers` is an `int`, and type checkers know.
    """

    kind: Kind[T]
    default: T
    help: str
    doc: str = ""
    flags: tuple[str, ...] = ("--",)
    action: Action = Action.STORE
    bare: str | None = None
    """Value of a flag without an argument. None: it needs one."""
    meanings: Mapping[str, object] = {}
    """Values of flags that are switches and do not mean true."""
    env_also: tuple[str, ...] = ()
    """Variables that are read besides `TRICORN_<NAME>`, weaker than everything else: the names platforms set."""
    since: str = "0.1"
    own: bool = False
    """tricorn's own; the others have gunicorn's name, flags and meaning."""
    core: bool = False
    """The native core has an option of this name, and is given the value as it is."""
    part_of: Part | None = None
    """Wider setting from which the value follows if it is not given. Help does not show such a part."""
    rare: bool = False
    """`--help` leaves it to `--help-all`."""
    default_shown: str | None = None
    """How documents show a default that is found out when the server starts."""
    name: str = ""
    section: str = ""

    def __set_name__(self, owner: type[Section], name: str) -> None:
        action, before = self.action, "--"
        if isinstance(self.kind, Boolean | Preloading) and action is Action.STORE:
            action, before = (Action.UNSET, "--no-") if self.default else (Action.SET, "--")
        flags = (before + name.replace("_", "-"),) if self.flags == ("--",) else self.flags
        vars(self).update(name=name, section=owner.SECTION, action=action, flags=flags)

    @property
    def env(self) -> str:
        return f"TRICORN_{self.name.upper()}"

    @property
    def is_common(self) -> bool:
        """Whether `--help` shows it."""
        return bool(self.flags) and self.part_of is None and not self.rare

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Setting[T]: ...
    @overload
    def __get__(self, instance: Values, owner: type[object]) -> T: ...
    def __get__(self, instance: Values | None, owner: type[object]) -> Setting[T] | T:
        if instance is None:
            return self
        value: T = instance.value(self.name)  # type: ignore[assignment]  # resolve() made it with self.kind
        return value
