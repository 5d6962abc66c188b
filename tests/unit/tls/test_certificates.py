"""Certificates that the arbiter keeps: when they are published, and what the log says of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tricorn.errors import ConfigError
from tricorn.tls.certificates import DAY, Certificates
from tricorn.tls.plan import Pair, Plan
from tricorn.tls.tickets import Tickets
from tricorn.workers import native

NOW = 1000.0


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda text, *args: self.lines.append(f"{level}: {text % args}")


class Core:
    """What the core's functions are asked for. A file that contains `broken` is."""

    def __init__(self) -> None:
        self.published: list[dict[str, Any]] = []
        self.not_after = time.time() + 90 * DAY
        self.ends: dict[str, float] = {}
        """When certificates end that do not end then, by the name of the file."""
        self.warnings: list[str] = []

    def check_tls(self, bundle: dict[str, Any]) -> list[dict[str, Any]]:
        found = []
        for label, certificate, _, _ in bundle["certificates"]:
            if b"broken" in certificate:
                raise ValueError(f"{label}: no certificate")
            found.append(
                {
                    "label": label,
                    "names": ["localhost"],
                    "serial": certificate.decode(),
                    "not_after": self.ends.get(label, self.not_after),
                    "key": "ECDSA P-256",
                    "warnings": self.warnings,
                }
            )
        return found

    def publish_tls(self, page: object, bundle: dict[str, Any]) -> None:
        self.published.append(bundle)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    core = Core()
    monkeypatch.setattr(native, "check_tls", core.check_tls)
    monkeypatch.setattr(native, "publish_tls", core.publish_tls)
    monkeypatch.setattr(native, "tls_page_bytes", lambda: 4096)
    return core


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "cert.pem"
    file.write_text("1A")
    return file


def make(file: Path, log: Log, interval: float = 5, **more: Any) -> Certificates:
    plan = Plan(**{"certificates": (Pair(str(file), str(file)),), "ticket_lifetime": 100.0, **more})
    made = Certificates(plan, Tickets(), interval)
    made.open(NOW, log)  # type: ignore[arg-type]
    return made


def look(made: Certificates, now: float, log: Log) -> None:
    made.look(now, log)  # type: ignore[arg-type]


def change(file: Path, text: str) -> None:
    """Another file in its place, as programs that renew certificates write one."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.utime(fresh, ns=(len(text), time.time_ns()))
    fresh.rename(file)


def test_what_is_in_force_is_told(core: Core, log: Log, file: Path) -> None:
    core.not_after = 4_000_000_000
    made = make(file, log)
    assert log.lines == [f"info: TLS: localhost: serial 1A, valid until 2096-10-02, ECDSA P-256 ({file})"]
    assert made.facts[0]["serial"] == "1A"
    assert made.end == 4_000_000_000


@pytest.mark.parametrize("first", [0, 1, 2])
def test_of_several_the_one_that_ends_first_is_told(core: Core, log: Log, tmp_path: Path, first: int) -> None:
    files = [tmp_path / f"{number}.pem" for number in range(3)]
    for number, file in enumerate(files):
        file.write_text("1A")
        core.ends[str(file)] = 4_000_000_000 + (number - first) % 3
    made = make(files[0], log, certificates=tuple(Pair(str(file), str(file)) for file in files))
    assert made.end == 4_000_000_000


class TestLook:
    def test_files_are_looked_at_in_time_and_published_when_they_have_changed(
        self, core: Core, log: Log, file: Path
    ) -> None:
        made = make(file, log)
        assert made.next_look() == NOW + 5
        look(made, NOW + 5, log)
        assert (len(core.published), made.next_look()) == (1, NOW + 10)
        change(file, "2B")
        look(made, NOW + 9, log)
        assert len(core.published) == 1, "not before its time"
        look(made, NOW + 10, log)
        assert [bundle["certificates"][0][1] for bundle in core.published] == [b"1A", b"2B"]
        assert "serial 2B" in log.lines[-1]

    def test_0_looks_never(self, core: Core, log: Log, file: Path) -> None:
        made = make(file, log, interval=0, ticket_lifetime=0)
        assert made.next_look() == NOW + DAY  # a word about the end
        change(file, "2B")
        look(made, NOW + 4 * DAY, log)
        assert len(core.published) == 1

    def test_what_is_broken_leaves_those_of_before_in_force_and_is_told_once(
        self, core: Core, log: Log, file: Path
    ) -> None:
        made = make(file, log)
        change(file, "broken")
        for second in range(5, 60):
            look(made, NOW + second, log)
        errors = [line for line in log.lines if line.startswith("error")]
        assert errors == [
            f"error: Could not load the new TLS files; still using the previous certificates: {file}: no certificate"
        ]
        assert made.facts[0]["serial"] == "1A"
        assert all(bundle["certificates"][0][1] == b"1A" for bundle in core.published)
        change(file, "3C")
        look(made, NOW + 65, log)
        assert made.facts[0]["serial"] == "3C"

    def test_a_certificate_that_comes_a_moment_before_its_key_is_no_error(
        self, core: Core, log: Log, file: Path
    ) -> None:
        made = make(file, log)
        change(file, "broken")
        look(made, NOW + 5, log)
        assert made.next_look() == NOW + 6
        change(file, "2B")
        look(made, NOW + 6, log)
        assert made.facts[0]["serial"] == "2B"
        assert not [line for line in log.lines if line.startswith("error")]

    def test_a_start_with_broken_ones_is_refused(self, core: Core, log: Log, file: Path) -> None:
        change(file, "broken")
        with pytest.raises(ConfigError, match="no certificate"):
            make(file, log)
        assert core.published == []


class TestTickets:
    def test_keys_are_changed_each_half_of_the_lifetime(self, core: Core, log: Log, file: Path) -> None:
        made = make(file, log, interval=0)
        assert made.next_look() == NOW + 50
        look(made, NOW + 50, log)
        first, second = (bundle["ticket_keys"] for bundle in core.published)
        assert (second[0], second[1]) == (first[2], first[0])
        assert made.next_look() == NOW + 100
        assert log.lines[1:] == [], "which is no news"

    def test_none_where_sessions_are_not_resumed(self, core: Core, log: Log, file: Path) -> None:
        make(file, log, ticket_lifetime=0)
        assert core.published[0]["ticket_keys"] == []

    def test_those_of_files_are_the_operators(self, core: Core, log: Log, file: Path, tmp_path: Path) -> None:
        key = tmp_path / "ticket.key"
        key.write_bytes(b"k" * 80)
        made = make(file, log, ticket_files=(str(key),))
        look(made, NOW + 200, log)
        assert len(core.published) == 1
        change(key, "K" * 80)
        look(made, NOW + 400, log)
        assert core.published[0]["ticket_keys"] != core.published[1]["ticket_keys"]


class TestWarnings:
    @pytest.mark.parametrize(
        ("days", "words"),
        [
            (-1, "expired on"),
            (0.5, "in less than a day"),
            (1.5, "in a day"),
            (13.5, "in 13 days"),
            (14.5, ""),
        ],
    )
    def test_of_an_end_that_is_near(self, days: float, words: str, core: Core, log: Log, file: Path) -> None:
        core.not_after = time.time() + days * DAY
        make(file, log)
        warnings = [line for line in log.lines if line.startswith("warning")]
        assert len(warnings) == bool(words)
        assert all(words in line and str(file) in line for line in warnings)

    def test_once_a_day(self, core: Core, log: Log, file: Path) -> None:
        core.not_after = time.time() + 3 * DAY
        made = make(file, log, interval=0, ticket_lifetime=0)
        look(made, NOW + DAY, log)
        look(made, NOW + DAY + 1, log)
        look(made, NOW + 2 * DAY, log)
        assert len([line for line in log.lines if line.startswith("warning")]) == 3

    def test_what_the_core_says_is_told_with_the_file(self, core: Core, log: Log, file: Path) -> None:
        core.warnings = ["it is odd"]
        make(file, log)
        assert f"warning: Certificate {file}: it is odd." in log.lines
