"""Options of uWSGI: each is told what is here in its place, by settings that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tricorn.cli import main
from tricorn.config import uwsgi
from tricorn.config.command_line import read_arguments
from tricorn.config.registry import BY_NAME

NAMES = [name for row in uwsgi.rows() for name in row.options.split()]
NO_SETTINGS = {"tricorn", "multiprocessing", "taskset", "shutdown", "scale"}
"""Words of a terminal or of Python in the texts."""


def test_an_option_has_one_row() -> None:
    assert len(NAMES) > 250
    assert sorted(NAMES) == sorted(set(NAMES))


def test_settings_in_the_texts_are_settings() -> None:
    for row in uwsgi.rows():
        for word in re.findall(r"`([a-z_]+)(?: = [^`]+)?`", row.here):
            assert word in BY_NAME or word in NO_SETTINGS, (word, row.here)


def test_options_are_found_by_name_and_by_beginning() -> None:
    def here(option: str) -> str:
        found = uwsgi.find(option)
        return uwsgi.counterpart(found) if found else ""

    assert here("processes") == here("--workers") == here("-p") == "workers; for %k: workers = auto"
    assert here("max_requests") == "max_requests"
    assert here("cheaper-algo") == here("cheaper")
    assert here("cache2") == here("cache-blocksize") != here("cheap")
    assert here("no-such-option") == ""
    assert uwsgi.find("cheaper-algo", by_beginning=False) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--harakiri", "30"),
            "--harakiri of uWSGI: --request-timeout ends the request with 504 and keeps the worker;",
        ),
        (("--processes=4",), "--processes of uWSGI: --workers; for %k: --workers auto"),
        (("-M", "--vacuum"), "-M of uWSGI: always so\n--vacuum of uWSGI: always so: sockets"),
        (("--wsgi-file", "app.py"), "--wsgi-file of uWSGI: the command's argument: a file such as app.py"),
        (("--touch-this", "x"), "--touch-this of uWSGI: HUP, tricorn ctl"),
        (("--queue-limt", "9"), "--queue-limt; did you mean --queue-limit?"),
    ],
)
def test_a_flag_of_uwsgis_is_refused_with_what_is_here(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        read_arguments([*words, "shop:app"])
    assert left.value.code == 2
    complaint = capsys.readouterr().err
    assert told in complaint
    assert ("see docs/migrate/from-uwsgi.md" in complaint) is ("uWSGI" in complaint)


INI = """\
# a comment
[uwsgi]
processes = 4
; another
processes=5
harakiri = 30
my-own = x
[other]
threads = 2
"""


@pytest.mark.parametrize("words", [("-c", "uwsgi.ini", "shop:app"), ("uwsgi.ini",), ("-c", "site.conf", "shop:app")])
def test_a_file_of_uwsgis_is_refused_with_what_its_options_are(
    words: tuple[str, ...], nothing_configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("uwsgi.ini", "site.conf"):
        (nothing_configured / name).write_text(INI)
    assert main([*words, "--check-config"]) == 1
    complaint = capsys.readouterr().err
    assert re.search(r"Error: '(uwsgi.ini|site.conf)' is a configuration of uWSGI, which is not read\.", complaint)
    assert complaint.count("  processes: workers; for %k") == 1
    assert "  harakiri: request_timeout ends" in complaint
    assert "my-own" not in complaint
    assert "threads" not in complaint


def test_other_files_are_read_as_before(nothing_configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nothing_configured / "site.conf").write_text("workers = 3\n")
    (nothing_configured / "shop.py").write_text("def app(environ, start_response): ...\n")
    assert main(["-c", "site.conf", "--print-config", "shop:app"]) == 0
    assert re.search(r"^workers += 3", capsys.readouterr().out, re.MULTILINE)
