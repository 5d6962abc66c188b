"""What of a process waits on no thread: looked at by its Python, and written within bounds."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.metrics.scoreboard import Reports
from tricorn.unpatched import os
from tricorn.workers import waiting


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "stacks", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def read(descriptor: int) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Reports(descriptor).waiting())
    return told


def running(slot: int, text: str = "GET /") -> Any:
    return SimpleNamespace(slot=slot, started=70 + slot, text=text)


async def pieces() -> AsyncIterator[int]:
    await asyncio.sleep(60)
    yield 1


async def handler() -> None:
    async for _ in pieces():
        pass


def test_a_task_is_told_through_all_that_it_waits_for(file: int) -> None:
    async def run() -> None:
        task, other = asyncio.ensure_future(handler()), asyncio.ensure_future(handler())
        await asyncio.sleep(0)
        waiting.write(file, [(3, task)], [running(3)], sys._getframe())
        for each in (task, other):
            each.cancel()

    asyncio.run(run())
    first, *others = read(file)["stacks"]
    assert (first["place"], first["start"], first["running"]) == (3, 73, False)
    names = [line.rpartition(" ")[2] for line in first["stack"]]
    assert names == ["sleep", "pieces", "handler"]
    assert {(each["place"], each["running"]) for each in others} == {(None, False), (None, True)}


def test_there_are_so_many_and_no_more_and_requests_come_first(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        tasks = [asyncio.ensure_future(handler()) for _ in range(30)]
        await asyncio.sleep(0)
        waiting.write(file, [(1, tasks[17])], [running(1)], None)
        for each in tasks:
            each.cancel()

    monkeypatch.setattr(waiting, "MOST", 10)
    asyncio.run(run())
    told = read(file)
    assert (len(told["stacks"]), told["left"], told["stacks"][0]["place"]) == (10, 20, 1)
    monkeypatch.setattr(waiting, "MOST_BYTES", 1500)
    asyncio.run(run())
    told = read(file)
    assert told["stacks"][0]["place"] == 1
    assert len(told["stacks"]) + told["left"] == 30


def test_a_place_whose_call_has_ended_is_none(file: int) -> None:
    async def run() -> None:
        task = asyncio.ensure_future(handler())
        await asyncio.sleep(0)
        waiting.write(file, [(3, task)], [running(4)], None)
        task.cancel()

    asyncio.run(run())
    assert {each["place"] for each in read(file)["stacks"]} == {None}


def test_a_greenlet_is_told_by_the_environ_that_it_was_called_with(file: int) -> None:
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()

    def application(environ: dict[str, Any]) -> None:
        main.switch()

    environ = {"wsgi.input": None, "REQUEST_METHOD": "GET", "RAW_URI": "/slow"}
    waits = greenlet.greenlet(application)
    waits.switch(environ)
    for rows, place in (
        ([running(2, "GET /slow"), running(3, "GET /")], 2),
        ([running(2, "GET /slow"), running(3, "GET /slow")], None),
    ):
        os.ftruncate(file, 0)
        waiting.write(file, [], rows, None)
        found = [each for each in read(file)["stacks"] if each["of"] == "greenlet" and each["stack"]]
        assert [each["place"] for each in found if "in application" in each["stack"][0]] == [place]
    waits.throw(greenlet.GreenletExit)
