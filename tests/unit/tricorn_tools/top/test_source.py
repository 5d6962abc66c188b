"""Looks at pages that a real core, the arbiter, or a worker gone mad has written."""

from __future__ import annotations

import mmap
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tricorn import _core
from tricorn.control.client import Refused, Row, TooLate
from tricorn.metrics.scoreboard import Ledger, Scoreboard
from tricorn_tools.top import change, memory, screen, source
from tricorn_tools.top.keys import View
from tricorn_tools.top.look import Memory
from tricorn_tools.top.memory import Memories
from tricorn_tools.top.screen import Scene

from tests.harness.page import PAGES, begin, put

SIZE, COUNT = 8192, 4
SESSIONS_LEARNED = 469
"""Its word of a page."""
STATUS = {
    "name": "shop",
    "version": "0.2.0",
    "pid": 10,
    "class": "gthread",
    "generation": 2,
    "workers": {"target": 2},
    "uptime": 12.5,
    "ready": True,
    "state": "serving",
    "reloading": False,
    "successor": None,
}


def row(number: int, **given: Any) -> dict[str, Any]:
    common = {"nr": number, "pid": 100 + number, "slot": number, "generation": 2, "state": "serving", "age": 3.0}
    return {**common, "stuck": 0, "note": None, **given}


class Made:
    """A server without processes. Its pages are mapped twice: the one who looks has them read-only."""

    def __init__(self, *rows: dict[str, Any], sealed: bool = True) -> None:
        self.rows, self.sealed, self.asked = list(rows), sealed, list[str]()
        self.is_silent = False
        self.routes: dict[str, Any] | Refused = {"counted": True, "routes": []}
        self.sessions: list[dict[str, Any]] | Refused = []
        self._mappings = []
        for name, size in (("region", SIZE * COUNT), ("group", _core.GROUP_BYTES), ("ledger", _core.LEDGER_BYTES)):
            descriptor = os.memfd_create(name)
            os.ftruncate(descriptor, size)
            self._mappings.append((mmap.mmap(descriptor, size), mmap.mmap(descriptor, size, prot=mmap.PROT_READ)))
            os.close(descriptor)
        self.written = [memoryview(writable) for writable, _ in self._mappings]
        self.region, self.group, self.ledger = (readable for _, readable in self._mappings)
        self.size, self.count = SIZE, COUNT
        self.written[1].cast("Q")[PAGES] = COUNT
        self.workers: list[Row] = []

    def words(self, page: int) -> memoryview:
        return self.written[0][page * SIZE : (page + 1) * SIZE].cast("Q")

    def ask(self, word: str, **arguments: object) -> dict[str, Any]:
        self.asked.append(word)
        if self.is_silent:
            raise TooLate("not within 2 s")
        if word == "status":
            return STATUS
        if word == "routes":
            if isinstance(self.routes, Refused):
                raise self.routes
            return self.routes
        if word == "sessions":
            if isinstance(self.sessions, Refused):
                raise self.sessions
            return {"followed": True, "workers": self.sessions}
        pages = {"threads", "oldest_wait", "figures", "statuses"} if arguments["brief"] else set()
        return {"workers": [{name: each[name] for name in each.keys() - pages} for each in self.rows]}

    def pages(self) -> Any:
        self.asked.append("pages")
        if not self.sealed:
            raise Refused("refused", "the pages cannot be sealed here")
        self.workers = [
            Row(slot=each["slot"], pid=each["pid"], nr=each["nr"], generation=2, state="serving", page=each["nr"] - 1)
            for each in self.rows
        ]
        return self

    def close(self) -> None:
        self.asked.append("close")


def source_of(made: Made, tmp_path: Path) -> source.Source:
    return source.Source(made, Memories(tmp_path))


@pytest.mark.parametrize(("canary", "note"), [(None, "reloading"), ({"workers": 1}, "comparing canaries")])
def test_a_reload_is_told_and_whether_canaries_serve(
    canary: object, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATUS, "reloading", True)
    monkeypatch.setitem(STATUS, "canary", canary)
    assert note in source_of(Made(row(1)), tmp_path).look().server.notes


def test_a_look_has_what_the_pages_have(tmp_path: Path) -> None:
    made = Made(row(1), row(2, state="retiring", stuck=1, note="timeout"))
    first = made.words(0)
    begin(first, entries=2)
    first[9], first[10], first[17], first[33] = 2, 1, 40, 39
    put(first, 1, time.monotonic_ns() - 2_000_000_000, b"GET /slow\x1b[2J")
    looked = source_of(made, tmp_path).look()
    one, two = looked.workers
    assert one.page is not None
    assert (one.page.threads, one.page.figures["in_flight"], one.page.figures["queued"]) == (4, 2, 1)
    (request,) = one.page.requests
    assert (request.slot, request.text) == (1, "GET /slow?[2J")
    assert 2 <= request.age < 60
    assert (two.page, two.entry.note, two.entry.phase) == (None, "1 stuck; timeout", "retiring")
    assert looked.totals is not None
    assert (looked.totals.figures["requests"], looked.totals.statuses[1]) == (40, 39)
    assert (looked.server.name, looked.server.wanted, looked.server.is_ready) == ("shop", 2, True)


def test_counts_do_not_fall_when_a_worker_is_gone(tmp_path: Path) -> None:
    made = Made(row(1))
    begin(made.words(0))
    made.words(0)[17] = 40
    looks = source_of(made, tmp_path)
    first = looks.look(lambda: 1.0)
    made.words(0)[17] = 42
    Ledger(made.written[2]).bury(Scoreboard(made.written[0][:SIZE]))
    made.rows = [row(2)]
    begin(made.words(1))
    made.words(1)[17] = 5
    second = looks.look(lambda: 2.0)
    changes = change.between(first, second)
    assert changes.all.requests == 7.0
    assert changes.workers[2].requests is None


def test_the_table_of_pages_is_asked_for_when_there_is_somebody_new(tmp_path: Path) -> None:
    made = Made(row(1))
    looks = source_of(made, tmp_path)
    for _ in range(3):
        looks.look()
    assert made.asked.count("pages") == 1
    made.rows = [row(1), row(2)]
    looks.look()
    looks.look()
    assert made.asked.count("pages") == 2
    looks.close()
    assert made.asked[-1] == "close"


def test_an_arbiter_that_is_silent_leaves_the_pages(tmp_path: Path) -> None:
    made = Made(row(1))
    begin(made.words(0))
    looks = source_of(made, tmp_path)
    made.is_silent = True
    with pytest.raises(TooLate):
        looks.look()
    made.is_silent = False
    before = looks.look(lambda: 1.0)
    made.is_silent = True
    made.words(0)[17] = 5
    silent = looks.look(lambda: 2.0)
    assert silent.missing[0] == source.SILENT
    assert change.between(before, silent).all.requests == 5.0
    made.is_silent = False
    assert source.SILENT not in looks.look().missing


def test_pages_that_are_not_handed_out_leave_what_the_arbiter_says(tmp_path: Path) -> None:
    figures = {"in_flight": 3, "queued": 0, "requests": 10, "cpu_nanoseconds": 0}
    told = {"threads": 8, "oldest_wait": 0.0, "figures": figures}
    statuses = dict.fromkeys(("1xx", "2xx", "3xx", "4xx", "5xx"), 0)
    made = Made(row(1, statuses=statuses, **told), row(2), sealed=False)
    looks = source_of(made, tmp_path)
    first = looks.look(lambda: 1.0)
    figures["requests"] = 16
    made.rows[0]["figures"] = dict(figures)
    second = looks.look(lambda: 3.0)
    assert made.asked.count("pages") == 1, "one refusal is enough"
    assert "the pages cannot be sealed here" in second.missing[0]
    assert second.workers[0].page is not None
    assert second.workers[0].page.figures["in_flight"] == 3
    assert second.workers[1].page is None
    assert first.totals is not None


def test_sessions_are_asked_for_where_a_worker_has_had_some(tmp_path: Path) -> None:
    made = Made(row(1), row(2))
    for page in (0, 1):
        begin(made.words(page))
    looks = source_of(made, tmp_path)
    made.sessions = [{"slot": 1, "pid": 101, "sessions": 7}]
    assert [worker.sessions for worker in looks.look().workers] == [None, None]
    assert "sessions" not in made.asked
    made.words(1)[SESSIONS_LEARNED] = 1
    assert [worker.sessions for worker in looks.look().workers] == [7, None]
    made.sessions = Refused("unknown", "Unknown command 'sessions'")
    assert [worker.sessions for worker in looks.look().workers] == [None, None], "an older server"
    made.is_silent = True
    assert looks.look().missing[0] == source.SILENT


def test_rubbish_in_pages_stops_nothing(tmp_path: Path) -> None:
    """Random bytes, bits that are all set, and words that almost make sense, in pages and ledger."""
    made = Made(*map(row, (1, 2, 3, 4)))
    looks = source_of(made, tmp_path)
    draw = random.Random(11)
    before = None
    for turn in range(40):
        for written in made.written[:: 2 if turn % 2 else 1]:
            written[:] = draw.randbytes(len(written)) if turn % 3 else b"\xff" * len(written)
        for number in range(COUNT):
            words = made.words(number)
            if turn % 4:  # a page that claims to be one
                begin(words, entries=draw.getrandbits(64))
                words[1], words[3] = draw.choice((6, 6, 6, 7)), draw.getrandbits(3)
        looked = looks.look()
        changes = change.between(before, looked)
        made_scene = Scene(looked, changes, View(shows_all=True))
        for line in screen.render(made_scene, 80, 24):
            assert sum(len(span.text) for span in line) <= 80
            assert all(" " <= letter <= "~" or letter in "·↑↓" for span in line for letter in span.text)
        screen.plain(made_scene, None)
        before = looked


def test_what_workers_say_of_their_memory_stands_where_proc_does_not_have_them(tmp_path: Path) -> None:
    figures = {"in_flight": 0, "requests": 0}
    told = {"threads": 1, "oldest_wait": 0.0, "statuses": dict.fromkeys(("1xx", "2xx", "3xx", "4xx", "5xx"), 0)}
    rows = [row(1, figures={**figures, "resident_bytes": 7}, **told), row(2, figures=figures, **told)]
    rows.append(row(3, figures={**figures, "resident_bytes": 2**64 - 1}, **told))
    looked = source_of(Made(*rows, sealed=False), tmp_path).look()
    assert [worker.memory for worker in looked.workers] == [Memory(7), None, None]
    assert looked.missing[1] == memory.ELSEWHERE


def test_a_mold_is_told_with_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "50"
    folder.mkdir()
    (folder / "stat").write_text("50 (tricorn) S 10 1 1 0 -1\n")
    (folder / "statm").write_text("1000 7 50 1 0 200 0\n")
    (folder / "smaps_rollup").write_text("Pss:  5 kB\nPrivate_Dirty:  3 kB\n")
    made = Made(row(1))
    assert source_of(made, tmp_path).look().mold is None
    monkeypatch.setitem(STATUS, "mold", {"pid": 50, "state": "serving", "age": 4.0})
    looked = source_of(made, tmp_path).look()
    assert looked.mold is not None
    assert (looked.mold.entry.kind, looked.mold.entry.generation, looked.mold.entry.age) == ("mold", 2, 4.0)
    assert looked.mold.memory == Memory(7 * memory.PAGE, 5 << 10, 3 << 10)
    assert [worker.entry.number for worker in looked.workers] == [1]
    monkeypatch.setitem(STATUS, "mold", {"pid": None, "state": "booting", "age": 4.0})
    assert source_of(made, tmp_path).look().mold is None


def test_a_page_of_another_layout_is_named(tmp_path: Path) -> None:
    made = Made(row(1))
    begin(made.words(0))
    made.words(0)[1] = 999
    looked = source_of(made, tmp_path).look()
    assert looked.workers[0].page is None
    assert looked.missing[-1] == "worker 1: could not read its page (a scoreboard of layout 999)"


def test_a_place_beyond_the_region_is_none(tmp_path: Path) -> None:
    made = Made(row(1), row(9))
    looked = source_of(made, tmp_path).look()
    assert [worker.entry.page for worker in looked.workers] == [0, None]


def test_routes_are_told_when_they_are_asked_for_or_why_they_are_not(tmp_path: Path) -> None:
    made = Made(row(1))
    looks = source_of(made, tmp_path)
    times = {f"{name}_seconds": 0.25 for name in ("told", "cpu", "blocked", "yielded", "delayed")}
    told = {"route": "/\x1b[31m", "requests": 4, "errors": 1, "seconds": 2, "buckets": [4, 0], **times}
    made.routes = {"counted": True, "routes": [told]}
    assert looks.look().routes is None
    assert "routes" not in made.asked
    looked = looks.look(routes=True)
    assert looked.routes is not None
    (found,) = looked.routes
    assert (found.name, found.requests, found.seconds, found.blocked) == ("/?[31m", 4, 2.0, 0.25)
    for answer, sentence in (
        ({"counted": False, "routes": []}, "Route metrics are disabled (route_metrics = 0)"),
        (Refused("unknown", "Unknown command 'routes'"), "No routes: not supported by this server"),
        (Refused("denied", "uid 33 may not"), "No routes: uid 33 may not"),
    ):
        made.routes = answer  # type: ignore[assignment]
        looked = looks.look(routes=True)
        assert looked.routes is None
        assert sentence in looked.missing
    made.is_silent = True
    assert looks.look(routes=True).missing[0] == source.SILENT
