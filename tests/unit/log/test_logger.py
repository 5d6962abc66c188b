"""The error log: the lines scrapers match, and gunicorn's API around them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tricorn import log as logs
from tricorn.config.config import Config
from tricorn.errors import ConfigError

Configure = Callable[..., Config]
STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[(\d+)\]"


def test_a_line_looks_like_gunicorns(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    logs.make(configure()).info("Booting worker with pid: %s", 7)
    found = re.fullmatch(STAMP + r" \[INFO\] Booting worker with pid: 7\n", capsys.readouterr().err)
    assert found is not None
    assert int(found[1]) == os.getpid()


def test_what_is_below_the_level_is_not_written(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.make(configure(loglevel="warning"))
    log.info("quiet")
    log.warning("loud")
    assert "quiet" not in capsys.readouterr().err


@pytest.mark.parametrize("level", ["critical", "error", "warning", "info", "debug"])
def test_each_level_has_its_method(configure: Configure, capsys: pytest.CaptureFixture[str], level: str) -> None:
    log = logs.make(configure(loglevel="debug"))
    getattr(log, level)("a %s", "word")
    log.log(level, "another")
    log.log(getattr(logging, level.upper()), "third")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(f"[{level.upper()}] ")[2] for line in lines] == ["a word", "another", "third"]


def test_an_exception_comes_with_its_traceback(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.make(configure())
    try:
        raise KeyError("marker")
    except KeyError:
        log.exception("Error handling request %s", "/")
    written = capsys.readouterr().err
    assert "[ERROR] Error handling request /\nTraceback" in written
    assert written.endswith("KeyError: 'marker'\n")


def test_a_message_that_does_not_fit_its_arguments_is_written_all_the_same(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.make(configure()).info("%d workers", "many")
    written = capsys.readouterr().err
    assert "[INFO] %d workers ('many',) (cannot be formatted: TypeError" in written
    assert "Traceback" not in written


def test_the_attributes_that_foreign_code_reads(configure: Configure) -> None:
    config = configure(loglevel="debug", accesslog="-")
    log = logs.make(config)
    assert log.cfg is config
    assert log.loglevel == logging.DEBUG
    assert log.error_log.name == "gunicorn.error"
    assert log.access_log.name == "gunicorn.access"
    assert log.error_log.handlers == log.error_handlers
    assert log.access_log.handlers == log.access_handlers
    assert log.logfile is None
    with log.lock:
        pass


def test_what_is_logged_under_our_names_is_in_the_log(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    logs.make(configure(loglevel="debug", accesslog="-"))
    logging.getLogger("tricorn").warning("of the package")
    logging.getLogger("tricorn.error").debug("an error")
    logging.getLogger("tricorn.access").info("an access")
    written = capsys.readouterr()
    assert written.err.endswith("[DEBUG] an error\n")
    assert "[WARNING] of the package" not in written.err
    assert written.out == "an access\n"


def test_an_applications_configuration_that_names_the_log_does_not_disable_it(configure: Configure) -> None:
    """Under its second name it must not count as a logger that the application did not name."""
    from logging.config import dictConfig

    log = logs.make(configure())
    dictConfig({"version": 1, "disable_existing_loggers": True, "loggers": {"gunicorn.error": {"level": "INFO"}}})
    assert not log.error_log.disabled


def test_an_unknown_level_is_refused_by_its_setting(configure: Configure) -> None:
    with pytest.raises(ConfigError, match="loglevel"):
        configure(loglevel="chatty")


class TestFiles:
    def test_it_writes_to_the_file(self, configure: Configure, tmp_path: Path) -> None:
        log = logs.make(configure(errorlog=str(tmp_path / "error.log")))
        log.info("é \udc80")
        assert (tmp_path / "error.log").read_text().endswith("[INFO] é \\udc80\n")

    def test_a_file_that_cannot_be_written_is_the_operators_to_mend(self, configure: Configure) -> None:
        with pytest.raises(ConfigError, match=r"\(errorlog\) cannot be written: No such file or directory"):
            logs.make(configure(errorlog="/no/such/directory/error.log"))
        with pytest.raises(ConfigError, match=r"\(accesslog\) cannot be written: Is a directory"):
            logs.make(configure(accesslog="/"))

    def test_the_application_does_not_inherit_them(self, configure: Configure, tmp_path: Path) -> None:
        log = logs.make(configure(errorlog=str(tmp_path / "e"), accesslog=str(tmp_path / "a")))
        log.close_on_exec()
        for handler in (*log.error_handlers, *log.access_handlers):
            assert not os.get_inheritable(handler.stream.fileno())  # type: ignore[attr-defined]

    def test_they_belong_to_the_workers_user(
        self, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[tuple[int, int]] = []
        monkeypatch.setattr("tricorn.log.stream.os.fchown", lambda descriptor, user, group: given.append((user, group)))
        log = logs.make(configure(errorlog=str(tmp_path / "e"), accesslog=str(tmp_path / "a"), user=4711, group=4712))
        assert given == [(4711, 4712)] * 2
        log.reopen_files()
        assert given == [(4711, 4712)] * 4

    def test_a_device_stays_everybodys(self, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tricorn.log.stream.os.fchown", lambda *_: pytest.fail("/dev/null was given away"))
        logs.make(configure(errorlog="/dev/null", user=4711)).info("nowhere")


class TestStreams:
    def test_log_streams_split(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_streams="split", loglevel="debug"))
        for level in ("debug", "info", "warning", "error", "critical"):
            getattr(log, level)("text of %s", level)
        log.write("raw\n")
        written = capsys.readouterr()
        assert re.findall(r"text of (\w+)|(raw)", written.out) == [("debug", ""), ("info", "")]
        assert [first or second for first, second in re.findall(r"text of (\w+)|(raw)", written.err)] == [
            *("warning", "error", "critical", "raw")
        ]

    def test_split_concerns_the_console_only(self, configure: Configure, tmp_path: Path) -> None:
        log = logs.make(configure(log_streams="split", errorlog=str(tmp_path / "e")))
        log.info("one")
        log.error("two")
        assert len((tmp_path / "e").read_text().splitlines()) == 2


class TestJson:
    def lines(self, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
        written = capsys.readouterr().err
        assert written.isascii()
        assert written.endswith("\n")
        return [json.loads(line) for line in written.splitlines()]

    def test_json_log_line(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))
        log.info('a "%s"\n\u2028é\x1b', "word")
        (line,) = self.lines(capsys)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", line.pop("time"))
        assert line == {
            "level": "INFO",
            "pid": os.getpid(),
            "logger": "gunicorn.error",
            "message": 'a "word"\n\u2028é\x1b',
        }

    def test_exceptions_and_stacks_are_inside(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))
        try:
            raise ValueError("marker")
        except ValueError:
            log.exception("failed", stack_info=True)
        (line,) = self.lines(capsys)
        assert line["exception"].startswith("Traceback")
        assert line["exception"].endswith("ValueError: marker")
        assert line["stack"].startswith("Stack")

    def test_what_the_caller_adds(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))
        log.info("x", extra={"shard": 7, "pid": "theirs", "nan": float("nan")})
        (line,) = self.lines(capsys)
        assert line["shard"] == 7
        assert line["nan"] == "nan"
        assert line["pid"] == os.getpid()
        assert line["pid_"] == "theirs"

    def test_values_that_json_does_not_know(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))

        class Broken:
            def __str__(self) -> str:
                raise RuntimeError

        circle: list[Any] = []
        circle.append(circle)
        log.info("x", extra={"broken": Broken(), "circle": circle, "keys": {(1, 2): 3}})
        log.info(Broken())
        log.info("%d", "x")
        assert len(self.lines(capsys)) == 3

    def test_text_of_wsgi_errors_becomes_lines(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))
        print("printed", 1, file=log)  # type: ignore[call-overload]
        log.write("first\nsecond\n")
        log.write("begun")
        log.write(", ended\n\n")
        log.write("left over")
        log.flush()
        log.flush()
        found = [(line["logger"], line["level"], line["message"]) for line in self.lines(capsys)]
        messages = ["printed 1", "first\nsecond", "begun, ended\n", "left over"]
        assert found == [("wsgi.errors", "ERROR", message) for message in messages]

    def test_a_line_without_end_is_bounded(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(log_format="json"))
        log.write("x" * 100_000)
        assert len(self.lines(capsys)[0]["message"]) == 100_000


class TestTroubles:
    """The log is not worth a request: nothing that happens under it comes up."""

    def dead_pipe(self, monkeypatch: pytest.MonkeyPatch, log: logs.Logger) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        monkeypatch.setattr(log.error_handlers[0].stream, "_descriptor", writer)  # type: ignore[attr-defined]

    def test_a_dead_pipe(
        self,
        configure: Configure,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        log = logs.make(configure(errorlog=str(tmp_path / "e")))
        with monkeypatch.context() as context:
            self.dead_pipe(context, log)
            for _ in range(3):
                log.error("lost")
                log.write("lost\n")
                log.flush()
        log.info("found")
        assert capsys.readouterr() == ("", "")
        told, line = (tmp_path / "e").read_text().splitlines()
        assert "6 line(s) of this log were lost: [Errno 32] Broken pipe" in told
        assert line.endswith("found")

    def test_a_full_disk(self, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
        log = logs.make(configure(errorlog="/dev/full", accesslog="/dev/full"))
        for _ in range(3):
            log.error("lost")
            log.write("lost\n")
        log.access_log.info("lost")
        log.flush()
        assert capsys.readouterr() == ("", "")

    def test_a_closed_stream(self, configure: Configure, tmp_path: Path) -> None:
        log = logs.make(configure(errorlog=str(tmp_path / "e")))
        log.error_handlers[0].close()
        log.info("reopened")
        assert "reopened" in (tmp_path / "e").read_text()

    def test_a_pipe_that_somebody_made_non_blocking(self, configure: Configure, tmp_path: Path) -> None:
        import threading

        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        log = logs.make(configure(errorlog=str(fifo)))
        os.set_blocking(log.error_handlers[0].stream.fileno(), False)  # type: ignore[attr-defined]
        os.set_blocking(reader, True)
        read: list[int] = []
        thread = threading.Thread(target=lambda: read.extend(len(os.read(reader, 65536)) for _ in range(6)))
        thread.start()
        log.info("x" * 200_000)
        log.error_handlers[0].close()
        thread.join(5)
        assert sum(read) > 200_000
        os.close(reader)
