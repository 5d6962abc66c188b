"""Kinds of values that say which files the server sends itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from tricorn.config.lookups import ExistingPaths
from tricorn.config.validators import Malformed, Refused, Text
from tricorn.record import Record
from tricorn.spelling import hint

EXAMPLE = "/static=/srv/static,max-age=3600"
SECONDS = ("max-age", "s-maxage", "stale-while-revalidate", "stale-if-error")
"""Directives of Cache-Control that have a number of seconds (RFC 9111 section 5.2.2, RFC 5861)."""
WORDS = ("public", "private", "no-cache", "no-store", "no-transform", "must-revalidate", "immutable")
"""Directives without a value (RFC 9111 section 5.2.2, RFC 8246)."""
MISS = "miss"
"""The option that says whose answer a missing file is."""
APPLICATION, NOT_FOUND = "app", "404"


class StaticMapping(Record):
    """One directory whose files are sent at a prefix."""

    prefix: str
    """Without a slash at its end: empty for `/`."""
    directory: str
    directives: tuple[str, ...] = ()
    """Directives of Cache-Control; none: those of `static_cache_control` count."""
    falls_through: bool = True
    """Whether paths without a file are the application's."""


class StaticMap(ExistingPaths):
    """Texts PREFIX=DIRECTORY with options behind commas, one text with a line for each, or a dict from prefixes."""

    metavar: str = "PREFIX=DIR[,OPTION…]"

    def parse(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [line.strip() for line in raw.splitlines() if line.strip()]
        elif isinstance(raw, Mapping):
            raw = [f"{Text().parse(prefix)}={Text().parse(rest)}" for prefix, rest in raw.items()]
        if not isinstance(raw, Sequence):
            raise Malformed(f"expected texts such as {EXAMPLE!r}")
        texts = tuple(Text().parse(text) for text in raw)
        prefixes = [mapping(text).prefix for text in texts]
        for prefix in prefixes:
            if prefixes.count(prefix) > 1:
                raise Refused(f"expected each prefix once, got {prefix or '/'} {prefixes.count(prefix)} times")
        return texts

    def look_up(self, value: tuple[str, ...], directory: str) -> None:
        for found in map(mapping, value):
            if not os.path.isdir(os.path.join(directory, found.directory)):
                raise Refused(f"the directory {found.directory!r} does not exist")


class SendfileRoots(ExistingPaths):
    """Directories, and PREFIX=DIRECTORY: texts, or one text with a line for each."""

    metavar: str = "[PREFIX=]DIR"

    def parse(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [line.strip() for line in raw.splitlines() if line.strip()]
        if not isinstance(raw, Sequence):
            raise Malformed("expected texts such as '/srv/files' or '/protected=/srv/files'")
        texts = tuple(Text().parse(text) for text in raw)
        for text in texts:
            root(text)
        return texts

    def look_up(self, value: tuple[str, ...], directory: str) -> None:
        for _, found in map(root, value):
            if not os.path.isdir(os.path.join(directory, found)):
                raise Refused(f"the directory {found!r} does not exist")


class CacheControl(Record):
    """Directives of Cache-Control, separated by commas; an empty text: the field is not sent."""

    metavar: str = "DIRECTIVES"

    def parse(self, raw: object) -> str:
        text = "" if raw is None else Text().parse(raw)
        return ", ".join(directive(part.strip()) for part in text.split(",") if part.strip())


class IndexFile(Record):
    """The name of a file; an empty text: none."""

    metavar: str = "FILE"

    def parse(self, raw: object) -> str:
        name = "" if raw is None else Text().parse(raw)
        if "/" in name or "\0" in name or name.startswith("."):
            raise Refused("expected the name of a file without its directory, and no dot-file")
        return name


def mapping(text: str) -> StaticMapping:
    """Reads `PREFIX=DIRECTORY[,OPTION…]`. Raises Refused."""
    prefix, equals, rest = text.partition("=")
    directory, *options = (part.strip() for part in rest.split(","))
    if not equals or not directory:
        raise Refused(f"expected PREFIX=DIRECTORY such as {EXAMPLE}, got {text!r}")
    misses = [option.partition("=")[2] for option in options if option.partition("=")[0] == MISS]
    for miss in misses:
        if miss not in (APPLICATION, NOT_FOUND):
            raise Refused(f"expected {MISS}={APPLICATION} or {MISS}={NOT_FOUND}, got {MISS}={miss}")
    directives = tuple(directive(option) for option in options if option.partition("=")[0] != MISS)
    return StaticMapping(_prefix(prefix.strip()), directory, directives, NOT_FOUND not in misses)


def root(text: str) -> tuple[str | None, str]:
    """Reads `DIRECTORY` or `PREFIX=DIRECTORY`. Raises Refused."""
    prefix, equals, directory = text.partition("=")
    if not equals:
        return None, text
    if not directory.strip() or not _prefix(prefix.strip()):
        raise Refused(f"expected DIRECTORY or PREFIX=DIRECTORY such as /protected=/srv/files, got {text!r}")
    return _prefix(prefix.strip()), directory.strip()


def directive(text: str) -> str:
    """Returns a directive of Cache-Control as it is sent. Raises Refused."""
    name, equals, number = text.lower().partition("=")
    if name in WORDS and not equals:
        return name
    if name in SECONDS and number.isascii() and number.isdigit():
        return f"{name}={number}"
    if name in SECONDS:
        raise Refused(f"expected {name}=SECONDS, got {text!r}")
    known = (*SECONDS, *WORDS, MISS)
    meant = hint(name, known, otherwise="")
    raise Refused(f"expected a directive of Cache-Control or {MISS}={NOT_FOUND}, got {text!r}{meant}")


def _prefix(text: str) -> str:
    if not text.startswith("/"):
        raise Refused(f"expected a prefix that begins with a slash, got {text!r}")
    prefix = text.rstrip("/")
    segments = prefix.split("/")[1:]
    if not text.isprintable() or set(text) & set("%?#\\") or any(part in ("", ".", "..") for part in segments):
        raise Refused(f"expected a prefix such as /static, as the decoded path has it, got {text!r}")
    return prefix
