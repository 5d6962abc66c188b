"""What every request gets, whatever the wire."""

from __future__ import annotations

import io
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tricorn.config.resolve import resolve
from tricorn.gateway.wsgi import ErrorStream, FileWrapper, base_environ
from tricorn.log import Logger, make

from tests.harness import until
from tests.harness.core import serving


@pytest.fixture
def log() -> Logger:
    return make(resolve([]))


class TestFileWrapper:
    def test_it_reads_in_blocks(self) -> None:
        assert list(FileWrapper(io.BytesIO(b"abcde"), 2)) == [b"ab", b"cd", b"e"]

    def test_the_default_block_is_gunicorns(self) -> None:
        assert FileWrapper(io.BytesIO()).blksize == 8192

    def test_it_closes_the_file(self) -> None:
        file = io.BytesIO()
        FileWrapper(file).close()
        assert file.closed

    def test_it_has_no_close_if_the_file_has_none(self) -> None:
        class Bare:
            def read(self, size: int, /) -> bytes:
                return b""

        assert not hasattr(FileWrapper(Bare()), "close")


def test_the_facts_about_processes_and_threads(log: Logger) -> None:
    environ = base_environ(log, multithread=True, multiprocess=False, worker=2)
    assert environ["wsgi.multithread"] is True
    assert environ["wsgi.multiprocess"] is False
    assert environ["wsgi.run_once"] is False
    assert environ["wsgi.version"] == (1, 0)
    assert environ["wsgi.file_wrapper"] is FileWrapper
    assert environ["SERVER_SOFTWARE"] == "gunicorn/27.0.1 (tricorn/0.1.0)"
    assert environ["tricorn.worker"] == 2


def test_script_name_comes_from_the_environment(log: Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCRIPT_NAME", raising=False)
    assert base_environ(log, multithread=False, multiprocess=False, worker=2)["SCRIPT_NAME"] == ""
    monkeypatch.setenv("SCRIPT_NAME", "/app")
    assert base_environ(log, multithread=False, multiprocess=False, worker=2)["SCRIPT_NAME"] == "/app"


def test_what_is_written_to_wsgi_errors_stands_in_the_error_log(capsys: pytest.CaptureFixture[str]) -> None:
    stream = ErrorStream(make(resolve([])))
    stream.write("one\n")
    stream.writelines(["two\n", "three\n"])
    stream.flush()
    assert capsys.readouterr().err == "one\ntwo\nthree\n"


class Keeper:
    """An application that keeps what `start_response` has returned to the request for `/keep`."""

    def __init__(self) -> None:
        self.kept: list[Callable[[bytes], object]] = []
        self.refused: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", [("Content-Length", "3")])
        for other in self.kept:
            try:
                other(b"bad")
            except RuntimeError as error:
                self.refused.append(str(error))
        if environ["PATH_INFO"] == "/keep":
            self.kept.append(write)
        write(b"own")
        return []


def test_what_an_application_keeps_writes_to_no_other_request() -> None:
    keeper = Keeper()
    with serving(keeper) as core, core.wire() as wire:
        assert [wire.get(path).body for path in ("/", "/keep", "/", "/")] == [b"own"] * 4
    assert keeper.refused == ["the request this belongs to is over"] * 2


def test_what_an_application_has_kept_is_freed_when_it_lets_go() -> None:
    keeper = Keeper()
    with serving(keeper) as core, core.wire() as wire:
        wire.get("/keep")
        wire.get("/")
        kept = weakref.ref(keeper.kept.pop())
        until(lambda: kept() is None, "the handle of the request is gone, and `write` with it")
