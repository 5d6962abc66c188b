"""The command line, as far as no server is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn_bench.bench import command, database, result
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.options import parser
from tricorn_bench.bench.trial import Stage, Trial

from tests.unit.tricorn_bench.bench.made import a_result, a_round


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two results, of which the second is slower by a fifth."""
    for name, micros in (("a", 1000), ("b", 1200)):
        rounds = [a_round((micros + number,) * 100) for number in range(3)]
        result.write(a_result({"tricorn sync": rounds}), tmp_path / f"{name}.json")
    return str(tmp_path / "a.json"), str(tmp_path / "b.json")


def test_comparing_prints_ratios(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--compare", *files]) == 0
    assert "× 1.20 (1.20–1.20) worse" in capsys.readouterr().out


def test_a_condition_decides_on_the_exit_status(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--compare", *files, "--fail-if", "p99 > 1.1x"]) == 5
    assert "Failed: tricorn sync: p99 is × 1.20" in capsys.readouterr().out
    assert command.main(["--compare", *files, "--fail-if", "p99 > 1.3x"]) == 0
    assert "No condition" in capsys.readouterr().out


def test_a_stored_result_is_reported_anew(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--report", files[0]]) == 0
    assert "tricorn sync" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "No application given"),
        (["--compare", __file__, __file__], "is no result of tricorn bench: it is not JSON"),
        (["--report", "/nonexistent.json"], "/nonexistent.json cannot be read"),
        (["shop:app", "--fail-if", "p99"], "Invalid condition 'p99'"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_configurations_may_stand_between_options() -> None:
    found = parser().parse_intermixed_args(["shop:app", "--preset", "users", "gevent -w 4", "--levels", "1,2", "sync"])
    assert found.configurations == ["gevent -w 4", "sync"]
    assert found.levels == (1, 2)


@pytest.mark.parametrize(
    "words",
    [["-c", "0"], ["--seconds", "-1"], ["--levels", "a"], ["-H", "none"], ["--think", "5,1"], ["--rounds", "x"]],
)
def test_numbers_are_checked_where_they_are_typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_intermixed_args(["shop:app", *words])
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "3 rounds of tricorn sync, tricorn gthread: about 30 s"),
        (["--budget", "60"], "3 rounds of tricorn sync, tricorn gthread: about 30 s"),
        (["--budget", "20"], "about 20 s, for which rounds are shorter than 3 s (--budget)"),
        (["--rounds", "20"], "about 3.3 minutes"),
    ],
)
def test_how_long_it_takes_is_told_before_it_begins(words: list[str], told: str) -> None:
    arguments = parser().parse_args(["shop:app", "--seconds", "3", *words])
    trials = [Trial(Configuration.parse(line), (Stage(seconds=3.0),), line) for line in ("sync", "gthread")]
    assert told in command._announcement(arguments, trials, 2.0)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["sync", "gthread", "--warmup", "1"], 3 * 2 * (1 + 2 + command.SECONDS)),
        (["sync", "--seconds", "1", "--rounds", "1", "--warmup", "0", "--budget", "60"], 3),
        (["sync", "gthread", "--budget", "20"], 20),
    ],
)
def test_how_long_a_command_line_takes_is_known_without_its_application(words: list[str], seconds: float) -> None:
    assert command.expected_seconds(["no_such:app", *words]) == seconds


def test_flags_of_tls_without_tls_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("--full-handshakes", "--tls-key=rsa"):
        assert command.main(["no_such:app", word]) == 1
        assert f"{word.partition('=')[0]} requires --tls." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--streams", "5"], "--streams requires --http2."),
        (["--http2", "--websocket", "5"], "--http2 and --websocket: "),
        (["--http2", "--locustfile", "x.py"], "--http2 and --locustfile: "),
        (["--http2", "--streams", "5", "--close"], "--streams and --close: "),
        (["--http2", "--streams", "5", "--preset", "tails"], "--streams and the preset tails: "),
    ],
)
def test_flags_that_http2_does_not_go_with_are_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["no_such:app", *words]) == 1
    assert told in capsys.readouterr().err


def test_a_server_without_http2_is_left_out_with_the_reason() -> None:
    arguments = parser().parse_args(["shop:app", "--seconds", "3", "--http2", "--streams", "8"])
    versions: dict[str, str | None] = {"waitress": "3.0"}
    one = command._possible(Configuration.parse("waitress"), "WSGI", versions, arguments)
    assert one.why_not == "its command has no HTTP/2"
    assert command._possible(Configuration.parse("sync"), "WSGI", versions, arguments).why_not is None
    sentence = command._load_sentence(arguments, command.PLAIN, command._request(arguments))
    assert sentence.startswith("GET / over HTTP/2; 64 connections with 8 streams each, ")


def test_a_database_that_is_down_is_told() -> None:
    with pytest.raises(BenchError, match=r"Could not connect to the database of --db: .*refused"):
        database.Watch("host=127.0.0.1 port=1 connect_timeout=2")
