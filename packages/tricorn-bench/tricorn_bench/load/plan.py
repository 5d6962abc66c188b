"""Plan of a run: what to send and how, and its form for the generator."""

from __future__ import annotations

import base64
import json
from typing import Any

from tricorn.config.addresses import UnixAddress
from tricorn.record import Record
from tricorn_bench.load.target import Target


class Replay(Record):
    """Requests of an access log."""

    offset: float
    """Seconds from the first one."""
    method: str
    path: str


class Stage(Record):
    """The rate changes evenly, to `rate` requests per second within `seconds`."""

    seconds: float
    rate: float


class WebSocket(Record):
    """Messages that are echoed, instead of requests."""

    size: int = 125
    binary: bool = False
    deflate: bool = False


class Http2(Record):
    """Requests over HTTP/2: agreed by ALPN for https:// targets, with prior knowledge for others."""

    streams: int = 1
    """Most requests at a time on each connection; a server may allow fewer."""


class Tls(Record):
    """TLS options for https:// and wss:// targets; files are in PEM."""

    verify: bool = True
    """The certificate of the server is checked."""
    ca_file: str | None = None
    """Authorities, or the certificate of the server itself, instead of the system's authorities."""
    cert_file: str | None = None
    """The client's certificate, if the server asks for one."""
    key_file: str | None = None
    """Its key, unless that stands in `cert_file`."""
    minimum: str = "1.2"
    maximum: str = "1.3"
    resume: bool = True
    """A connection anew resumes where the server has given a ticket."""
    post_quantum: bool = True
    """X25519MLKEM768 is offered for the exchange of keys."""
    suites: tuple[str, ...] = ()
    """Cipher suites that are offered, by IANA's names; all if there are none."""

    def as_json(self) -> dict[str, Any]:
        return {
            "verify": self.verify,
            "ca_file": self.ca_file,
            "cert_file": self.cert_file,
            "key_file": self.key_file,
            "min": self.minimum,
            "max": self.maximum,
            "resumes": self.resume,
            "post_quantum": self.post_quantum,
            "suites": list(self.suites),
        }


class Plan(Record):
    """Requests for a server on this machine.

    The model is *closed* unless there is a `rate`, a `ramp` or a `replay`: each of `connections` clients sends its next
    request when the last one was answered, after a time to `think` if there is one. In the *open* model requests are
    sent when they are due, over as many connections as are needed, up to `connections`; latency counts from when they
    were due. Over HTTP/2 there are as many clients on each connection as it has streams.
    """

    targets: tuple[Target, ...]
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    connections: int = 50
    requests: int | None = None
    """Number of requests to send."""
    seconds: float | None = None
    """Duration of the load; requests under way at its end have up to `drain_seconds`."""

    rate: float | None = None
    """Requests per second; at the beginning, if there is a `ramp`."""
    poisson: bool = False
    """Random gaps between them, as of clients that know nothing of one another."""
    ramp: tuple[Stage, ...] = ()
    replay: tuple[Replay, ...] = ()
    opens_all: bool = False
    """Whether the first requests open all connections, one each (open model)."""
    any_connection: bool = False
    """Whether a request takes any free connection, instead of the one idle longest (open model)."""

    hatch_rate: float | None = None
    """Clients that begin, per second."""
    think: tuple[float, float] | None = None
    """Seconds between an answer and the client's next request: at least, at most."""
    pace: float | None = None
    """Most requests per second of each connection."""

    keep_alive: bool = True
    follow_redirects: bool = False
    timeout: float = 20.0
    """Seconds for a request and its answer; 0: without end."""
    threads: int = 1
    cpus: tuple[int, ...] = ()
    """The processors that the threads are pinned to, in turn."""
    websocket: WebSocket | None = None
    http2: Http2 | None = None
    """HTTP/2 instead of HTTP/1.1."""
    tls: Tls = Tls()
    warmup_seconds: float = 0.0
    """Seconds of load before the counting begins."""
    drain_seconds: float = 5.0
    remote: bool = False
    """Other machines may be loaded."""
    samples: int = 0
    """Number of requests whose individual outcome the result keeps."""

    @property
    def is_open(self) -> bool:
        return self.rate is not None or bool(self.ramp) or bool(self.replay)

    def as_json(self) -> dict[str, Any]:
        """Returns the plan as the generator reads it (crates/tricorn-load/src/plan.rs)."""
        return {
            "targets": [_target(target) for target in self.targets],
            "request": {
                "method": self.method,
                "headers": self.headers,
                "body": base64.b64encode(self.body).decode("ascii"),
            },
            "model": {"open": self._open()} if self.is_open else {"closed": self._closed()},
            "bounds": {
                "requests": self.requests,
                "seconds": self.seconds,
                "warmup": self.warmup_seconds,
                "drain": self.drain_seconds,
            },
            "connection": {
                "keep_alive": self.keep_alive,
                "timeout": self.timeout,
                "follows_redirects": self.follow_redirects,
                "remote": self.remote,
            },
            "tls": self.tls.as_json(),
            "threads": {"count": self.threads, "cpus": self.cpus},
            "websocket": vars(self.websocket) if self.websocket else None,
            "http2": vars(self.http2) if self.http2 else None,
            "samples": self.samples,
        }

    def encode(self) -> bytes:
        return json.dumps(self.as_json()).encode()

    def _open(self) -> dict[str, Any]:
        if self.replay:
            arrivals: dict[str, Any] = {
                "replay": {"entries": [(entry.offset, entry.method, entry.path) for entry in self.replay]}
            }
        else:
            stages = [(stage.seconds, stage.rate) for stage in self.ramp]
            arrivals = {"rate": {"rate": self.rate or 0.0, "stages": stages, "poisson": self.poisson}}
        return {
            "connections": self.connections,
            "arrivals": arrivals,
            "opens_all": self.opens_all,
            "any_connection": self.any_connection,
        }

    def _closed(self) -> dict[str, Any]:
        return {
            "connections": self.connections,
            "hatch_rate": self.hatch_rate,
            "think": self.think,
            "pace": self.pace,
        }


def _target(target: Target) -> dict[str, Any]:
    address = target.address
    where = {"unix": address.path} if isinstance(address, UnixAddress) else {"tcp": [address.host, address.port]}
    return {
        "address": where,
        "host": target.host,
        "path": target.path,
        "weight": target.weight,
        "server_name": target.server_name,
    }
