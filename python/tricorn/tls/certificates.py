"""Certificates and keys as the arbiter keeps them: in a page that workers read, and new ones when files change.

    files ──read──▶ bundle ──check──▶ page ──▶ each worker, at its next handshake

The arbiter reads, since it may be root where workers are not. What is broken never gets into the page: those of before
stay in force. Each generation has a page of its own, so that one that is rolled back has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tricorn.config.config import Config
from tricorn.errors import ConfigError
from tricorn.log import Logger
from tricorn.shared_memory import Memory
from tricorn.tls import files, from_settings
from tricorn.tls.plan import Plan
from tricorn.tls.tickets import Tickets
from tricorn.unpatched import time
from tricorn.workers import native

DAY = 86_400
SOON = 14 * DAY
"""Seconds before its end from which on a certificate is warned about."""
SECOND_LOOK = 1.0
"""Seconds after which broken files are looked at again: a certificate and its key are not written at the same time."""
NEVER = float("inf")

Facts = Mapping[str, Any]
"""Facts about a certificate, under the names of `native.check_tls`."""


class Certificates:
    """Certificates of one generation."""

    def __init__(self, plan: Plan, tickets: Tickets, interval: float) -> None:
        """`interval`: seconds between two looks at the files; 0: none."""
        self._plan = plan
        self._tickets = tickets
        self._interval = interval
        self._bundle: files.Bundle = {}
        self._look: files.Look = {}
        self._tried: files.Look = {}
        """Files that were found broken, and are watched for a change."""
        self._next_look = self._next_rotation = self._next_warning = NEVER
        self.facts: tuple[Facts, ...] = ()
        """Facts about the certificates in force."""
        memory = Memory("tricorn-tls", native.tls_page_bytes())
        memory.release()  # it has private keys: nothing but forks gets it
        self.page = memory.view

    def open(self, now: float, log: Logger) -> None:
        """Reads, judges and publishes. Raises ConfigError."""
        self._look = files.look(self._plan)
        self._take(files.read(self._plan), now, log)
        self._next_look = now + self._interval if self._interval else NEVER

    @property
    def end(self) -> int:
        """Expiry of the certificate that ends first, in seconds since 1970."""
        return int(max(0, min(each["not_after"] for each in self.facts)))

    def next_look(self) -> float:
        return min(self._next_look, self._next_rotation, self._next_warning)

    def look(self, now: float, log: Logger) -> None:
        """Does what is due: files that have changed, keys of tickets, and a word about certificates that end."""
        if now >= self._next_look:
            self._next_look = now + self._interval
            self._look_at_files(now, log)
        if now >= self._next_rotation:
            try:
                self._publish(self._bundle, now)
            except ConfigError as error:
                log.error("Could not rotate the TLS ticket keys; still using the previous ones: %s", error)
                self._next_rotation = now + DAY
        if now >= self._next_warning:
            self._next_warning = now + DAY
            self._warn_of_ends(log)

    def _look_at_files(self, now: float, log: Logger) -> None:
        found = files.look(self._plan)
        if found == self._look:
            return
        try:
            self._take(files.read(self._plan), now, log)
        except ConfigError as error:
            if found == self._tried:
                log.error("Could not load the new TLS files; still using the previous certificates: %s", error)
                self._look = found
            else:
                self._tried = found
                self._next_look = min(self._next_look, now + SECOND_LOOK)
        else:
            self._look = found

    def _take(self, bundle: files.Bundle, now: float, log: Logger) -> None:
        with_keys = {**bundle, "ticket_keys": self._ticket_keys(now)}
        try:
            facts = tuple(native.check_tls(with_keys))
        except ValueError as error:
            raise ConfigError(f"{error}") from None
        self._publish(bundle, now)
        for each in facts:
            log.info("TLS: %s", describe(each))
        for warning in _warnings(facts):
            log.warning("%s", warning)
        self.facts = facts
        self._next_warning = now + DAY
        self._warn_of_ends(log)

    def _publish(self, bundle: files.Bundle, now: float) -> None:
        try:
            native.publish_tls(self.page, {**bundle, "ticket_keys": self._ticket_keys(now)})
        except ValueError as error:
            raise ConfigError(f"{error}") from None
        self._bundle = bundle
        lifetime = self._plan.ticket_lifetime
        rotates = lifetime > 0 and not self._plan.ticket_files
        self._next_rotation = self._tickets.at(now, lifetime).since + lifetime / 2 if rotates else NEVER

    def _ticket_keys(self, now: float) -> list[bytes]:
        if self._plan.ticket_lifetime <= 0:
            return []
        if self._plan.ticket_files:
            return files.ticket_keys(self._plan)
        return self._tickets.at(now, self._plan.ticket_lifetime).in_order

    def _warn_of_ends(self, log: Logger) -> None:
        for warning in ends(self.facts, time.time()):
            log.warning("%s", warning)


def make(config: Config, tickets: Tickets, log: Logger) -> Certificates | None:
    """Puts the configuration's certificates in force. Returns None if there are none. Raises ConfigError."""
    if not (config.has_certificate or from_settings.serves(config)):
        return None
    plan, warnings = from_settings.plan(config)
    for warning in warnings:
        log.warning("%s", warning)
    if not from_settings.serves(config):
        log.warning(
            "A certificate is set (from %s), but no address uses TLS: bind = %s.",
            next(config.origin(name) for name in from_settings.CERTIFICATES if not config.is_default(name)),
            ",".join(config.bind),
        )
    made = Certificates(plan, tickets, config.tls_reload)
    made.open(time.monotonic(), log)
    return made


def check(config: Config) -> tuple[str, ...]:
    """Returns the warnings of a start. Raises ConfigError for what a start would refuse; publishes nothing."""
    if not (config.has_certificate or from_settings.serves(config)):
        return ()
    plan, warnings = from_settings.plan(config)
    keys = files.ticket_keys(plan)
    try:
        facts = tuple(native.check_tls({**files.read(plan), "ticket_keys": keys}))
    except ValueError as error:
        raise ConfigError(f"{error}") from None
    return (*warnings, *_warnings(facts), *ends(facts, time.time()))


def describe(facts: Facts) -> str:
    """Describes a certificate for the log, as a client would see it."""
    names = ", ".join(facts["names"]) or "no name"
    return (
        f"{names}: serial {facts['serial']}, valid until {_date(facts['not_after'])}, {facts['key']} ({facts['label']})"
    )


def ends(facts: Iterable[Facts], now: float) -> Iterable[str]:
    """A warning for each certificate that has ended or soon will."""
    for each in facts:
        left = each["not_after"] - now
        if left <= 0:
            yield (
                f"Certificate {each['label']} expired on {_date(each['not_after'])}: clients reject it. Replace the "
                "file; no reload is needed."
            )
        elif left <= SOON:
            yield (
                f"Certificate {each['label']} expires on {_date(each['not_after'])} (in {_days(left)}). Replace the "
                "file; no reload is needed."
            )


def _warnings(facts: Iterable[Facts]) -> Iterable[str]:
    for each in facts:
        for warning in each["warnings"]:
            yield f"Certificate {each['label']}: {warning}."


def _days(seconds: float) -> str:
    days = int(seconds // DAY)
    return "less than a day" if days == 0 else "a day" if days == 1 else f"{days} days"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
