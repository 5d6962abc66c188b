"""The run through a page of the documentation: what is a step, and that a page which shows something else fails."""

from __future__ import annotations

import pytest

from tests.harness.pages import Command, File, Interrupt, Run, Shown, Step, as_pattern, pages, steps, updated

PAGE = """\
```python
# shop/app.py
X = 1
```

```python
x = "no file"
```

```console
$ echo one \\
> two
one
…
$ tricorn app
[2026-11-24 09:06:27 +0000] [13887] [INFO] Ready: 1 worker serves
```

```console
127.0.0.1 - - "GET /"
^C
```

```sh
rm -rf /
```
"""


def test_steps_of_a_page_come_in_its_order() -> None:
    file, echo, server, shown, end = steps(PAGE)
    assert file == File("shop/app.py", "# shop/app.py\nX = 1\n")
    assert echo == Command("echo one two", ("one", "…"))
    assert isinstance(echo, Command)
    assert not echo.stays
    assert isinstance(server, Command)
    assert server.stays
    assert shown == Shown(('127.0.0.1 - - "GET /"',))
    assert end == Interrupt()


@pytest.mark.parametrize(
    ("line", "shown", "fits"),
    [
        ("[2026-11-24 09:06:27 +0000] [13887] [INFO] x", "[2025-01-01 00:00:00 +0100] [7] [INFO] x", True),
        ("[2026-11-24 09:06:27 +0000] [13887] [INFO] x", "[2025-01-01 00:00:00 +0100] [7] [ERROR] x", False),
        ("Ready (1.2 s)", "Ready (0.3 s)", True),
        ("Listening (13887)", "Listening (12)", True),
        ("Thread 4712 (python): IDLE", "Thread 9 (python): IDLE", True),
        ("1. 0.9 request-seconds: 3 times, 0.9 s.", "1. 0.6 request-seconds: once, 0.6 s.", True),
        ("one … three", "one two three", True),
        ("one", "one more", False),
        ("one…", "one more", True),
        ("a.c", "abc", False),
        ("09:00:01 info     Ready (0.1 s)", "18:22:59 info     Ready (12.5 s)", True),
        ("09:00:01 info     Ready (0.1 s)", "18:22:59 error    Ready (12.5 s)", False),
        ("blocked for 400 ms", "blocked for another 251 ms", True),
        ("1     425  sync   1    serving", "12     4  sync   1    serving", True),
        ("1     425  sync   1    serving", "1     425  sync   1    booting", False),
        ("/slow queue=0 cpu=3906", "/slow queue=12 cpu=1", True),
        ("503 queue_full", "200 queue_full", False),
    ],
)
def test_what_differs_from_run_to_run_fits(line: str, shown: str, fits: bool) -> None:
    assert bool(as_pattern(line).search(shown)) is fits


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (Command("echo one; echo two", ("two", "one")), "does not show 'one'"),
        (Command("echo one; false", ("one",)), "ended with status 1"),
        (Command("true", ("one",)), "does not show 'one'"),
    ],
)
def test_a_command_that_does_something_else_fails(command: Step, complaint: str) -> None:
    with Run() as run, pytest.raises(AssertionError, match=complaint):
        run.make(command)


def test_a_command_sees_the_files_and_a_free_port_in_place_of_the_page_s() -> None:
    with Run() as run:
        run.make(File("a.txt", "port 8000, not 80001\n"))
        run.make(Command("grep -v 'port 8000,' a.txt | wc -l", ("0",)))
        run.make(Command("! grep -q 'port 8000,' a.txt.not", ()))
        assert "8000," not in (run.directory / "a.txt").read_text()
        assert "80001" in (run.directory / "a.txt").read_text()


def test_pages_with_commands_are_found() -> None:
    assert {"get-started/quickstart.md", "diagnose/why-431.md"} <= set(pages())


def test_real_output_takes_the_place_of_the_dots() -> None:
    text = "```console\n$ a\nReady: …\nkept\n  Ready: …\n```\n"
    shown = [("Ready: …", "Ready: 1"), ("kept", "not kept"), ("Ready: …", "Ready: 2")]
    assert updated(text, shown) == "```console\n$ a\nReady: 1\nkept\n  Ready: 2\n```\n"


def test_a_run_knows_what_a_page_would_show() -> None:
    with Run() as run:
        run.make(Command("echo port 8000 in $PWD", ("port …",)))
        assert run.shown == [("port …", "port 8000 in /srv/shop")]
