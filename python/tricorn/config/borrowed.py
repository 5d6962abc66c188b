"""Flags of uvicorn, hypercorn and granian, and what each becomes here: one row for each.

    Sets      a setting of ours, or several
    Nothing   it is accepted and has no effect: what it chooses among does not exist here, or is always so
    Refused   it asks for what is not there
    Ours      the flag is ours as well, and means something else

Flags that mean the same here are only listed (`SAME`). The others are understood in full, never by a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tricorn.config import doors
from tricorn.config.unavailable import Takes
from tricorn.config.validators import Invalid
from tricorn.record import Record, replace

UVICORN, HYPERCORN, GRANIAN = "uvicorn", "hypercorn", "granian"
SERVERS = (UVICORN, HYPERCORN, GRANIAN)


class Sets(Record):
    """Raw values of settings, by their names."""

    settings: str
    """Counterpart as the documents show it."""
    values: Callable[[str], Mapping[str, object]]
    takes: Takes = Takes.VALUE


class Nothing(Record):
    why: str
    takes: Takes = Takes.VALUE


class Refused(Record):
    sentence: str
    takes: Takes = Takes.VALUE


class Ours(Record):
    note: str


class Borrowed(Record):
    flags: str
    """Separated by spaces."""
    servers: tuple[str, ...]
    becomes: Sets | Nothing | Refused | Ours


class NotUnderstood(ValueError):
    """A value that the other server would refuse, too, or that it has a choice of and we have not."""


def setting(name: str, convert: Callable[[str], object] = str) -> Sets:
    return Sets(f"`{name}`", lambda text: {name: convert(text)})


def switch(name: str, value: object, shown: str | None = None) -> Sets:
    """A flag without a value."""
    return Sets(shown or f"`{name} = {value!r}`", lambda _: {name: value}, Takes.NOTHING)


def words(shown: str, meanings: Mapping[str, Mapping[str, object]]) -> Sets:
    def values(text: str) -> Mapping[str, object]:
        if text not in meanings:
            raise NotUnderstood(f"expected one of {', '.join(meanings)}, got {text!r}")
        return meanings[text]

    return Sets(shown, values)


def _seconds(text: str) -> str:
    """granian's durations: `90`, `90s`, `1m30s`, `2h`, `1d`."""
    if not re.fullmatch(r"\d+|(\d+[smhd])+", text):
        raise NotUnderstood(f"expected seconds, or a duration such as 1m30s, got {text!r}")
    if text.isdigit():
        return text
    return str(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text)))


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _milliseconds(text: str) -> float:
    try:
        return int(text) / 1000
    except ValueError:
        raise NotUnderstood(f"expected milliseconds, got {text!r}") from None


def _umask(text: str) -> int:
    """The socket's, and no more: directories that the application makes can still be entered."""
    try:
        return 0o066 & ~int(text, 8)
    except ValueError:
        raise NotUnderstood(f"expected an octal number such as 660, got {text!r}") from None


def _loop(text: str) -> str:
    return "asyncio" if text == "none" else text


def _concurrency(text: str) -> Mapping[str, object]:
    return {"worker_connections": text, "queue_limit": "1"}


def _read_timeout(text: str) -> Mapping[str, object]:
    return {"header_timeout": text, "body_timeout": text}


def _in_the_clear(text: str) -> str:
    try:
        return str(replace(doors.parse(text), tls=False))
    except Invalid as error:
        raise NotUnderstood(f"{error}, got {text!r}") from None


def _ciphers(text: str) -> str | None:
    """uvicorn's default leaves out what every client has now; there it has no effect on TLS 1.3."""
    return None if text == "TLSv1" else text


_PASSWORD = "keys are not encrypted: `openssl pkey -in key.pem -out plain.pem` decrypts one."
_HTTP2 = {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge"}
_ONE_PARSER = "there is one implementation"
_SEE_LIMITS = "see `limit_request_line`, `limit_request_fields` and `limit_request_field_size`"
_NO_RUNTIME = "there is no runtime beside the workers' threads"
_METRICS = "use --admin-bind HOST:PORT instead: it serves tricorn's metrics at /metrics, beside /healthz and /readyz."
_STATIC = "use --static-map PREFIX=DIR, with max-age=SECONDS behind a comma: --static-map /static=assets,max-age=86400."
_FLAG = Takes.NOTHING

SAME = {
    UVICORN: "--reload --workers --log-config --log-level --forwarded-allow-ips --root-path --backlog --header "
    "--no-server-header --no-date-header --reload-dir --reload-include --reload-exclude --env-file --factory --version "
    "--help",
    HYPERCORN: "--access-logfile --access-logformat --backlog -b --bind -D --daemon --error-logfile --log-file "
    "--graceful-timeout --max-requests --max-requests-jitter -g --group --keep-alive --log-level -p --pid --reload "
    "--root-path -m --umask -u --user --websocket-ping-interval -w --workers --certfile --keyfile --ca-certs "
    "--cert-reqs --ciphers -h --help",
    GRANIAN: "--workers --backlog --log-level --log-config --factory --reload --http2-max-concurrent-streams --version "
    "--help",
}
"""The flags that are written and mean the same here."""

BORROWED = (
    # Where the server listens
    Borrowed("--host", (UVICORN, GRANIAN), Sets("`bind`, with `--port`", lambda text: {"host": text})),
    Borrowed("--port", (UVICORN, GRANIAN), Sets("`bind`, with `--host`", lambda text: {"port": text})),
    Borrowed("--uds", (UVICORN, GRANIAN), Sets("`bind = unix:…`", lambda text: {"bind": f"unix:{text}"})),
    Borrowed("--fd", (UVICORN,), Sets("`bind = fd://…`", lambda text: {"bind": f"fd://{text}"})),
    Borrowed("--uds-permissions", (GRANIAN,), setting("umask", _umask)),
    Borrowed("--insecure-bind", (HYPERCORN,), setting("bind", _in_the_clear)),
    Borrowed("--quic-bind", (HYPERCORN,), Refused("HTTP/3 is not available in tricorn.")),
    Borrowed(
        "--server-name",
        (HYPERCORN,),
        Refused("a front end chooses by the host, or the application (Django: ALLOWED_HOSTS; Starlette: TrustedHost)."),
    ),
    # The application
    Borrowed("--app-dir", (UVICORN,), setting("pythonpath")),
    Borrowed("--working-dir", (GRANIAN,), setting("chdir")),
    Borrowed("--env-files", (GRANIAN,), setting("env_file")),
    Borrowed("--no-factory", (GRANIAN,), switch("factory", False)),
    Borrowed(
        "--interface",
        (UVICORN, GRANIAN),
        words(
            "`worker_class` (`asgi`, `asgi3`, `asginl`, `wsgi`); `auto` is the default; `asgi2` and `rsgi` are refused",
            {
                "auto": {},
                "asgi": {"worker_class": "asgi"},
                "asgi3": {"worker_class": "asgi"},
                "asginl": {"worker_class": "asgi", "asgi_lifespan": "off"},
                "wsgi": {"worker_class": "sync"},
            },
        ),
    ),
    Borrowed("--lifespan", (UVICORN,), setting("asgi_lifespan")),
    Borrowed("--url-path-prefix", (GRANIAN,), setting("root_path")),
    Borrowed("--reset-contextvars", (UVICORN,), Nothing("each request has a context of its own", _FLAG)),
    # Processes and threads
    Borrowed(
        "-k --worker-class", (HYPERCORN,), Ours("`asyncio` and `uvloop` are understood as well; trio is not served")
    ),
    Borrowed("--loop", (UVICORN, GRANIAN), setting("asgi_loop", _loop)),
    Borrowed("--blocking-threads", (GRANIAN,), setting("threads")),
    Borrowed("--blocking-threads-idle-timeout", (GRANIAN,), Nothing("threads stay")),
    Borrowed("--runtime-threads --runtime-blocking-threads --runtime-mode", (GRANIAN,), Nothing(_NO_RUNTIME)),
    Borrowed("--task-impl", (GRANIAN,), Nothing("tasks are asyncio's")),
    Borrowed("--limit-concurrency", (UVICORN,), Sets("`worker_connections` and `queue_limit = 1`", _concurrency)),
    Borrowed("--backpressure", (GRANIAN,), setting("worker_connections")),
    Borrowed("--limit-max-requests", (UVICORN,), setting("max_requests")),
    Borrowed("--limit-max-requests-jitter", (UVICORN,), setting("max_requests_jitter")),
    Borrowed("--timeout-graceful-shutdown", (UVICORN,), setting("graceful_timeout")),
    Borrowed("--workers-kill-timeout", (GRANIAN,), setting("graceful_timeout", _seconds)),
    Borrowed("--workers-lifetime", (GRANIAN,), setting("max_worker_lifetime", _seconds)),
    Borrowed("--workers-max-rss", (GRANIAN,), setting("max_worker_memory", lambda text: f"{text}M")),
    Borrowed("--timeout-worker-healthcheck", (UVICORN,), Nothing("liveness is in shared memory; see `timeout`")),
    Borrowed(
        "--respawn-failed-workers --no-respawn-failed-workers",
        (GRANIAN,),
        Nothing("workers that fail are always replaced", _FLAG),
    ),
    Borrowed("--respawn-interval", (GRANIAN,), Nothing("failing workers are replaced with exponential back-off")),
    Borrowed("--rss-sample-interval --rss-samples", (GRANIAN,), Nothing("memory is looked at from time to time")),
    Borrowed("--process-name", (GRANIAN,), setting("proc_name")),
    Borrowed("--pid-file", (GRANIAN,), setting("pidfile")),
    Borrowed("-c --config", (HYPERCORN,), Ours("a Python file; hypercorn's TOML file is not read")),
    Borrowed(
        "--debug",
        (HYPERCORN,),
        switch("raw_env", "PYTHONASYNCIODEBUG=1", "`raw_env` (`PYTHONASYNCIODEBUG=1`, asyncio's)"),
    ),
    # Connections and requests
    Borrowed("--timeout-keep-alive", (UVICORN,), setting("keepalive")),
    Borrowed("--http1-keep-alive", (GRANIAN,), Nothing("it is the default; see `keepalive`", _FLAG)),
    Borrowed("--no-http1-keep-alive", (GRANIAN,), switch("keepalive", 0)),
    Borrowed("--http1-header-read-timeout", (GRANIAN,), setting("header_timeout", _milliseconds)),
    Borrowed("--read-timeout", (HYPERCORN,), Sets("`header_timeout` and `body_timeout`", _read_timeout)),
    Borrowed("--h11-max-incomplete-event-size", (UVICORN,), Nothing(_SEE_LIMITS)),
    Borrowed("--http1-buffer-size", (GRANIAN,), Nothing(_SEE_LIMITS)),
    Borrowed(
        "--http1-pipeline-flush --no-http1-pipeline-flush", (GRANIAN,), Nothing("each response is sent at once", _FLAG)
    ),
    Borrowed(
        "--proxy-headers",
        (UVICORN,),
        Nothing("it is the default; see `trusted_proxy_headers`", _FLAG),
    ),
    Borrowed("--no-proxy-headers", (UVICORN,), switch("forwarded_allow_ips", "", "`forwarded_allow_ips`, empty")),
    Borrowed("--server-header", (UVICORN,), switch("server_header", True, "`server_header`, the default")),
    Borrowed("--date-header", (UVICORN,), switch("date_header", True)),
    Borrowed(
        "--http",
        (UVICORN, GRANIAN),
        words(
            f"no effect: {_ONE_PARSER}; granian's `1` and `2` set `http_protocols`, `2` also `http2_cleartext`; "
            "`auto` is HTTP/1",
            {
                **{word: {} for word in ("auto", "h11", "httptools", "zttp")},
                "1": {"http_protocols": "h1"},
                "2": {**_HTTP2, "http_protocols": "h2"},
            },
        ),
    ),
    Borrowed(
        "--http2",
        (UVICORN,),
        Sets(
            "`http_protocols = h2,h1` and `http2_cleartext = prior-knowledge`; `--http zttp` is not needed",
            lambda _: _HTTP2,
            _FLAG,
        ),
    ),
    Borrowed(
        "--http2-adaptive-window --no-http2-adaptive-window",
        (GRANIAN,),
        Nothing("windows always grow on demand, up to `http2_max_window`", _FLAG),
    ),
    Borrowed("--http2-initial-connection-window-size", (GRANIAN,), Nothing("see `http2_max_window`")),
    Borrowed("--http2-initial-stream-window-size", (GRANIAN,), setting("http2_initial_window_size")),
    Borrowed(
        "--http2-keep-alive-interval --http2-keep-alive-timeout",
        (GRANIAN,),
        Nothing("no PING frames are sent to idle clients; see `http2_idle_timeout`"),
    ),
    Borrowed(
        "--http2-max-frame-size", (GRANIAN,), Ours("accepted without effect: clients send frames of up to 16,384 bytes")
    ),
    Borrowed("--http2-max-headers-size", (GRANIAN,), setting("http2_max_header_list_size")),
    Borrowed("--http2-max-send-buffer-size", (GRANIAN,), Nothing("see `response_buffer_size`")),
    # WebSockets
    Borrowed(
        "--ws",
        (UVICORN,),
        words(
            f"no effect: {_ONE_PARSER}",
            {word: {} for word in ("auto", "websockets", "websockets-sansio", "wsproto")},
        ),
    ),
    Borrowed("--ws", (GRANIAN,), Ours("uvicorn's `--ws` takes a value; WebSockets need no flag")),
    Borrowed("--no-ws", (GRANIAN,), Refused("an application that accepts no WebSockets has none.", _FLAG)),
    Borrowed("--ws-max-size", (UVICORN,), setting("websocket_max_message_size")),
    Borrowed("--ws-max-queue", (UVICORN,), Nothing("messages are read on demand: TCP flow control stops the client")),
    Borrowed("--ws-ping-interval", (UVICORN,), setting("websocket_ping_interval")),
    Borrowed("--ws-ping-timeout", (UVICORN,), setting("websocket_ping_timeout")),
    Borrowed("--ws-per-message-deflate", (UVICORN,), setting("websocket_compression")),
    # Logs
    Borrowed("--access-log", (UVICORN, GRANIAN), switch("accesslog", "-")),
    Borrowed("--access-log", (HYPERCORN,), Ours("uvicorn's and granian's, which takes no value: see `accesslog`")),
    Borrowed("--no-access-log", (UVICORN, GRANIAN), switch("accesslog", None)),
    Borrowed("--access-log-fmt", (GRANIAN,), Refused("its atoms are granian's: --access-logformat has gunicorn's.")),
    Borrowed("--error-log", (HYPERCORN,), setting("errorlog")),
    Borrowed("--log-config", (HYPERCORN,), Ours("told by its extension, .json or .yaml, and not by a prefix")),
    Borrowed("--log", (GRANIAN,), Nothing("it is the default", _FLAG)),
    Borrowed("--no-log", (GRANIAN,), switch("errorlog", "/dev/null")),
    Borrowed("--use-colors", (UVICORN,), Nothing("a log on a terminal has colours, elsewhere FORCE_COLOR=1", _FLAG)),
    Borrowed("--no-use-colors", (UVICORN,), switch("log_format", "gunicorn")),
    Borrowed("--statsd-host", (HYPERCORN,), Ours("the metrics have gunicorn's names, without `hypercorn.`")),
    Borrowed("--statsd-prefix", (HYPERCORN,), Ours("the same")),
    Borrowed("--metrics", (GRANIAN,), Refused(_METRICS, _FLAG)),
    Borrowed("--no-metrics", (GRANIAN,), Nothing("there are none without `admin_bind`", _FLAG)),
    Borrowed(
        "--metrics-scrape-interval --metrics-address --metrics-port", (GRANIAN,), Nothing("it belongs to `--metrics`")
    ),
    # Development
    Borrowed("--reload-delay", (UVICORN,), Nothing("see `reload_engine`")),
    Borrowed("--reload-tick", (GRANIAN,), Nothing("see `reload_engine`")),
    Borrowed("--no-reload", (GRANIAN,), switch("reload", False)),
    Borrowed("--reload-paths", (GRANIAN,), setting("reload_dirs")),
    Borrowed("--reload-ignore-dirs --reload-ignore-paths", (GRANIAN,), setting("reload_excludes")),
    Borrowed(
        "--reload-ignore-patterns",
        (GRANIAN,),
        Refused("--reload-exclude takes patterns of the shell's, such as *.tmp."),
    ),
    Borrowed(
        "--reload-ignore-worker-failure --no-reload-ignore-worker-failure",
        (GRANIAN,),
        Nothing("an application that cannot be loaded is shown with its traceback until it can", _FLAG),
    ),
    # TLS
    Borrowed("--ssl-certfile", (UVICORN,), setting("certfile")),
    Borrowed("--ssl-certificate", (GRANIAN,), setting("certfile")),
    Borrowed("--ssl-keyfile", (UVICORN, GRANIAN), setting("keyfile")),
    Borrowed("--ssl-version", (UVICORN,), Ours("ignored, as gunicorn's: see `tls_min_version`")),
    Borrowed("--ssl-keyfile-password", (UVICORN, GRANIAN), Refused(_PASSWORD)),
    Borrowed("--keyfile-password", (HYPERCORN,), Refused(_PASSWORD)),
    Borrowed("--ssl-cert-reqs", (UVICORN,), setting("cert_reqs")),
    Borrowed("--verify-mode", (HYPERCORN,), setting("cert_reqs")),
    Borrowed("--ssl-ca-certs", (UVICORN,), setting("ca_certs")),
    Borrowed("--ssl-ca", (GRANIAN,), setting("ca_certs")),
    Borrowed("--ssl-crl", (GRANIAN,), setting("tls_crl_file")),
    Borrowed("--ssl-ciphers", (UVICORN,), setting("ciphers", _ciphers)),
    Borrowed("--ssl-protocol-min", (GRANIAN,), setting("tls_min_version")),
    Borrowed("--ssl-client-verify", (GRANIAN,), switch("cert_reqs", 2)),
    Borrowed("--no-ssl-client-verify", (GRANIAN,), switch("cert_reqs", 0)),
    # Files
    Borrowed("--static-path-mount", (GRANIAN,), Refused(_STATIC)),
    Borrowed(
        "--static-path-route --static-path-dir-to-file --static-path-expires",
        (GRANIAN,),
        Nothing("it belongs to `--static-path-mount`"),
    ),
)
"""Flags of other servers, in the order of the documents. Flags with the same meaning share a row."""


def word(flag: str) -> str:
    """A flag as a keyword argument."""
    return flag.lstrip("-").replace("-", "_")


def rows(server: str) -> dict[str, Sets | Nothing | Refused | Ours]:
    """Yields the flags of a server that mean something else here, with their counterparts."""
    return {flag: row.becomes for row in BORROWED if server in row.servers for flag in row.flags.split()}


def names_of(server: str) -> frozenset[str]:
    """The flags of another server, as the keyword arguments of its programs."""
    return frozenset(("headers", *map(word, (*SAME[server].split(), *rows(server)))))
