"""The command line: gunicorn's, letter by letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tricorn.config.borrowed import BORROWED, Refused
from tricorn.config.command_line import (
    COMPLETIONS,
    build_parser,
    read_arguments,
    read_environment_arguments,
    short_help,
)
from tricorn.config.registry import SETTINGS
from tricorn.config.unavailable import UNAVAILABLE, Takes, Unavailable, judge

GOLDEN = Path(__file__).with_name("help.txt")
WHOLE = Path(__file__).with_name("help_all.txt")


def raw(argv: str) -> dict[str, object]:
    return {name: value.value for name, value in read_arguments(argv.split()).values.items()}


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        read_arguments(argv)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_the_help_page_is_the_golden_one() -> None:
    assert build_parser().format_help() == GOLDEN.read_text()
    assert build_parser(shows_rare=True).format_help() == WHOLE.read_text()


def test_the_whole_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_arguments(["--help-all"])
    assert (caught.value.code, capsys.readouterr().out) == (0, WHOLE.read_text())


def test_a_prefix_of_help_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_arguments(["--hel"])
    assert capsys.readouterr().out == GOLDEN.read_text()


def test_only_what_is_given_is_in_the_layer() -> None:
    assert raw("-w 2 app:app") == {"workers": "2", "wsgi_app": "app:app"}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("-b :1 --bind=:2", {"bind": [":1", ":2"]}),
        ("--no-sendfile", {"sendfile": False}),
        ("--no-handover", {"handover": False}),
        ("--no-green-drivers", {"green_drivers": False}),
        ("--max-concurrency auto", {"max_concurrency": "auto"}),
        ("--preload", {"preload_app": True}),
        ("--mold", {"preload_app": "mold"}),
        ("--mold --preload", {"preload_app": True}),
        ("-e A=1 --env B=2", {"raw_env": ["A=1", "B=2"]}),
        ("--keep-alive 5", {"keepalive": "5"}),
        ("--limit-request-field_size 1", {"limit_request_field_size": "1"}),
        ("--limit-request-field-size 1", {"limit_request_field_size": "1"}),
        ("--log-file x", {"errorlog": "x"}),
        ("--error-logfile x", {"errorlog": "x"}),
        ("--access-logfile -", {"accesslog": "-"}),
        ("--access-logformat %(h)s", {"access_log_format": "%(h)s"}),
        ("-t 5 -k gthread -m 022", {"timeout": "5", "worker_class": "gthread", "umask": "022"}),
    ],
)
def test_command_line_flags(argv: str, expected: dict[str, object]) -> None:
    assert raw(argv) == expected


def test_unambiguous_prefixes_are_enough() -> None:
    assert raw("--workers 2 --graceful 5") == {"workers": "2", "graceful_timeout": "5"}


def test_a_value_that_is_understood_passes_and_is_judged_later() -> None:
    assert raw("-w 0 --header-map foo") == {"workers": "0", "header_map": "foo"}


def test_a_value_that_is_none_at_all_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(["-w", "abc"], capsys)
    assert error.endswith("error: argument -w/--workers: expected a whole number or auto, got 'abc'\n")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("--wrokers 3 app", "unrecognized arguments: --wrokers; did you mean --workers?"),
        ("--nope app", "unrecognized arguments: --nope; see tricorn --help"),
        ("--no-such-option app", "unrecognized arguments: --no-such-option; see tricorn --help"),
        ("--worker=3 app", "ambiguous option: --worker=3 could match"),
        ("--tiemout=3 app", "unrecognized arguments: --tiemout; did you mean --timeout?"),
        ("--limit-concurency 3 app", "unrecognized arguments: --limit-concurency; did you mean --limit-concurrency?"),
        ("app other", "unrecognized arguments: other; expected one application, and flags"),
        ("run main:app", "there is no command 'run': `tricorn main:app` serves"),
        (
            "--access-log - main:app",
            "'-' is not an application. To log to stdout use --access-logfile",
        ),
        ("-w", "argument -w/--workers: expected one argument"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(argv: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"tricorn: error: {words}" in refused(argv.split(), capsys)


@pytest.mark.parametrize(
    ("prefix", "name"),
    [("--log-f", "errorlog"), ("--access-logfi", "accesslog"), ("--keep", "keepalive"), ("--lo-f", None)],
)
def test_a_prefix_that_is_enough_for_gunicorn_is_enough(
    prefix: str, name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if name is None:
        refused([prefix, "1"], capsys)
    else:
        assert raw(f"{prefix} 1") == {name: "1"}


def test_completions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_arguments(["--completions", "bash"])
    assert not caught.value.code
    assert capsys.readouterr().out == Path(COMPLETIONS, "tricorn.bash").read_text()


def test_of_shells_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--completions" in refused(["--completions", "tcsh"], capsys)


@pytest.mark.parametrize("record", [record for record in UNAVAILABLE if record.flags], ids=lambda record: record.name)
def test_what_gunicorn_has_and_we_do_not_is_refused_in_words(
    record: Unavailable, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in record.flags:
        argv = [flag] if record.takes is not Takes.VALUE else [flag, "1"]
        layer = read_arguments(["app:app", *argv])
        assert layer.values["wsgi_app"].value == "app:app"
        if record.switch or record.inert:
            assert layer.asked == (), "its switch is off, or it has no effect"
            continue
        with pytest.raises(SystemExit) as caught:
            judge(layer.asked, "refuse")
        assert caught.value.code == 2
        assert record.sentence in capsys.readouterr().err


def test_version_is_told_as_gunicorn_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_arguments(["--version"])
    assert not caught.value.code
    assert capsys.readouterr().out == "tricorn (version 0.1.0)\n"


def test_an_error_in_a_variable_names_the_variable(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("--nope", "'"):
        with pytest.raises(SystemExit) as caught:
            read_environment_arguments({"GUNICORN_CMD_ARGS": text})
        assert caught.value.code == 2
        assert "in the environment variable GUNICORN_CMD_ARGS: " in capsys.readouterr().err


def test_the_short_page_fits_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_arguments(["-h"])
    page = capsys.readouterr().out
    assert caught.value.code == 0
    assert page == short_help()
    lines = page.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.startswith("  -")]) == 12
    assert "--help" in lines[-1]


def test_each_flag_has_its_variable_and_its_default() -> None:
    page = " ".join(build_parser(shows_rare=True).format_help().split())
    for setting in SETTINGS:
        if setting.flags and setting.part_of is None:
            assert f"[env: {', '.join((setting.env, *setting.env_also))}" in page, setting.name
    assert "[env: TRICORN_WORKERS, WEB_CONCURRENCY; default: 1]" in page


def test_the_words_are_our_own() -> None:
    """Beside gunicorn's 27.0.1: no sentence of help is one of its."""
    theirs = {_words(line) for line in Path(__file__).with_name("gunicorns_help.txt").read_text().splitlines()}
    assert len(theirs) > 80
    same = [setting.name for setting in SETTINGS if _words(setting.help.partition(";")[0]) in theirs]
    assert not same


def _words(sentence: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", sentence.lower()))


def test_no_suggestion_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of each flag that is refused is answered with none that is refused."""
    refused_flags = {flag for record in UNAVAILABLE for flag in record.flags}
    refused_flags |= {flag for row in BORROWED if isinstance(row.becomes, Refused) for flag in row.flags.split()}
    for flag in sorted(refused_flags):
        if flag.startswith("--") and len(flag) > 6:
            slip = flag[:4] + flag[5] + flag[4] + flag[6:]
            if slip == flag:
                continue
            error = refused([slip, "app"], capsys)
            meant = re.search(r"did you mean (--[\w-]+)\?", error)
            assert meant is None or meant[1] not in refused_flags, (slip, error)
