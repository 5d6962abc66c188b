"""gunicorn's settings that this version does not have: recognised, and refused if they ask for something.

Some choose among what does not exist here, or is always so: those are accepted, without effect.

A setting that is of effect only with another one, its *switch*, asks for nothing by itself: `dirty_workers` without
`dirty_apps`. Where the switch is on, it is the switch that is refused. `unavailable = warn` warns instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NoReturn

from tricorn.errors import ConfigError
from tricorn.record import Record


class Takes(Enum):
    """Arguments of the flag, so that the parser reads on behind them."""

    NOTHING = "nothing"
    VALUE = "value"
    MAYBE = "maybe"


class Unavailable(Record):
    name: str
    flags: tuple[str, ...] = ()
    default: object = None
    """gunicorn's, which is what code written for gunicorn reads; asking for no more than that is no mistake."""
    takes: Takes = Takes.VALUE
    switch: str = ""
    """The setting without which this one is of no effect."""
    inert: str = ""
    """Why it has no effect, whatever it says."""

    def asks_for_nothing(self, value: object) -> bool:
        """Whether a configuration file that says so is content with what there is: `keyfile = None`."""
        if self.switch or self.inert:
            return True
        if isinstance(value, str) and isinstance(self.default, tuple):
            value = value.split(",")
        if isinstance(value, list):
            value = tuple(value)
        return value in (None, False, "", (), self.default)

    @property
    def sentence(self) -> str:
        return f"gunicorn's setting {self.name} is not available in this version of tricorn."

    def asked(self, place: str, raising: Callable[[str], object] | None = None) -> Asked:
        """It is asked for there; `raising` is for a place that has an exception of its own."""
        return Asked(self.name, f"{place}: {self.sentence}", raising or refuse)


class Asked(Record):
    """Something that is not there was asked for."""

    name: str
    """Name of the setting or the flag."""
    sentence: str
    """Message about it, with its place."""
    refuse: Callable[[str], object]
    """Raises, with the sentence."""


def refuse(sentence: str) -> NoReturn:
    raise ConfigError(sentence)


def judge(asked: Iterable[Asked], policy: str) -> tuple[str, ...]:
    """Refuses the first of them, or has a warning for each, once (`unavailable`)."""
    warnings: dict[str, str] = {}
    how = "" if policy == "refuse" else f" (unavailable = {policy})"
    for each in asked:
        if policy == "refuse":
            each.refuse(each.sentence)
        warnings.setdefault(each.name, f"{each.sentence} It was ignored{how}.")
    return tuple(warnings.values())


UNAVAILABLE = (
    Unavailable("http_parser", ("--http-parser",), "auto", inert="there is one parser, and it is native"),
    Unavailable("ssl_version", ("--ssl-version",), inert="`tls_min_version` says what is spoken"),
    Unavailable(
        "suppress_ragged_eofs",
        ("--suppress-ragged-eofs",),
        True,
        Takes.NOTHING,
        inert="the framing of HTTP tells whether a request was cut off",
    ),
    Unavailable(
        "do_handshake_on_connect",
        ("--do-handshake-on-connect",),
        False,
        Takes.NOTHING,
        inert="no handshake runs in a thread of the application",
    ),
    Unavailable(
        "http2_max_frame_size",
        ("--http2-max-frame-size",),
        16384,
        inert="clients send frames of up to 16,384 bytes; larger ones would save nothing, for content is read as it "
        "arrives",
    ),
    Unavailable("dirty_apps", ("--dirty-app",), ()),
    Unavailable("dirty_workers", ("--dirty-workers",), 0, switch="dirty_apps"),
    Unavailable("dirty_timeout", ("--dirty-timeout",), 300, switch="dirty_apps"),
    Unavailable("dirty_threads", ("--dirty-threads",), 1, switch="dirty_apps"),
    Unavailable("dirty_graceful_timeout", ("--dirty-graceful-timeout",), 30, switch="dirty_apps"),
    Unavailable("on_dirty_starting", switch="dirty_apps"),
    Unavailable("dirty_post_fork", switch="dirty_apps"),
    Unavailable("dirty_worker_init", switch="dirty_apps"),
    Unavailable("dirty_worker_exit", switch="dirty_apps"),
)

UNAVAILABLE_BY_NAME = {record.name: record for record in UNAVAILABLE}
