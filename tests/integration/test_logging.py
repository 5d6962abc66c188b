"""The logs of a running server: where they go, in which form, and that nothing under them reaches a request."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ALL_CLASSES, APPS, KINDS, REFERENCE, THREAD_CLASSES, Server, command, until
from tests.harness.server import free_port, run

APP = "logging_app:application"
STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[\d+\] "


def server(conf: Path | None = None, **options: Any) -> Server:
    extra = ["-c", str(conf)] if conf else []
    return Server(APP, extra=[*extra, *options.pop("extra", [])], **options)


def gallery(conf: Path, **options: Any) -> Server:
    """With an application that every class has."""
    return Server(extra=["-c", str(conf)], **options)


def config(directory: Path, text: str, name: str = "conf.py") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def serves(running: Server) -> None:
    """Signals may come from here on: the arbiter and its only worker listen to them."""
    until(running._accepts, "the server accepts connections")
    assert running.get("/pid").status == 200


def wait_for(path: Path, pattern: str, count: int = 1) -> str:
    """The text of a file once it has so many lines like `pattern`."""

    def found() -> str:
        text = path.read_text() if path.exists() else ""
        return text if len(re.findall(pattern, text, re.MULTILINE)) >= count else ""

    try:
        return until(found, f"{count} × {pattern!r} in {path.name}")
    except AssertionError as missing:
        raise AssertionError(f"{missing}; it has:\n{path.read_text() if path.exists() else '(no file)'}") from None


DICTIONARY = """
logconfig_dict = {{
    "version": 1,
    "formatters": {{"mine": {{"format": "mine|%(name)s|%(levelname)s|%(message)s"}}}},
    "handlers": {{
        "errors": {{"class": "logging.FileHandler", "filename": "{0}/errors", "formatter": "mine"}},
        "accesses": {{"class": "logging.FileHandler", "filename": "{0}/accesses", "formatter": "mine"}},
    }},
    "root": {{"level": "INFO", "handlers": []}},
    "loggers": {{
        "gunicorn.error": {{"level": "INFO", "handlers": ["errors"], "propagate": False}},
        "gunicorn.access": {{"level": "INFO", "handlers": ["accesses"], "propagate": False}},
    }},
}}
"""

INI = """
[loggers]
keys=root,error,access
[handlers]
keys=errors,accesses
[formatters]
keys=mine
[logger_root]
level=INFO
handlers=
[logger_error]
level=INFO
handlers=errors
qualname=gunicorn.error
propagate=0
[logger_access]
level=INFO
handlers=accesses
qualname=gunicorn.access
propagate=0
[handler_errors]
class=FileHandler
formatter=mine
args=('%(here)s/errors',)
[handler_accesses]
class=FileHandler
formatter=mine
args=('%(here)s/accesses',)
[formatter_mine]
format=mine|%(name)s|%(levelname)s|%(message)s
"""


class TestErrorLog:
    @THREAD_CLASSES
    def test_logconfig_file(self, tmp_path: Path, worker_class: str) -> None:
        path = tmp_path / "error.log"
        started = server(worker_class=worker_class, wait=False, error_logfile=path)
        with started as running:
            wait_for(path, STAMP + r"\[INFO\] Booting worker with pid: \d+$")
            serves(running)
            running.get("/errors?said")
            running.get("/raise?marker")
            wait_for(path, "^said to wsgi.errors\nin two lines$")
            wait_for(path, "^ValueError: marker$")
        assert re.search(STAMP + r"\[INFO\] Shutting down: Master", path.read_text())
        assert running.log.text == ""

    def test_one_that_cannot_be_written(self) -> None:
        done = run("-b", f"127.0.0.1:{free_port()}", "--error-logfile", "/no/such/directory/log", APP)
        assert done.returncode == 1
        assert "/no/such/directory/log" in done.stderr
        if not REFERENCE:
            assert "Traceback" not in done.stderr
            assert "No such file or directory" in done.stderr

    def test_log_levels(self) -> None:
        with server(wait=False, log_level="warning") as running:
            serves(running)
            running.get("/logging?quiet")
            running.get("/errors?loud")
            running.log.wait("loud to wsgi.errors")
            assert not running.log.matching("Booting|quiet")


class TestCapture:
    @KINDS
    def test_what_the_application_prints(self, tmp_path: Path, worker_class: str) -> None:
        path = tmp_path / "error.log"
        with server(worker_class=worker_class, wait=False, error_logfile=path, capture_output=True) as running:
            serves(running)
            running.get("/print?words")
            for how in ("printed", "to stderr", "by C"):
                wait_for(path, f"^words {how}$")
        assert running.out.text == ""

    @pytest.mark.beyond_reference("capture_output is ignored there")
    def test_with_a_logging_configuration(self, tmp_path: Path) -> None:
        conf = config(tmp_path, DICTIONARY.format(tmp_path) + "capture_output = True\n")
        with server(conf, wait=False) as running:
            serves(running)
            running.get("/print?words")
            for how in ("printed", "to stderr", "by C"):
                wait_for(tmp_path / "errors", f"^words {how}$")

    def test_captured_output_after_a_rotation(self, tmp_path: Path) -> None:
        path = tmp_path / "error.log"
        with server(wait=False, error_logfile=path, capture_output=True) as running:
            serves(running)
            path.rename(tmp_path / "old")
            running.signal(signal.SIGUSR1)

            def moved() -> bool:
                """The signal may come between the first line that a request prints and its last."""
                printed = running.get("/print?words").status == 200
                return printed and path.exists() and "words printed" in path.read_text()

            until(moved, "the worker prints into the new file")


class TestRotation:
    @KINDS
    def test_master_and_worker_write_to_the_new_file(self, tmp_path: Path, worker_class: str) -> None:
        path = tmp_path / "error.log"
        with server(worker_class=worker_class, wait=False, error_logfile=path) as running:
            serves(running)
            for turn in range(3):
                path.rename(tmp_path / f"old.{turn}")
                running.signal(signal.SIGUSR1)
                until(path.exists, "the master has made a new file")
                pid = running.get("/pid").body.decode()

                def moved(turn: int = turn, pid: str = pid) -> bool:
                    running.get(f"/logging?turn-{turn}")
                    return f"[{pid}] [INFO] turn-{turn}" in path.read_text()

                until(moved, "the worker writes to the new file")
        assert "Shutting down: Master" in path.read_text()

    @pytest.mark.beyond_reference("workers leave there with a traceback when the file cannot be opened")
    def test_a_path_that_became_unwritable(self, tmp_path: Path) -> None:
        directory = tmp_path / "logs"
        directory.mkdir()
        with server(wait=False, error_logfile=directory / "error.log") as running:
            serves(running)
            directory.rename(tmp_path / "moved")
            running.signal(signal.SIGUSR1)
            wait_for(tmp_path / "moved" / "error.log", "still writing to the old file", count=2)
            running.get("/logging?still-here")
            wait_for(tmp_path / "moved" / "error.log", "still-here by logging")


class TestConfigurations:
    def check(self, running: Server, directory: Path) -> None:
        serves(running)
        running.get("/logging?words")
        wait_for(directory / "errors", r"^mine\|gunicorn.error\|INFO\|Booting worker with pid: \d+$")
        wait_for(directory / "errors", r"^mine\|gunicorn.error\|INFO\|words by logging$")
        wait_for(
            directory / "accesses", r'^mine\|gunicorn.access\|INFO\|127.0.0.1 - - \[.*\] "GET /logging\?words HTTP'
        )

    @THREAD_CLASSES
    def test_logconfig_dict(self, tmp_path: Path, worker_class: str) -> None:
        conf = config(tmp_path, DICTIONARY.format(tmp_path))
        with server(conf, worker_class=worker_class, wait=False) as running:
            self.check(running, tmp_path)

    def test_a_json_file(self, tmp_path: Path) -> None:
        names: dict[str, Any] = {}
        exec(DICTIONARY.format(tmp_path), names)
        path = config(tmp_path, json.dumps(names["logconfig_dict"]), "log.json")
        with server(wait=False, log_config_json=path) as running:
            self.check(running, tmp_path)

    def test_an_ini_file(self, tmp_path: Path) -> None:
        path = config(tmp_path, INI, "log.ini")
        with server(wait=False, log_config=path) as running:
            self.check(running, tmp_path)

    def test_logconfig_dict_after_a_rotation(self, tmp_path: Path) -> None:
        with server(config(tmp_path, DICTIONARY.format(tmp_path)), wait=False) as running:
            serves(running)
            running.get("/logging?before")
            for name in ("errors", "accesses"):
                wait_for(tmp_path / name, "before")
                (tmp_path / name).rename(tmp_path / f"{name}.1")
            running.signal(signal.SIGUSR1)
            until(lambda: all((tmp_path / name).exists() for name in ("errors", "accesses")), "new files")

            def moved() -> bool:
                running.get("/logging?after")
                return all("after" in (tmp_path / name).read_text() for name in ("errors", "accesses"))

            until(moved, "the worker writes to the new files")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ('logconfig_dict = {"handlers": {"console": {"class": "no.such.Handler"}}}', "logconfig_dict"),
            ('logconfig = "/no/such/file"', "/no/such/file"),
            ('logger_class = "no_such_module.Logger"', "no_such_module"),
            ('loglevel = "info"\nlogconfig_json = "/no/such/file"', "/no/such/file"),
        ],
    )
    def test_a_bad_one_is_a_sentence_and_exit_1(self, tmp_path: Path, text: str, says: str) -> None:
        if REFERENCE and "json" in text:
            pytest.skip("the reference server ignores a missing file")
        done = run("-b", f"127.0.0.1:{free_port()}", "-c", str(config(tmp_path, text)), APP)
        assert done.returncode == 1, done.stderr
        if not REFERENCE:
            assert says in done.stderr
            assert "Traceback" not in done.stderr

    def test_a_reload_with_a_bad_one_leaves_the_running_log(self, tmp_path: Path) -> None:
        conf = config(tmp_path, DICTIONARY.format(tmp_path))
        with server(conf, wait=False) as running:
            serves(running)
            before = running.get("/pid").body
            config(tmp_path, 'logconfig_dict = {"version": 1, "handlers": {"console": {"class": "no.such.Handler"}}}')
            running.signal(signal.SIGHUP)
            wait_for(tmp_path / "errors", "reloading the logger" if REFERENCE else "logconfig_dict.*cannot be used.*no")
            running.get("/logging?still-here")
            wait_for(tmp_path / "errors", "still-here by logging")
            assert REFERENCE or running.get("/pid").body == before

    def test_a_reload_to_another_file(self, tmp_path: Path) -> None:
        conf = config(tmp_path, f'errorlog = "{tmp_path}/one"\n')
        with server(conf, wait=False) as running:
            serves(running)
            wait_for(tmp_path / "one", "Booting worker")
            config(tmp_path, f'errorlog = "{tmp_path}/two"\n')
            running.signal(signal.SIGHUP)
            wait_for(tmp_path / "two", "Booting worker")
            assert "Booting" in (tmp_path / "one").read_text()


LOGGER_CLASS = """
from gunicorn.glogging import Logger

class Mine(Logger):
    def setup(self, cfg):
        super().setup(cfg)
        import logging
        self._set_handler(self.error_log, cfg.errorlog, logging.Formatter("mine|%(message)s"))

    def atoms(self, resp, req, environ, request_time):
        atoms = super().atoms(resp, req, environ, request_time)
        atoms["shout"] = environ["PATH_INFO"].upper()
        return atoms

    def access(self, resp, req, environ, request_time):
        assert request_time.total_seconds() >= 0
        if environ["PATH_INFO"] != "/health":
            super().access(resp, req, environ, request_time)
"""


class TestLoggerClass:
    @THREAD_CLASSES
    @pytest.mark.parametrize("form", ["name", "class"])
    def test_a_subclass_of_gunicorns(self, tmp_path: Path, worker_class: str, form: str) -> None:
        if form == "name":
            config(tmp_path, LOGGER_CLASS, "my_loggers.py")
            text = 'logger_class = "my_loggers.Mine"\n'
        else:
            text = LOGGER_CLASS + "logger_class = Mine\n"
        text += 'accesslog = "-"\naccess_log_format = "%(shout)s %(s)s %(b)s %({x-answer}o)s %({host}i)s"\n'
        extra = ["--pythonpath", f"{tmp_path},{APPS}"]
        with server(config(tmp_path, text), worker_class=worker_class, wait=False, extra=extra) as running:
            running.log.wait(r"^mine\|Booting worker with pid: \d+$")
            serves(running)
            running.get("/health")
            running.get("/pid")
            running.out.wait(r"^/PID 200 \d+ yes t$")
            assert not running.out.matching("HEALTH")


HOOKS = """
import time

def pre_request(worker, req):
    req.begun = time.monotonic()
    req.headers.append(("X-FROM-HOOK", "hello"))
    worker.log.info("pre %s %s %s", req.method, req.path, dict(req.headers)["HOST"])

def post_request(worker, req, environ, resp):
    took = time.monotonic() - req.begun
    worker.log.info("post %s %s %s %s %s", req.uri, environ["PATH_INFO"], resp.status, resp.status_code, resp.sent)
    assert took >= 0
    if req.query == "fail":
        raise RuntimeError("failed in the hook")

accesslog = "-"
"""


class TestHooks:
    @KINDS
    def test_order_and_arguments(self, tmp_path: Path, worker_class: str) -> None:
        with server(config(tmp_path, HOOKS), worker_class=worker_class) as running:
            assert running.get("/a%20b?q").body == b"hello"
            running.log.wait(r"\[INFO\] pre GET /a%20b t$")
            running.log.wait(r"\[INFO\] post /a%20b\?q /a b 200 OK 200 5$")
            running.out.wait(r'"GET /a%20b\?q HTTP/1.1" 200 5 ')

    @ALL_CLASSES
    def test_what_post_request_lets_out_is_logged(self, tmp_path: Path, worker_class: str) -> None:
        with gallery(config(tmp_path, HOOKS), worker_class=worker_class) as running:
            assert running.get("/x?fail").status == 200
            running.log.wait("Exception in post_request hook")
            running.log.wait("RuntimeError: failed in the hook")
            assert running.get("/x").status == 200

    def test_the_default_logs_requests_at_debug_level(self) -> None:
        with server(log_level="debug") as running:
            running.get("/a%20b?q")
            running.log.wait(r"\[DEBUG\] GET /a%20b$")


ATOMS = "%(h)s|%(l)s|%(u)s|%(r)s|%(m)s|%(U)s|%(q)s|%(H)s|%(s)s|%(B)s|%(b)s|%(f)s|%(a)s|%({X-In}i)s|%({X-Answer}o)s|%({raw_uri}e)s|%({x-none}i)s"  # noqa: E501


@pytest.mark.beyond_reference("what is not printable is not escaped there")
def test_python_and_the_core_write_the_same_line(tmp_path: Path) -> None:
    fields = [("X-In", 'a"b\\c'), ("User-Agent", "caf\u00e9"), ("Authorization", "Basic Ym9iOnNlY3JldA==")]
    fields.append(("X-From-Hook", "a body of one length"))  # a pid is not
    lines = []
    for text in ("", "from gunicorn.glogging import Logger\nclass logger_class(Logger):\n  def now(self): return ''\n"):
        conf = config(tmp_path, text + f"accesslog = '-'\naccess_log_format = {ATOMS!r}\n")
        with server(conf) as running:
            running.get("/p%C3%A9/x?q=%22", *fields)
            (found,) = running.out.wait(r"^127.*\|.*$")
            lines.append(found[0])
    assert lines[0] == lines[1]


@pytest.mark.beyond_reference("it has no JSON log")
class TestJson:
    def lines(self, text: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in text.splitlines()]

    @THREAD_CLASSES
    def test_every_line_is_an_object(self, worker_class: str) -> None:
        with server(worker_class=worker_class, wait=False, log_format="json", access_logfile="-") as running:
            running.log.wait("Booting worker with pid")
            serves(running)
            running.get("/raise?marker")
            running.get("/errors?said")
            running.get("/logging?words")
            with running.connect() as wire:
                wire.send(b"nonsense\r\n\r\n")
                wire.reply()
            running.log.wait("said to wsgi.errors")
            running.log.wait("words by logging")
            running.process.terminate()
            assert running.wait_exit() == 0
        errors = self.lines(running.log.text)
        by_message = {line["message"].partition(":")[0]: line for line in errors}
        assert {"Using worker", "Listening at", "Shutting down"} <= set(by_message)
        assert any(line.get("exception", "").endswith("ValueError: marker") for line in errors)
        assert any(line["message"] == "said to wsgi.errors\nin two lines" for line in errors)
        for line in errors:
            assert {"time", "level", "pid", "logger", "message"} <= set(line)
        accesses = self.lines(running.out.text)
        assert {(line["path"], line["status"]) for line in accesses} >= {("/raise", 500), ("/logging", 200)}

    def test_a_boot_that_fails(self) -> None:
        done = run("-b", f"127.0.0.1:{free_port()}", "--log-format", "json", "broken_import:application")
        assert done.returncode == 3
        assert any("does not load" in line.get("exception", "") for line in self.lines(done.stderr))

    def test_captured_output(self) -> None:
        with server(wait=False, log_format="json", capture_output=True) as running:
            running.log.wait("Booting worker with pid")
            serves(running)
            running.get("/print?words")
            running.log.wait('"message": "words printed"')
            running.log.wait('"message": "words to stderr"')
        self.lines(running.log.text)


@pytest.mark.beyond_reference("all goes to stderr there")
def test_split_streams() -> None:
    with server(wait=False, log_streams="split") as running:
        running.out.wait(r"\[INFO\] Booting worker with pid: \d+$")
        serves(running)
        running.get("/raise?marker")
        running.log.wait(r"\[ERROR\] ")
        running.log.wait("ValueError: marker")
    assert not running.log.matching("INFO")
    assert not running.out.matching("ERROR")


@pytest.mark.beyond_reference("requests fail there when the log does")
class TestTroubles:
    """The log is not worth a request."""

    @THREAD_CLASSES
    def test_a_dead_pipe(self, tmp_path: Path, worker_class: str) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with server(worker_class=worker_class, workers=2, wait=False, error_logfile=pipe) as running:
            serves(running)
            pids = until(lambda: found if len(found := running.worker_pids()) == 2 else [], "two workers")
            os.close(reader)
            self.keeps_serving(running)
            assert running.worker_pids() == pids
            running.process.terminate()
            assert running.wait_exit() == 0
        assert running.log.text == ""

    def test_nobody_reads_stderr(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        port = free_port()
        argv = [*command(), "-b", f"127.0.0.1:{port}", "-w", "2", "--chdir", str(APPS), APP]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        try:
            running = Server(APP, bind=f"127.0.0.1:{port}")
            serves(running)
            self.keeps_serving(running)
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()

    def test_a_full_disk(self) -> None:
        with server(wait=False, error_logfile="/dev/full") as running:
            serves(running)
            self.keeps_serving(running)
            running.process.terminate()
            assert running.wait_exit() == 0
        assert running.log.text == ""

    def keeps_serving(self, running: Server) -> None:
        for _ in range(10):
            assert running.get("/logging?lost").status == 200
            assert running.get("/errors?lost").status == 200
            assert running.get("/raise?lost").status == 500


@pytest.mark.beyond_reference("what a handler still holds is lost with a worker there")
@THREAD_CLASSES
def test_what_a_handler_still_holds_is_written_when_a_worker_leaves(worker_class: str, tmp_path: Path) -> None:
    conf = config(
        tmp_path,
        "logconfig_dict = {\n"
        "    'version': 1,\n"
        "    'handlers': {\n"
        "        'console': {'class': 'logging.StreamHandler'},\n"
        "        'kept': {'class': 'logging.handlers.MemoryHandler', 'capacity': 1000, 'target': 'console'},\n"
        "    },\n"
        "    'loggers': {'gunicorn.error': {'level': 'INFO', 'handlers': ['kept'], 'propagate': False}},\n"
        "}\n",
    )
    with server(conf, worker_class=worker_class, wait=False) as running:
        serves(running)
        worker = running.worker_pid()
        os.kill(worker, signal.SIGABRT)  # it leaves without the interpreter's own end
        running.log.wait(f"Worker exiting .pid: {worker}.")
