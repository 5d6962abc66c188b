"""The flags of `tricorn load`: hey's, with one dash or two, and those of the open model. From words to a `Plan`."""

from __future__ import annotations

import argparse
import base64
import functools
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tricorn import __version__
from tricorn.record import Record
from tricorn_bench.load import Http2, LoadError, Plan, Stage, Target, Tls, WebSocket, access_log, durations, target

USAGE = "tricorn load [options...] URL [URL...]"
DEFAULT_REQUESTS = 200
DEFAULT_CONNECTIONS = 50
DEFAULT_SECONDS = 10.0
"""Default duration at a rate or with users, if neither a number of requests nor a duration is given."""
OPEN_CONNECTIONS = 1000
"""Most requests at a time in the open model, unless there is a `-c`: so many connections, or fewer with `--streams`."""
MOST_SAMPLES = 1_000_000
"""Requests that `-o csv` has a line for, as hey."""
_USER_AGENT = f"tricorn-load/{__version__}"

_FIELD = re.compile(r"([\w-]+):\s*(.+)", re.ASCII | re.DOTALL)
Value = TypeVar("Value")


class Command(Record):
    """Parsed command line of `tricorn load`."""

    plan: Plan
    as_json: bool
    as_csv: bool
    hdr: str | None
    notes: tuple[str, ...]
    """Said before the run."""


def parse(words: Sequence[str]) -> Command:
    """Raises LoadError for what does not fit together, and as argparse does SystemExit for what is no flag."""
    given = parser().parse_intermixed_args(words)
    if given.o not in (None, "csv"):
        raise LoadError(f"-o {given.o}: expected csv, the one format that there is; --json prints the result as JSON.")
    if given.o and (given.json or given.websocket):
        raise LoadError(f"-o csv and {'--json' if given.json else '--websocket'}: one of them says what is printed.")
    notes: list[str] = []
    targets = _targets(given)
    plan = Plan(
        targets=targets,
        method=given.m.upper(),
        headers=_headers(given),
        body=_body(given),
        keep_alive=not given.disable_keepalive,
        follow_redirects=not given.disable_redirects and given.x is None,
        timeout=given.t,
        threads=given.cpus,
        warmup_seconds=given.warmup,
        drain_seconds=given.drain,
        remote=given.remote,
        websocket=WebSocket(size=given.message_size, deflate=given.deflate) if given.websocket else None,
        http2=_http2(given),
        tls=_tls(given, targets),
        samples=MOST_SAMPLES if given.o else 0,
        **_model(given, notes),
    )
    return Command(plan, given.json, given.o is not None, given.hdr, tuple(notes))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tricorn load",
        usage=USAGE,
        description="Load-test a server on this machine and report latencies. Flags and report are those of hey.",
        formatter_class=_OneSpelling,
        allow_abbrev=False,
    )
    parser.add_argument("url", nargs="+", metavar="URL", help="http[s]://HOST:PORT/PATH, HOST:PORT, unix:SOCKET[:PATH]")
    _hey_flags(parser.add_argument_group("as hey has them"))
    _model_flags(parser.add_argument_group("when requests are sent"))
    _http2_flags(parser.add_argument_group("HTTP/2"))
    _tls_flags(parser.add_argument_group("TLS, for https:// and wss://"))
    _other_flags(parser.add_argument_group("besides"))
    return parser


def _hey_flags(group: argparse._ArgumentGroup) -> None:
    add = functools.partial(_add, group)
    add("n", _count, None, f"requests ({DEFAULT_REQUESTS})")
    add("c", _count, None, f"connections, each with one request at a time or --streams ({DEFAULT_CONNECTIONS})")
    add("q", _rate, None, "rate limit per connection, requests per second")
    add("z", _of(durations.parse), None, "duration, such as 10s or 3m; replaces -n")
    add("m", str, "GET", "method (GET)")
    _add(group, "H", _field, [], "header 'Name: value'; may be repeated", action="append")
    add("t", _of(durations.parse), 20.0, "timeout per request in seconds, 0: none (20)")
    add("A", str, None, "Accept")
    add("d", str, None, "body")
    add("D", str, None, "body from a file")
    add("T", str, "text/html", "Content-Type of the body (text/html)")
    add("U", str, None, f"User-Agent ({_USER_AGENT})")
    add("a", str, None, "USER:PASSWORD for Basic authentication")
    add("host", str, None, "Host")
    add("cpus", _count, 1, "threads (1)")
    for name, text in (
        ("disable-compression", "do not request compressed responses"),
        ("disable-keepalive", "new connection for each request"),
        ("disable-redirects", "do not follow redirects"),
    ):
        _switch(group, name, text)
    add("x", str, None, "proxy as HOST:PORT; redirects are not followed")
    add("o", str, None, "csv: one line per response instead of the report")


def _model_flags(group: argparse._ArgumentGroup) -> None:
    add = functools.partial(_add, group)
    add("rate", _rate, None, "requests per second (open loop); latency counts from the scheduled time")
    _switch(group, "poisson", "random intervals between requests instead of equal ones")
    add(
        "ramp", _of(durations.parse_ramp), None, "change the rate linearly: DURATION[:RATE],…, such as 30s:1000,1m:1000"
    )
    add("replay", str, None, "replay an access log at its own times; combined format or tricorn's JSON; -: stdin")
    add("replay-speed", _rate, 1.0, "speed factor for --replay (1)")
    add("users", _count, None, "number of users, each with a think time between requests")
    add("hatch-rate", _rate, None, "users started per second")
    add("think", _of(durations.parse_range), None, "think time of the users, such as 5s-15s")


def _http2_flags(group: argparse._ArgumentGroup) -> None:
    text = "use HTTP/2: by ALPN over https://, with prior knowledge over http://"
    group.add_argument("--http2", "-http2", "-h2", "--h2", dest="http2", action="store_true", help=text)
    _add(group, "streams", _count, None, "concurrent requests on each connection (1)")


def _tls_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-k", "--insecure", action="store_true", help="do not verify the server's certificate")
    add = functools.partial(_add, group)
    add("cacert", str, None, "trusted certificates instead of the system's (PEM)")
    add("cert", str, None, "client certificate (PEM)")
    add("key", str, None, "key of --cert, if in another file")
    add("tls-min", _version, "1.2", "minimum version (1.2)")
    add("tls-max", _version, "1.3", "maximum version (1.3)")
    add("ciphers", _suites, (), "cipher suites to offer, comma-separated, such as TLS_AES_128_GCM_SHA256")
    _switch(group, "no-resume", "a full handshake for each connection; otherwise tickets of the server are used")
    _switch(group, "no-post-quantum", "X25519MLKEM768 is not offered for the exchange of keys")


def _other_flags(group: argparse._ArgumentGroup) -> None:
    add = functools.partial(_add, group)
    add("weights", _weights, None, "how often each URL, such as 3,1")
    add("unix", str, None, "connect to this socket, whatever the URL's host is")
    add("warmup", _of(durations.parse), 0.0, "of load before the counting begins")
    add("drain", _of(durations.parse), 5.0, "requests under way at the end are waited for so long (5s)")
    _switch(group, "websocket", "messages and their echoes instead of requests")
    add("message-size", _count, 125, "bytes of a message (125)")
    _switch(group, "deflate", "with permessage-deflate")
    _switch(group, "json", "the result as JSON")
    add("hdr", str, None, "writes the percentiles to a file, for the plotter of HdrHistogram")
    _switch(group, "remote", "another machine may be loaded: only servers that you may load")


def _add(
    group: argparse._ArgumentGroup,
    name: str,
    kind: Callable[[str], Any],
    default: object,
    text: str,
    action: str = "store",
) -> None:
    metavar = _METAVARS.get(name, "N")
    names = [f"-{name}", f"--{name}"] if len(name) <= 4 and name not in _LONG else [f"--{name}", f"-{name}"]
    dest = name.replace("-", "_")
    group.add_argument(*names, dest=dest, type=kind, default=default, metavar=metavar, help=text, action=action)


_LONG = {"rate", "ramp", "unix", "hdr", "host", "cpus", "cert", "key"}
_METAVARS = {
    **dict.fromkeys(("z", "t", "warmup", "drain"), "DURATION"),
    **dict.fromkeys(("D", "replay", "unix", "hdr", "cacert", "cert", "key"), "FILE"),
    **dict.fromkeys(("tls-min", "tls-max"), "1.2|1.3"),
    **dict.fromkeys(("m", "A", "T", "U", "a", "host", "d", "x", "o"), "TEXT"),
    "H": "FIELD",
    "think": "LOW-HIGH",
    "ramp": "STAGES",
    "weights": "N,N,…",
}


class _OneSpelling(argparse.HelpFormatter):
    """The help shows the usual spelling of a flag; the other number of dashes does as well."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.dest == "help":
            return super()._format_action_invocation(action)
        return " ".join([action.option_strings[0], *([] if action.nargs == 0 else [str(action.metavar)])])


def _switch(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    group.add_argument(f"--{name}", f"-{name}", dest=name.replace("-", "_"), action="store_true", help=text)


def _of(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """The same function, with argparse's error."""

    def checked(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return rate


def _version(text: str) -> str:
    if text not in ("1.2", "1.3"):
        raise argparse.ArgumentTypeError(f"expected 1.2 or 1.3, got {text!r}")
    return text


def _suites(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _field(text: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected 'Name: value', got {text!r}")
    return found[1], found[2]


def _weights(text: str) -> tuple[float, ...]:
    return tuple(_rate(part) for part in text.split(","))


def _targets(given: argparse.Namespace) -> tuple[Target, ...]:
    urls = [target.on_socket(url, given.unix) for url in given.url] if given.unix else given.url
    weights = given.weights or (1.0,) * len(urls)
    if len(weights) != len(urls):
        raise LoadError(f"--weights: expected {len(urls)} numbers, one for each URL, got {len(weights)}.")
    if given.x and (given.unix or given.websocket):
        other = "--unix" if given.unix else "--websocket"
        raise LoadError(f"-x and {other}: a proxy is asked for http:// URLs, over TCP.")
    if given.x and any(target.is_secure(url) for url in urls):
        raise LoadError("-x and https://: a tunnel through a proxy (CONNECT) is not in this version.")
    names = [_server_name(given, url) for url in given.url]
    targets = tuple(Target(url, weight, given.x, name) for url, weight, name in zip(urls, weights, names, strict=True))
    for one in targets:
        one.address  # noqa: B018  (raises LoadError for what is no URL)
    return targets


def _server_name(given: argparse.Namespace, url: str) -> str | None:
    """Returns the TLS server name: from the Host header, or from the URL, also over a unix socket."""
    if not target.is_secure(url):
        return None
    fields = [value for name, value in given.H if name.lower() == "host"]
    if given.host or fields:
        return target.named(given.host or fields[0])
    return Target(url).server_name if given.unix else None


def _tls(given: argparse.Namespace, targets: Sequence[Target]) -> Tls:
    if given.insecure and given.cacert:
        raise LoadError("-k and --cacert: certificates are either all taken, or checked; leave one of them out.")
    tls = Tls(
        verify=not given.insecure,
        ca_file=given.cacert,
        cert_file=given.cert,
        key_file=given.key,
        minimum=given.tls_min,
        maximum=given.tls_max,
        resume=not given.no_resume,
        post_quantum=not given.no_post_quantum,
        suites=given.ciphers,
    )
    if tls != Tls() and not any(one.is_secure for one in targets):
        raise LoadError("There is no https:// or wss:// among the URLs, and the flags of TLS are for these.")
    return tls


def _http2(given: argparse.Namespace) -> Http2 | None:
    if not given.http2:
        if given.streams:
            raise LoadError("--streams: only HTTP/2 has several requests on a connection; add --http2.")
        return None
    for name, reason in (
        ("x", "a proxy is asked over HTTP/1.1"),
        ("websocket", "WebSockets over HTTP/2 are not in this version"),
    ):
        if getattr(given, name):
            raise LoadError(f"--http2 and {'-' if len(name) == 1 else '--'}{name}: {reason}; leave one of them out.")
    for name, reason in (
        ("users", "each user has a connection with one request at a time"),
        ("disable_keepalive", "a connection for each request has one stream"),
    ):
        if getattr(given, name) and given.streams:
            raise LoadError(f"--streams and --{name.replace('_', '-')}: {reason}; leave one of them out.")
    return Http2(given.streams or 1)


def _headers(given: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Returns the given headers, then defaults for those not given."""
    headers: list[tuple[str, str]] = list(given.H)
    if given.a is not None:
        user, found, password = given.a.partition(":")
        if not found:
            raise LoadError(f"-a: expected USER:PASSWORD, got {given.a!r}.")
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers.append(("Authorization", f"Basic {credentials}"))
    if given.host:
        headers.insert(0, ("Host", given.host))
    has_body = given.d is not None or given.D is not None
    defaults = (
        ("Accept", given.A),
        ("User-Agent", given.U or _USER_AGENT),
        ("Accept-Encoding", None if given.disable_compression else "gzip"),
        ("Content-Type", given.T if has_body else None),
    )
    known = {name.lower() for name, _ in headers}
    headers += [(name, value) for name, value in defaults if value and name.lower() not in known]
    return tuple(headers)


def _body(given: argparse.Namespace) -> bytes:
    if given.D is None:
        return (given.d or "").encode()
    try:
        return Path(given.D).read_bytes()
    except OSError as error:
        raise LoadError(f"-D {given.D}: {error.strerror}.") from None


def _model(given: argparse.Namespace, notes: list[str]) -> dict[str, Any]:
    """The fields of `Plan` that say when requests are sent, and how many."""
    kinds = [name for name in ("rate", "replay", "users", "q") if getattr(given, name)]
    if len(kinds) > 1 or (given.ramp and kinds not in ([], ["rate"])):
        names = " and ".join(
            f"--{name}" if len(name) > 1 else f"-{name}" for name in [*kinds, *["ramp"][: bool(given.ramp)]]
        )
        raise LoadError(f"{names}: each says when requests are sent; one of them can.")
    if given.users and given.c:
        raise LoadError("--users and -c: each says how many clients there are; one of them can.")
    is_open = bool(given.rate or given.ramp or given.replay)
    if not is_open and given.poisson:
        raise LoadError("--poisson is about the gaps of --rate or --ramp.")
    if is_open and (given.think or given.hatch_rate):
        raise LoadError("--think and --hatch-rate are about clients: they go with --users.")
    most = max(1, OPEN_CONNECTIONS // (given.streams or 1)) if is_open else DEFAULT_CONNECTIONS
    connections = given.users or given.c or most
    model: dict[str, Any] = {"connections": connections, **_bounds(given)}
    if given.replay:
        log = _log(given.replay, given.replay_speed)
        model["replay"] = log.requests
        skipped = f" {log.skipped} lines are no requests." if log.skipped else ""
        notes.append(f"{len(log.requests)} requests within {log.requests[-1].offset:.0f} s.{skipped}")
    elif is_open:
        ramp = _ramp(given)
        model.update(rate=None if ramp and given.rate is None else _begin(given), ramp=ramp, poisson=given.poisson)
    else:
        model.update(hatch_rate=given.hatch_rate, think=given.think, pace=given.q)
        if model["requests"] is not None and model["requests"] < connections:
            raise LoadError(f"-n cannot be less than -c: {model['requests']} requests for {connections} connections.")
    return model


def _bounds(given: argparse.Namespace) -> dict[str, Any]:
    if given.z is not None:
        return {"requests": None, "seconds": given.z}
    if given.n is not None:
        return {"requests": given.n, "seconds": None}
    if given.replay:
        return {"requests": None, "seconds": None}
    if given.ramp:
        return {"requests": None, "seconds": sum(seconds for seconds, _ in given.ramp) or DEFAULT_SECONDS}
    if given.rate or given.users or given.websocket:
        return {"requests": None, "seconds": DEFAULT_SECONDS}
    return {"requests": DEFAULT_REQUESTS, "seconds": None}


def _ramp(given: argparse.Namespace) -> tuple[Stage, ...]:
    stages = given.ramp or ()
    if given.rate is None and any(rate is None for _, rate in stages):
        raise LoadError("--ramp: to which rate? Such as --ramp 30s:1000, or --ramp 30s --rate 1000.")
    return tuple(Stage(seconds, given.rate if rate is None else rate) for seconds, rate in stages)


def _begin(given: argparse.Namespace) -> float:
    """The rate at the beginning: a ramp whose end is `--rate` begins with nothing."""
    rate: float = 0.0 if any(rate is None for _, rate in given.ramp or ()) else given.rate
    return rate


def _log(path: str, speed: float) -> access_log.Log:
    try:
        if path == "-":
            return access_log.read(sys.stdin, speed)
        with open(path, encoding="utf-8", errors="replace") as lines:
            return access_log.read(lines, speed)
    except OSError as error:
        raise LoadError(f"--replay {path}: {error.strerror}.") from None
