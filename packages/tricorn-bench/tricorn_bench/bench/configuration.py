"""A configuration: one server with its arguments, as one line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tricorn.config.settings.processes import WORKER_CLASSES
from tricorn.record import Record
from tricorn.spelling import hint
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.servers import SERVERS, Certificate, Kind, Order

CLASS_FLAGS = ("-k", "--worker-class")
THREAD_FLAGS = ("--threads",)


class Configuration(Record):
    """`server` is a name of `SERVERS`; `words` are its arguments, but for the address and the application."""

    server: str
    words: tuple[str, ...] = ()
    why_not: str | None = None
    """Why there is nothing to be started; a configuration that was asked for stays in the report."""

    @classmethod
    def parse(cls, line: str) -> Configuration:
        """`gevent -w 4` is tricorn's class, `gunicorn gevent -w 4` gunicorn's, `uvicorn --workers 4` as it stands.

        Raises BenchError.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise BenchError(f"Could not parse the configuration {line!r}: {error}.") from None
        if not words:
            raise BenchError("Empty configuration: expected, for example, 'gevent -w 4' or 'gunicorn -w 4'.")
        server = words.pop(0) if words[0] in SERVERS else "tricorn"
        kind = SERVERS[server]
        if words and not words[0].startswith("-"):
            _demand_class(kind, words[0], line)
            words[:1] = ["-k", words[0]]
        return cls(server, tuple(words))

    @property
    def kind(self) -> Kind:
        return SERVERS[self.server]

    @property
    def name(self) -> str:
        """The line that parses to the same configuration."""
        words = list(self.words)
        if len(words) > 1 and words[0] == "-k":
            words = words[1:]
        return shlex.join([self.server, *words])

    @property
    def workers(self) -> int:
        text = _value(self.words, self.kind.workers_flag)
        return int(text) if text and text.isdigit() else 1

    @property
    def threads(self) -> int:
        text = _value(self.words, THREAD_FLAGS)
        return int(text) if text and text.isdigit() else 1

    @property
    def worker_class(self) -> str | None:
        return _value(self.words, CLASS_FLAGS) if self.kind.classes else None

    @property
    def other_words(self) -> tuple[str, ...]:
        """Arguments without the worker class."""
        return _without(self.words, CLASS_FLAGS) if self.kind.classes else self.words

    @property
    def normalized(self) -> Configuration:
        """The same configuration as another one exactly if the two start the same server: `sync` and `sync -w 1` do."""
        rest = _without(_without(self.other_words, self.kind.workers_flag), THREAD_FLAGS)
        size = ("-k", self.worker_class or "", "-w", str(self.workers), "--threads", str(self.threads))
        return Configuration(self.server, (*size, *rest), self.why_not)

    def with_workers(self, count: int) -> Configuration:
        flags = self.kind.workers_flag
        if not flags:
            return Configuration(self.server, self.words, why_not="it has one process only")
        return Configuration(self.server, (*_without(self.words, flags), flags[0], str(count)))

    def like(self, server: str) -> Configuration:
        """Returns the equivalent configuration of another server, as far as it has one."""
        try:
            return Configuration(server, self._words_of(SERVERS[server]))
        except ValueError as reason:
            words = ("-k", self.worker_class) if SERVERS[server].classes and self.worker_class else ()
            return Configuration(server, words, why_not=str(reason))

    def _words_of(self, kind: Kind) -> tuple[str, ...]:
        """The words that make another server like this configuration of tricorn's; ValueError has the reason."""
        if kind.classes:
            if self.worker_class not in (None, *kind.classes):
                raise ValueError(f"it has no worker class {self.worker_class}")
            named = ("-k", self.worker_class) if self.worker_class else ()
            return (*named, *self.other_words)
        if not kind.workers_flag:
            if self.workers > 1:
                raise ValueError(f"it has one process, and {self.name} has {self.workers}")
            return ()
        return (kind.workers_flag[0], str(self.workers))

    def command(
        self,
        python: str,
        application: str,
        port: int,
        interface: str | None,
        admin_port: int | None = None,
        host: str = "127.0.0.1",
        certificate: Certificate | None = None,
        http2: bool = False,
    ) -> list[str]:
        order = Order(python, application, port, self.words, interface, admin_port, host, certificate, http2)
        return self.kind.command(order)


def against(configurations: Sequence[Configuration], servers: Sequence[str]) -> list[Configuration]:
    """Each configuration, with what other servers have like it beside it; no configuration comes twice."""
    for server in servers:
        if server not in SERVERS:
            meant = hint(server, SERVERS)
            raise BenchError(f"Unknown server {server!r} in --against: expected {', '.join(SERVERS)}{meant}")
    found: dict[str, Configuration] = {}
    for configuration in configurations:
        alike = [configuration.like(server) for server in servers] if configuration.server == "tricorn" else []
        for one in (configuration, *alike):
            found.setdefault(one.name, one)
    return list(found.values())


def _demand_class(kind: Kind, word: str, line: str) -> None:
    if kind.classes and ("." in word or word in kind.classes or word in WORKER_CLASSES):
        return
    known = (*kind.classes, *SERVERS)
    raise BenchError(
        f"The configuration {line!r} begins with {word!r}, which is neither a worker class of {kind.name} "
        f"nor a server: expected one of {', '.join(known)}{hint(word, known)}"
    )


def _value(words: Sequence[str], flags: Sequence[str]) -> str | None:
    """The value of the last of these flags: `-w 4`, `-w4`, `--workers 4`, `--workers=4`."""
    found = None
    for place, word in enumerate(words):
        for flag in flags:
            if word == flag:
                found = words[place + 1] if place + 1 < len(words) else None
            elif flag.startswith("--") and word.startswith(f"{flag}="):
                found = word[len(flag) + 1 :]
            elif not flag.startswith("--") and word.startswith(flag) and not word.startswith("--"):
                found = word[len(flag) :]
    return found


def _without(words: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in flags:
            skip = True
        elif _value((word,), flags) is None:
            kept.append(word)
    return tuple(kept)
