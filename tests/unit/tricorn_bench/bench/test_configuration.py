"""Lines that name a configuration, and what other servers have like it."""

from __future__ import annotations

import pytest
from tricorn_bench.bench.configuration import Configuration, against
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.servers import SERVERS, Certificate, Order

from tests.harness import with_each

LINES = {
    "gevent -w 4 --worker-connections 1000": "tricorn gevent -w 4 --worker-connections 1000",
    "sync": "tricorn sync",
    "-w 2": "tricorn -w 2",
    "tricorn gthread --threads 8": "tricorn gthread --threads 8",
    "gunicorn gevent -w 4": "gunicorn gevent -w 4",
    "gunicorn": "gunicorn",
    "uvicorn --workers 4": "uvicorn --workers 4",
    "uvicorn.workers.UvicornWorker -w 2": "tricorn uvicorn.workers.UvicornWorker -w 2",
}


def test_every_server_listens_where_it_is_told_to() -> None:
    for server in SERVERS:
        command = Configuration.parse(server).command("python", "shop:app", 8000, "WSGI", host="192.0.2.1")
        line = " ".join(command)
        assert "192.0.2.1" in line, line
        assert "8000" in line, line
        assert "127.0.0.1" not in line, line


@with_each(("line", "name"), LINES.items())
def test_a_line_has_a_name_that_is_the_same_configuration(line: str, name: str) -> None:
    found = Configuration.parse(line)
    assert found.name == name
    assert Configuration.parse(found.name) == found


def test_the_command_is_what_a_user_would_type() -> None:
    command = Configuration.parse("gevent -w 4").command("python", "shop:app", 8000, "WSGI")
    assert command == ["python", "-m", "tricorn", "-b", "127.0.0.1:8000", "-k", "gevent", "-w", "4", "shop:app"]


@with_each(
    ("line", "hint"),
    {"gevnt -w 4": "'gevent'", "gunicron": "'gunicorn'", "'": "quot", "": "Empty", "uvicorn gevent": "neither"}.items(),
)
def test_what_is_no_configuration_is_told_with_what_was_expected(line: str, hint: str) -> None:
    with pytest.raises(BenchError, match=hint):
        Configuration.parse(line)


@with_each("words", ["-w 3", "-w3", "--workers 3", "--workers=3", "-w 1 --workers 3"])
def test_workers_are_counted_however_they_are_spelt(words: str) -> None:
    found = Configuration.parse(f"sync {words} --threads 2")
    assert found.workers == 3
    assert found.with_workers(5).name == "tricorn sync --threads 2 -w 5"


def test_a_peer_has_the_same_class_and_flags_or_a_reason() -> None:
    mine = Configuration.parse("gthread -w 2 --threads 4")
    assert mine.like("gunicorn").name == "gunicorn gthread -w 2 --threads 4"
    assert mine.like("granian").words == ("--workers", "2")
    assert Configuration.parse("eventlet").like("gunicorn").why_not == "it has no worker class eventlet"
    assert "one process" in (mine.like("waitress").why_not or "")
    assert Configuration.parse("sync").like("waitress").why_not is None


def test_a_server_without_classes_is_measured_once_beside_several_of_ours() -> None:
    ours = [Configuration.parse("sync"), Configuration.parse("gevent")]
    names = [one.name for one in against(ours, ("gunicorn", "granian"))]
    assert names == ["tricorn sync", "gunicorn sync", "granian --workers 1", "tricorn gevent", "gunicorn gevent"]


def test_an_unknown_server_is_refused() -> None:
    with pytest.raises(BenchError, match=r"Unknown server 'unicorn'.*did you mean 'gunicorn'"):
        against([Configuration.parse("sync")], ("unicorn",))


def test_servers_that_have_tls_are_told_the_files_of_the_run() -> None:
    pair = Certificate("/c.pem", "/k.pem")
    told = {
        name: kind.command(Order("python", "shop:app", 8443, (), "WSGI", certificate=pair))
        for name, kind in SERVERS.items()
        if kind.has_tls
    }
    for name, command in told.items():
        assert all(path in " ".join(command) for path in ("/c.pem", "/k.pem")), name
    assert " ".join(told["tricorn"][1:]) == "-m tricorn -b 127.0.0.1:8443 --certfile /c.pem --keyfile /k.pem shop:app"
    assert "--ssl-certificate /c.pem --ssl-keyfile /k.pem" in " ".join(told["granian"])
    assert "--ssl-certfile /c.pem --ssl-keyfile /k.pem" in " ".join(told["uvicorn"])
    assert "--https-socket 127.0.0.1:8443,/c.pem,/k.pem" in " ".join(told["uwsgi"])
    assert told["tornado-web"][-4:] == ["127.0.0.1", "8443", "/c.pem", "/k.pem"]


@with_each(
    ("one", "other"),
    {
        "sync": "sync -w 1",
        "gthread --threads 8 -w4": "gthread --workers=4 --threads=8",
        "gevent -w 2 --timeout 9": "gevent --timeout 9 -w 2",
        "uvicorn --workers 4": "uvicorn --workers=4",
    }.items(),
)
def test_equal_servers_are_the_same_when_normalized(one: str, other: str) -> None:
    assert Configuration.parse(one).normalized == Configuration.parse(other).normalized


@with_each(
    ("one", "other"),
    {
        "sync": "sync -w 2",
        "gthread --threads 8": "gthread --threads 4",
        "gevent": "gevent --timeout 9",
        "gunicorn sync": "sync",
    }.items(),
)
def test_different_servers_differ_when_normalized(one: str, other: str) -> None:
    assert Configuration.parse(one).normalized != Configuration.parse(other).normalized


def test_servers_that_have_http2_are_told_to_speak_it() -> None:
    def told(name: str, *, certificate: Certificate | None = None) -> str:
        order = Order("python", "shop:app", 8443, (), "WSGI", certificate=certificate, http2=True)
        return " ".join(SERVERS[name].command(order))

    assert {name for name, kind in SERVERS.items() if kind.has_http2} == {"tricorn", "gunicorn", "granian", "hypercorn"}
    for name in ("tricorn", "gunicorn"):
        assert "--http-protocols h2,h1 --http2-cleartext prior-knowledge" in told(name)
        over_tls = told(name, certificate=Certificate("/c.pem", "/k.pem"))
        assert "--http-protocols h2,h1" in over_tls
        assert "--http2-cleartext" not in over_tls
