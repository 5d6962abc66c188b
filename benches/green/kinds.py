"""The servers that wait with greenlets, and the record of each for each part of the benchmark."""

from __future__ import annotations

from benches.end_to_end.servers import Kind, like_gunicorn, tricorn

CLASSES = ("gevent", "eventlet")

#: No server runs out of connections, and none is closed for having been silent while the others were opened.
SLEEPERS = 10_000
PATIENT = ("--worker-connections", str(SLEEPERS), "--keep-alive", "600", "--backlog", "4096")

SLEEPING = [
    *[Kind(f"tricorn-{name}", "tricorn", tricorn("-k", name, *PATIENT)) for name in CLASSES],
    Kind("gunicorn-gevent", "gunicorn", like_gunicorn("gunicorn", "-k", "gevent", *PATIENT)),
]

#: 4 workers with 25 requests each (the last `-w` counts).
FOUR_TIMES_25 = ("-w", "4", "--worker-connections", "25", "--chdir", "examples/pg_green")

PSYCOGREEN = ("-k", "gevent", "-c", "benches/green/psycogreen_conf.py", *FOUR_TIMES_25)

DATABASE = [
    *[Kind(f"tricorn-{name}", "tricorn", tricorn("-k", name, *FOUR_TIMES_25)) for name in CLASSES],
    Kind("gunicorn-gevent", "gunicorn", like_gunicorn("gunicorn", *PSYCOGREEN)),
    # A connection that is kept alive occupies one of gunicorn's 25 places for two seconds after its answer.
    Kind("gunicorn-gevent-close", "gunicorn", like_gunicorn("gunicorn", *PSYCOGREEN, "--keep-alive", "0")),
]
