"""What every request gets, whatever the wire."""

from __future__ import annotations

import io

import pytest
from tricorn.config.resolve import resolve
from tricorn.gateway.wsgi import ErrorStream, FileWrapper, base_environ
from tricorn.log import Logger, make


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
