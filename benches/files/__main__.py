"""What do files and compressed answers cost?  python -m benches.files --help

One worker on a core of its own. script: a file of 50 KiB over kept connections, and the 304 for a client that has it.
download: 100 MiB over two connections. compressed: an answer of 20 KB in JSON, from an application; nginx has it as a
file. What an application costs that compresses by itself is the row `by itself`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.request import urlopen

from tricorn_bench.load import Result

from benches.files import content
from benches.harness import long_file, report
from benches.harness.load import good, send
from benches.harness.nginx import nginx
from benches.harness.process import DidNotServe, Server, become_generator
from benches.harness.servers import PATIENT, Figures, Found, in_turns, raw, serving, spent, table

MOUNT = f"/static={content.FOLDER}"
LIMIT = "nginx"
SERVERS = {
    "tricorn-sync": f"tricorn sync -w 1 {PATIENT} --static-map {MOUNT}",
    "tricorn-asgi": f"tricorn asgi -w 1 {PATIENT} --static-map {MOUNT}",
    "granian": f"granian --workers 1 --http 1 --no-ws --static-path-mount {content.FOLDER}",
    LIMIT: LIMIT,
}
PLAIN = f"tricorn sync -w 1 {PATIENT}"
CODINGS = ("gzip", "br", "zstd")
COMPRESSING = {
    "not compressed": PLAIN,
    **{f"tricorn-{coding}": f"{PLAIN} --compress {coding}" for coding in CODINGS},
    "by itself": PLAIN,
    LIMIT: LIMIT,
}
LOCATIONS = f"""location /static/ {{ alias {content.FOLDER}/; }}
        location = /{content.RECORDS} {{
            root {content.FOLDER};
            gzip on;
            types {{ application/json json; }}
            gzip_types application/json;
        }}"""
DOWNLOADS = 4


def main() -> int:
    parser = report.options("files", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=2.0, help="of load in a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = report.begin(parser)
    content.make()
    become_generator()
    pages, data, commands = [], {}, {}
    for part in arguments.parts:
        print(f"{part}:", flush=True)
        title, lines, measured = PARTS[part]
        found = in_turns({name: name for name in lines}, arguments, partial(measured, arguments))
        pages.append(table(title, found))
        data[part] = raw(found)
        commands.update(found.commands)
    report.conclude(arguments, "What files and compressed answers cost", commands, "\n\n".join(pages), data)
    return 0


@contextmanager
def started(line: str, found: Found) -> Iterator[Server]:
    if line == LIMIT:
        with nginx(found, LOCATIONS) as server:
            yield server
    elif line.startswith("tricorn asgi"):
        with serving(line, "benches.tls.app:asgi", found, "asgi") as server:
            yield server
    else:
        with serving(line, "benches.files.app:wsgi", found) as server:
            yield server


def cost(server: Server, path: str, **plan: Any) -> tuple[Result, float]:
    """What came, and CPU seconds of the server for each answer."""
    before = spent(server)
    result = send(server.port, path, **plan)
    return result, (spent(server) - before) / good(result)


def script(arguments: argparse.Namespace, name: str, found: Found) -> Figures:
    path = f"/static/{content.SCRIPT}"
    with started(SERVERS[name], found) as server:
        send(server.port, path, seconds=0.3)
        result, each = cost(server, path, seconds=arguments.seconds)
        expect(result, content.SCRIPT_LENGTH)
        figures = {"req/s": result.rate, "CPU µs/req": each * 1e6, "p99 ms": result.latency["p99"] * 1e3}
        result, each = cost(server, path, seconds=arguments.seconds, headers=(validator(server, path),))
        if set(result.statuses) == {304}:
            figures["304: CPU µs"] = each * 1e6
    return figures


def validator(server: Server, path: str) -> tuple[str, str]:
    """What a client sends that has the file already."""
    with urlopen(f"http://127.0.0.1:{server.port}{path}") as response:
        if tag := response.headers["ETag"]:
            return "If-None-Match", tag
        return "If-Modified-Since", response.headers["Last-Modified"] or ""


def download(_: argparse.Namespace, name: str, found: Found) -> Figures:
    path = f"/static/{long_file.PATH.name}"
    with started(SERVERS[name], found) as server:
        usual: dict[str, Any] = {"seconds": None}
        send(server.port, path, requests=1, connections=1, **usual)
        result, each = cost(server, path, requests=DOWNLOADS, connections=2, **usual)
        expect(result, long_file.LENGTH)
    return {"MiB/s": DOWNLOADS * long_file.LENGTH / 2**20 / result.seconds, "CPU ms": each * 1e3}


def compressed(arguments: argparse.Namespace, name: str, found: Found) -> Figures:
    coding = next((coding for coding in CODINGS if name.endswith(coding)), "gzip")
    path = "/by-itself" if name == "by itself" else f"/{content.RECORDS}"
    with started(COMPRESSING[name], found) as server:
        headers = (("Accept-Encoding", coding),)
        send(server.port, path, seconds=0.3, headers=headers)
        result, each = cost(server, path, seconds=arguments.seconds, headers=headers)
    return {"req/s": result.rate, "CPU µs/req": each * 1e6, "bytes": result["bytes"]["body"] / result.answered}


def expect(result: Result, length: int) -> None:
    """Raises DidNotServe unless each answer had so many bytes."""
    if result["bytes"]["body"] != result.answered * length:
        raise DidNotServe(f"sent {result['bytes']['body']:,} bytes in {result.answered} answers")


PARTS = {
    "script": ("A file of 50 KiB, 64 connections", SERVERS, script),
    "download": ("100 MiB from the page cache, two connections", SERVERS, download),
    "compressed": ("JSON of 20 KB, compressed for each request, 64 connections", COMPRESSING, compressed),
}

if __name__ == "__main__":
    sys.exit(main())
