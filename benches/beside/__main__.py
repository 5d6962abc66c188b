"""What does a healthy client notice of others?  python -m benches.beside --help

One worker. A healthy client asks 100 times a second, each time over a new connection: first alone, then beside the
others. slow: heads and bodies at a byte a second. uploads: bodies as fast as the loopback takes them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tricorn_bench.bench.servers import ASGI, WSGI

from benches.harness import report
from benches.harness.load import send
from benches.harness.process import LOAD_CORE, ROOT, DidNotServe, become_generator, pinned
from benches.harness.servers import Figures, Found, in_turns, raw, serving, table

RATE = 100
PATIENCE = 2.0

PLENTY = "--worker-connections 20000"
SLOW = {
    "tricorn-sync": f"tricorn sync -w 1 {PLENTY}",
    "tricorn-gthread": f"tricorn gthread -w 1 --threads 4 {PLENTY}",
    "tricorn-gevent": f"tricorn gevent -w 1 {PLENTY}",
    "tricorn-eventlet": f"tricorn eventlet -w 1 {PLENTY}",
    "gunicorn-sync": "gunicorn sync -w 1",
    "gunicorn-gthread": f"gunicorn gthread -w 1 --threads 4 {PLENTY}",
    "gunicorn-gevent": f"gunicorn gevent -w 1 {PLENTY}",
    "granian": "granian --workers 1 --http 1 --no-ws",
    **{name: name for name in ("waitress", "bjoern", "fastwsgi", "fastpysgi")},
}
CLASSES = ("asgi", "tornado", "aiohttp")
"""Worker classes whose applications are not WSGI."""
UPLOADS = {name: f"tricorn {name} -w 1" for name in ("sync", "gthread", "gevent", "eventlet", *CLASSES)}


def main() -> int:
    parser = report.options("beside", __doc__)
    parser.add_argument("others", choices=("slow", "uploads"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--heads", type=int, default=500, help="slow clients that send a head")
    parser.add_argument("--bodies", type=int, default=500, help="slow clients that send a body")
    parser.add_argument("--clients", type=int, default=4, help="that upload")
    parser.add_argument("--mebibytes", type=int, default=256, help="of one upload")
    arguments = report.begin(parser)
    if arguments.others == "slow":
        title = f"Beside {arguments.heads} slow heads and {arguments.bodies} slow bodies, one worker"
        found = in_turns(SLOW, arguments, lambda line, found: beside_slow(line, found, arguments))
    else:
        title = f"Beside {arguments.clients} uploads of {arguments.mebibytes} MiB, one worker"
        found = in_turns(UPLOADS, arguments, lambda line, found: beside_uploads(line, found, arguments))
    report.conclude(arguments, title, found.commands, table(title, found), raw(found))
    return 0


def beside_slow(line: str, found: Found, arguments: argparse.Namespace) -> Figures:
    become_generator()
    with serving(line, "benches.apps.wsgi:app", found) as server:
        alone = healthy_client(server.port, arguments.seconds / 2, "alone")
        with others("slow", server.port, arguments.heads, arguments.bodies):
            return {**alone, **healthy_client(server.port, arguments.seconds, "beside")}


def beside_uploads(line: str, found: Found, arguments: argparse.Namespace) -> Figures:
    name = line.split()[1]
    # A WSGI application answers at once: what an upload costs others is the server's doing alone.
    path = "/count" if name in CLASSES else "/"
    application = f"benches.apps.{name if name in CLASSES else 'wsgi'}:app"
    both = sorted(os.sched_getaffinity(0))  # a worker and its thread that writes to the disk
    with serving(line, application, found, ASGI if name == "asgi" else WSGI, both) as server:
        alone = healthy_client(server.port, arguments.seconds / 2, "alone")
        with others("uploads", server.port, arguments.clients, arguments.mebibytes, path) as uploads:
            beside = healthy_client(server.port, arguments.seconds, "beside")
            uploads.terminate()
            sent = [int(word) / 1e6 / arguments.seconds for word in uploads.communicate()[0].split()]
    return {**alone, **beside, "MB/s": sum(sent), "slowest upload": min(sent), "fastest": max(sent)}


def healthy_client(port: int, seconds: float, when: str) -> Figures:
    """A request without a whole answer within PATIENCE seconds has failed."""
    seen = send(port, seconds=seconds, connections=200, rate=float(RATE), keep_alive=False, timeout=PATIENCE)
    latency = {f"{key} ms {when}": seen.latency.get(key, float("inf")) * 1e3 for key in ("p50", "p99", "max")}
    return {**latency, f"answered {when}": seen.answered, f"failed {when}": seen.failed}


@contextmanager
def others(*words: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benches.beside.others", *map(str, words)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: pinned(LOAD_CORE)
    ) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise DidNotServe("the other clients did not start")
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
