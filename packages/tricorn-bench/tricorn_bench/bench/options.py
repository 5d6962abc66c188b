"""The command line of `tricorn bench`."""

from __future__ import annotations

import argparse

from tricorn_bench.bench.presets import PRESETS
from tricorn_bench.bench.servers import SERVERS

EPILOG = """\
A configuration is one quoted argument: a worker class of tricorn with flags ('gevent -w 4 --worker-connections 1000'),
of gunicorn ('gunicorn gevent -w 4'), or another server with its flags ('uvicorn --workers 4'). Without configurations
and without a preset, every worker class that can run the application is measured.

examples:
  tricorn bench shop:app "gevent -w 4" "gthread -w 4 --threads 8" --against gunicorn --path /cart
  tricorn bench shop:app --preset classes --against gunicorn -o report
  tricorn bench shop:app --preset users gevent --levels 10,100,1000
  tricorn bench --compare before/result.json after/result.json --fail-if 'p99 > 1.1x'
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tricorn bench",
        description="Benchmark an application under several configurations and servers, in turns.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("application", nargs="?", metavar="APP", help="application, as module:attribute")
    made.add_argument("configurations", nargs="*", metavar="CONFIGURATION", help="worker class and flags, quoted")
    what = made.add_argument_group("configurations")
    questions = "; ".join(f"{preset.name}: {preset.question}" for preset in PRESETS.values())
    what.add_argument("--preset", choices=PRESETS, help=f"predefined benchmark ({questions})")
    what.add_argument("--levels", type=_numbers, metavar="N,N,…", help="override the levels of the preset")
    what.add_argument(
        "--against",
        type=words,
        default=(),
        metavar="SERVER,…",
        help=f"also measure other servers: {', '.join(name for name in SERVERS if name != 'tricorn')}",
    )
    what.add_argument("--python", metavar="PATH", help="Python interpreter of the servers (default: this one)")
    what.add_argument("--port", type=int, help="port of the servers (default: a free one)")
    what.add_argument("--host", default="127.0.0.1", help="local address of the servers")
    request = made.add_argument_group("request")
    add_request(request)
    request.add_argument(
        "--websocket", type=count, default=0, metavar="BYTES", help="echo WebSocket messages of this size instead"
    )
    request.add_argument("--deflate", action="store_true", help="permessage-deflate for --websocket")
    _add_load(made.add_argument_group("load"))
    _add_http2(made.add_argument_group("HTTP/2"))
    _add_tls(made.add_argument_group("TLS"))
    _add_locust(made.add_argument_group("load from locust (tricorn[locust])"))
    report = made.add_argument_group("report")
    report.add_argument("-o", "--output", metavar="DIR", help="write JSON, Markdown, HTML and charts to this directory")
    report.add_argument(
        "--resume", action="store_true", help="keep the results in DIR/result.json and measure only what is missing"
    )
    report.add_argument(
        "--compare", nargs=2, metavar=("A.json", "B.json"), help="compare two results without measuring"
    )
    report.add_argument("--report", metavar="A.json", help="print the report of a result without measuring")
    report.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit with 5 if true: 'p99 > 1.1x' (relative to the first configuration, or A.json), 'errors > 0'",
    )
    return made


def add_request(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--path", default="/", help="path and query (default: /)")
    group.add_argument("-m", "--method", default="GET")
    group.add_argument("-H", "--header", action="append", default=[], type=_field, metavar="'Name: value'")
    group.add_argument("-d", "--data", default="", help="request body")
    group.add_argument("--data-file", metavar="FILE", help="request body from a file")
    group.add_argument("--close", action="store_true", help="open a new connection for each request")
    group.add_argument(
        "--timeout", type=positive, default=20.0, metavar="SECONDS", help="timeout of a request (default: 20)"
    )


def _add_load(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-c", "--connections", type=count, default=64, help="connections (default: 64)")
    group.add_argument("--rate", type=positive, help="requests per second (open loop)")
    group.add_argument("--seconds", "--duration", type=positive, help="seconds of load per round (default: 3)")
    group.add_argument(
        "--warmup",
        type=_positive_or_zero,
        default=1.0,
        metavar="SECONDS",
        help="warm-up before each round (default: 1)",
    )
    group.add_argument("--rounds", type=count, default=3, help="rounds per configuration (default: 3)")
    group.add_argument(
        "--budget",
        type=positive,
        metavar="SECONDS",
        help="total time; shortens rounds to 1 s at least (preset classes without --seconds: 150)",
    )
    group.add_argument(
        "--think",
        type=_range,
        default=(5.0, 15.0),
        metavar="LOW,HIGH",
        help="think time of users in seconds (default: 5,15)",
    )
    group.add_argument(
        "--hatch",
        type=positive,
        default=10.0,
        metavar="SECONDS",
        help="time within which all users start (default: 10)",
    )
    group.add_argument("--cores", metavar="0,2-3", help="CPUs of the servers (default: three quarters of them)")
    group.add_argument("--load-cores", metavar="1", help="CPUs of the load generator (default: the others)")
    group.add_argument(
        "--db", metavar="DSN", help="a PostgreSQL database whose connections are counted (requires psycopg)"
    )


def _add_http2(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--http2", action="store_true", help="use HTTP/2, without --tls with prior knowledge")
    group.add_argument("--streams", type=count, metavar="N", help="concurrent requests on each connection (default: 1)")


def _add_tls(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tls", action="store_true", help="use TLS, with a temporary certificate")
    group.add_argument(
        "--tls-key", choices=("ecdsa", "rsa"), default="ecdsa", help="key type of the certificate (default: ecdsa)"
    )
    group.add_argument("--full-handshakes", action="store_true", help="disable session resumption")


def _add_locust(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--locustfile", metavar="FILE", help="generate the load with these locust users; --path is requested first"
    )
    group.add_argument("--users", type=count, metavar="N", help="number of users (default: 10)")
    group.add_argument("--hatch-rate", type=positive, metavar="N", help="users started per second (default: all)")
    group.add_argument(
        "--locust-processes", type=count, metavar="N", help="locust processes (default: one per CPU of --load-cores)"
    )
    group.add_argument("--locust-master", metavar="HOST[:PORT]", help="address for locust workers on other machines")
    group.add_argument("--expect-workers", type=count, metavar="N", help="number of locust workers to wait for")


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 10,100,1000, not {text!r}") from None
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers from 1 on, not {text!r}")
    return found


def _field(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"expected 'Name: value', not {text!r}")
    return name.strip(), value.strip()


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers such as 5,15, not {text!r}") from None
    if not 0 <= low <= high:
        raise argparse.ArgumentTypeError(f"expected the lower one first, not {text!r}")
    return low, high


def positive(text: str) -> float:
    value = _positive_or_zero(text)
    if value == 0:
        raise argparse.ArgumentTypeError("expected a number above 0")
    return value


def _positive_or_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}") from None
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, not {text!r}")
    return value


def count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, not {text!r}")
    return int(text)
