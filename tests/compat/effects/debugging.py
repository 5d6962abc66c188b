"""Debugging: an effect for each setting."""

from __future__ import annotations

import re
from pathlib import Path

from tests.compat.effects.common import fact_site, facts
from tests.harness import Site, module, until


def sees_check_config(directory: Path) -> None:
    files = {"mine.py": module("fine")}
    with Site(app="mine:application", files=files, extra=("--check-config",), wait=False) as server:
        assert server.wait_exit() == 0
        assert "Listening" not in server.log.text


def sees_print_config(directory: Path) -> None:
    with Site("workers = 3\nprint_config = True\n", wait=False) as server:
        assert server.wait_exit() == 0
        (line,) = server.out.matching(r"^\s*workers\b.*")
        assert re.search(r"\b3\b", line[0])
        assert "conf.py" in line[0], "where the value comes from"


def sees_spew(directory: Path) -> None:
    with fact_site("spew = True\n", wait=False) as server:
        server.wait_ready()
        assert facts(server)["traced"]
        assert "facts:" in server.out.text + server.log.text or "facts.py" in server.out.text + server.log.text


def sees_reload(directory: Path) -> None:
    with Site("reload = True\n", app="mine:application", files={"mine.py": module("one")}) as server:
        worker = server.worker_pid()
        until(lambda: edited(server, "mine.py") and worker not in server.worker_pids(), "a reload", every=2.5)


def edited(server: Site, name: str) -> bool:
    path = server.directory / name
    path.write_text(path.read_text() + "\n")
    return True


def sees_reload_engine(directory: Path) -> None:
    with Site(
        "reload = True\nreload_engine = 'poll'\n", app="mine:application", files={"mine.py": module("1")}
    ) as server:
        worker = server.worker_pid()
        until(lambda: edited(server, "mine.py") and worker not in server.worker_pids(), "a reload", every=0.5)
    with Site("reload_engine = 'no_such_engine'\n", wait=False) as server:
        assert server.wait_exit() in (1, 2)
        assert "no_such_engine" in server.log.text


def sees_reload_extra_files(directory: Path) -> None:
    (directory / "page.html").touch()
    with Site(f"reload = True\nreload_engine = 'poll'\nreload_extra_files = ['{directory}/*.html']\n") as server:
        server.get("/hello")
        worker = server.worker_pid()
        page = directory / "page.html"
        until(
            lambda: page.write_text(page.read_text() + ".") and worker not in server.worker_pids(),
            "a reload",
            within=15,
            every=0.5,
        )
