"""What a newcomer sees: each mistake on one screen, in one sentence, with the next step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benches.render import first_contact as contact
from tests.harness.server import REFERENCE, run

pytestmark = pytest.mark.skipif(REFERENCE, reason="the page is about tricorn's own words")

TRICORN = [sys.executable, "-m", "tricorn"]
LONGEST = 60.0


@pytest.mark.parametrize("situation", contact.SITUATIONS, ids=[each.title for each in contact.SITUATIONS])
def test_it_is_one_screen_one_sentence_and_the_next_step(situation: contact.Situation) -> None:
    with contact.scene(situation) as (directory, port):
        words = contact.words_for("tricorn", situation.tricorn, port)
        screen = contact.show([*TRICORN, *words], directory, situation.until, LONGEST)
    text = "\n".join(screen.lines)
    assert screen.status == (None if situation.until else situation.status), text
    assert len(screen.lines) <= contact.SCREEN, text
    assert len(screen.saying(situation.says)) == 1, text
    assert re.search(situation.next, text), text
    assert "tricorn/workers" not in text, "none of our frames"


FAILS: list[tuple[str, list[str], int, int]] = [
    ("a module that does not exist", ["nope:app"], 3, 1),
    ("an exception while it is loaded", ["raises:app"], 3, 1),
    ("an attribute that does not exist", ["main:ap"], 4, 1),
    ("a worker class that does not exist", ["-k", "asgii", "main:app"], 1, 1),
    ("a worker class of another interface", ["-k", "sync", "main:app"], 4, 1),
    ("a user that does not exist", ["-u", "nosuchuser", "main:app"], 1, 1),
    ("an address that is not there", ["-b", "192.0.2.1:80", "main:app"], 1, 1),
    ("a socket in no directory", ["-b", "unix:no/such/socket", "main:app"], 1, 1),
    ("a certificate that is not there", ["--certfile", "cert.pem", "main:app"], 1, 1),
    ("TLS without a certificate", ["-b", "https://127.0.0.1:0", "main:app"], 1, 1),
    ("a certificate that is none", ["--certfile", "main.py", "main:app"], 1, 1),
    ("a log in no directory", ["--log-file", "no/such/log", "main:app"], 1, 1),
    ("a pidfile in no directory", ["--pid", "no/such/pid", "main:app"], 1, 1),
    ("a format of the access log", ["--access-logfile", "-", "--access-logformat", "%(h", "main:app"], 1, 1),
    ("a directory that is not there", ["--chdir", "nowhere", "main:app"], 1, 1),
    ("a configuration file with a syntax error", ["-c", "syntax.py", "main:app"], 1, 1),
    ("a port that is in use", ["main:app"], 1, 1),
]
SENTENCES = {
    "a module that does not exist": "Could not import 'nope:app'",
    "an exception while it is loaded": "KeyError: 'SECRET_KEY'",
    "a worker class of another interface": "cannot run",
    "a configuration file with a syntax error": "never closed",
}


@pytest.mark.parametrize(("what", "argv", "start", "check"), FAILS, ids=[what for what, *_ in FAILS])
def test_check_config_says_no_where_the_start_does(what: str, argv: list[str], start: int, check: int) -> None:
    """With the same sentence; an application that cannot be loaded is 3 or 4 at the start and 1 here: gunicorn's."""
    busy = "in use" in what
    with contact.scene(contact.SITUATIONS[0]._replace(busy=busy)) as (directory, port):
        bind = [] if "-b" in argv else ["-b", f"127.0.0.1:{port}"]
        started = run(*bind, *argv, cwd=directory)
        checked = run("--check-config", *bind, *argv, cwd=directory)
    assert started.returncode == start, started.stderr
    assert checked.returncode == check, checked.stderr
    known = SENTENCES.get(what)
    sentence = known or _sentence(checked.stderr)
    assert sentence in checked.stderr
    assert sentence in started.stderr, checked.stderr


def _sentence(text: str) -> str:
    """The last line, from the name of what failed on; the paths of files are looked at in other tests."""
    line = text.strip().splitlines()[-1]
    return re.sub(r"^(?:Error|tricorn: error): ", "", line)


ASKED = """\
import threading, urllib.error, urllib.request
accesslog = "-"
def ask(server):
    try:
        urllib.request.urlopen(f"{server.LISTENERS[0]}/there", timeout=60)
    except urllib.error.HTTPError:
        pass
def when_ready(server):
    threading.Thread(target=ask, args=(server,), daemon=True).start()
"""
NOT_FOUND = """\
def application(environ, start_response):
    start_response("404 Not Found", [("Content-Length", "0")])
    return []
"""


def test_a_terminal_has_short_lines_coloured_by_status(tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text(NOT_FOUND)
    (tmp_path / "gunicorn.conf.py").write_text(ASKED)
    command = [*TRICORN, "-b", "127.0.0.1:0", "seen"]
    screen = contact.show(command, tmp_path, r'"GET /there HTTP/1.1"', LONGEST, colours=True)
    assert re.search(
        rb'\x1b\[33m\d\d:\d\d:\d\d 404      127.0.0.1 "GET /there HTTP/1.1" 0 bytes, \d+ ms\x1b\[0m', screen.raw
    )
    assert screen.saying("Ready: 1 sync worker serves seen at .* configured by ./gunicorn.conf.py")
    assert not screen.saying("Booting worker|Listening at")
    plain = contact.show(command, tmp_path, r'"GET /there HTTP/1.1"', LONGEST)
    assert b"\x1b[" not in plain.raw
    assert plain.saying(r'^\d\d:\d\d:\d\d 404      127.0.0.1 "GET /there HTTP/1.1" 0 bytes')
