"""The servers that wait with greenlets, and the record of each for each part of the benchmark."""

from __future__ import annotations

from benches.end_to_end.servers import kind

CLASSES = ("gevent", "eventlet")

#: No server runs out of connections, and none is closed for having been silent while the others were opened.
SLEEPERS = 10_000
PATIENT = f"-w 1 --worker-connections {SLEEPERS} --keep-alive 600 --backlog 4096"

SLEEPING = [
    *[kind(f"tricorn-{name}", f"tricorn {name} {PATIENT}") for name in CLASSES],
    kind("gunicorn-gevent", f"gunicorn gevent {PATIENT}"),
]

#: 4 workers with 25 requests each.
FOUR_TIMES_25 = "-w 4 --worker-connections 25 --chdir examples/pg_green"

PSYCOGREEN = f"gunicorn gevent -c benches/green/psycogreen_conf.py {FOUR_TIMES_25}"

DATABASE = [
    *[kind(f"tricorn-{name}", f"tricorn {name} {FOUR_TIMES_25}") for name in CLASSES],
    kind("gunicorn-gevent", PSYCOGREEN),
    # A connection that is kept alive occupies one of gunicorn's 25 places for two seconds after its answer.
    kind("gunicorn-gevent-close", f"{PSYCOGREEN} --keep-alive 0"),
]
