"""How soon is a changed line served?  python -m benches.reload [--tries 10] [--realtime]

`tricorn --reload` serves a module, whose text is replaced again and again. A try is the time from the write to the
first answer with the new text; requests follow one another meanwhile, each over a connection of its own.
"""

from __future__ import annotations

import http.client
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benches.harness import report
from benches.harness.process import Server, free_port

ENGINES = ("watchfiles", "poll")
APPLICATION = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"{text}"]
"""
LONGEST = 30.0
REST = 1.0, 1.5
"""Seconds between two tries, at random: the old generation has left, and no try is in step with the polling."""


def main() -> int:
    parser = report.options("reload", __doc__)
    parser.add_argument("--tries", type=int, default=10, help="for each engine")
    arguments = report.begin(parser)
    data = {engine: tries(engine, arguments.tries) for engine in ENGINES}
    rows = [row(engine, found) for engine, found in data.items()]
    body = report.table(["engine", "median ms", "least", "most", "all, in order"], rows)
    commands = {engine: f"tricorn --reload --reload-engine {engine} shop:app" for engine in ENGINES}
    report.conclude(arguments, f"A changed line is served after so long: {arguments.tries} tries", commands, body, data)
    return 0


def row(engine: str, found: list[float]) -> list[str]:
    figures = (statistics.median(found), min(found), max(found))
    return [engine, *(f"{each:.0f}" for each in figures), ", ".join(f"{each:.0f}" for each in found)]


def tries(engine: str, count: int) -> list[float]:
    """Milliseconds of each."""
    with tempfile.TemporaryDirectory(prefix="tricorn-reload-") as name:
        module = Path(name) / "shop.py"
        module.write_text(APPLICATION.format(text=0))
        port = free_port()
        command = [sys.executable, "-m", "tricorn", "--chdir", name, "-b", f"127.0.0.1:{port}", "--reload"]
        with Server([*command, "--reload-engine", engine, "shop:app"], port):
            return [one(module, port, str(number)) for number in range(1, count + 1)]


def one(module: Path, port: int, text: str) -> float:
    time.sleep(random.uniform(*REST))
    begin = time.perf_counter()
    module.write_text(APPLICATION.format(text=text))
    while get(port) != text:
        if time.perf_counter() - begin > LONGEST:
            raise SystemExit(f"the new text is not served after {LONGEST:g} s")
    return (time.perf_counter() - begin) * 1e3


def get(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
