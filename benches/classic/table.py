"""What is measured: applications × servers × loads, one record for each table of docs/how-it-works/performance.md."""

from __future__ import annotations

from benches.harness.lines import Line

UNLIMITED = "--queue-limit 0 --queue-timeout 0"
"""gunicorn lets any number of requests wait for any time: so does tricorn here."""
SHAPES = (
    "gevent -w 1 --worker-connections 1000",
    "gevent -w 4 --worker-connections 1000",
    "gevent -w 12 --worker-connections 1000",
    "gevent -w 4 --worker-connections 3000",
    "sync -w 4",
    "gthread -w 4 --threads 4",
)
PAIRS = tuple(line for shape in SHAPES for line in (f"tricorn {shape} {UNLIMITED}", f"gunicorn {shape}"))
OTHERS = ("flask-dev", "uwsgi --processes 4", "twisted", "cherrypy", "waitress", "meinheld")

FLASK = "benches.apps.flask:app"
USERS = ("--preset", "users", "--rounds", "1", "--timeout", "120")
"""Users do not give up: requests without an answer at the end are counted apart."""
QUICK_USERS = ("--levels", "100", "--think", "0.2,1", "--hatch", "1", "--seconds", "1", "--warmup", "0.2")
QUICK_WORKERS = ("--levels", "1,4", "--rounds", "1", "--seconds", "0.5", "--warmup", "0.2")

DATABASE = {"application": "app:app", "path": "examples/pg_green", "database": True}
PSYCOGREEN = "gunicorn gevent -c benches/classic/psycogreen_conf.py -w 4 --worker-connections"


def _users(name: str, question: str, application: str, servers: tuple[str, ...], path: str) -> Line:
    return Line(name, question, application, servers, (*USERS, "--path", path), QUICK_USERS)


def _blend(io: int, cpu: int) -> Line:
    words = ("--preset", "workers", "--rounds", "1", "--seconds", "2", "--path", f"/blend?io={io}&cpu={cpu}")
    question = f"Requests of {io} ms of waiting and {cpu} ms of computing, 1 to 10 sync workers"
    return Line(f"blend-{io}-{cpu}", question, FLASK, ("tricorn sync", "gunicorn sync"), words, QUICK_WORKERS)


def _frameworks() -> list[Line]:
    """Each framework under its own server and under tricorn."""
    found = []
    for name, worker_class, own in (
        ("aiohttp", "aiohttp", "aiohttp-web"),
        ("tornado", "tornado", "tornado-web"),
        ("sanic", "asgi", "sanic"),
    ):
        # The libraries' own servers have no limits.
        ours = f"tricorn {worker_class} -w 1 --worker-connections 3000 {UNLIMITED}"
        application, servers = f"benches.apps.{name}:app", (ours, own)
        found.append(Line(f"{name}-constant", f"{name}: a constant, 64 connections, one worker", application, servers))
        found.append(_users(f"{name}-io", f"{name}: a request waits for 1 s, one worker", application, servers, "/io"))
    return found


LINES = [
    _users("users-constant", "Flask: a constant", FLASK, (*PAIRS, *OTHERS), "/constant"),
    _users("users-io", "Flask: a request waits for 1 s (I/O-bound)", FLASK, (*PAIRS, *OTHERS), "/io"),
    _users("users-cpu", "Flask: a request computes (CPU-bound)", FLASK, (*PAIRS, *OTHERS), "/cpu"),
    *_frameworks(),
    *(_blend(io, cpu) for io, cpu in ((100, 0), (0, 100), (90, 10), (10, 90))),
    Line(
        "pg-sleep",
        "pg_sleep(1) under gevent, so many requests at once; PostgreSQL has 97 connections",
        configurations=("tricorn gevent -w 4 --worker-connections 1000", f"{PSYCOGREEN} 1000"),
        # Shorter than a request: each client sends one.
        words=(
            *("--preset", "connections", "--levels", "50,75,97,101,125", "--path", "/sleep"),
            *("--seconds", "0.5", "--warmup", "0", "--rounds", "1"),
        ),
        quick=("--levels", "50,101"),
        **DATABASE,  # type: ignore[arg-type]
    ),
    Line(
        "pg-rows",
        "A query of 200 rows, 1,000 clients, a connection to PostgreSQL for each request, 80 at once",
        configurations=(
            "tricorn gevent -w 4 --worker-connections 20",
            f"{PSYCOGREEN} 20",
            f"{PSYCOGREEN} 20 --keep-alive 0",
        ),
        words=("-c", "1000", "--path", "/actors"),
        **DATABASE,  # type: ignore[arg-type]
    ),
    Line(
        "memory",
        "What a worker weighs after 64 connections asked for the constant",
        FLASK,
        (*PAIRS, *OTHERS),
        ("--path", "/constant", "--rounds", "1"),
    ),
]
