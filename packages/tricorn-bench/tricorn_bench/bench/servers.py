"""The servers that can be compared, one record each: how it is started, what it serves, what it calls its workers."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tricorn.record import Record, replace
from tricorn.self_signed import HERE, Key, make

WSGI, ASGI, TORNADO, AIOHTTP = "WSGI", "ASGI", "tornado", "aiohttp"
CERTIFICATE_DAYS = 2


class Certificate(Record):
    """Files in PEM."""

    file: str
    key_file: str
    key: Key = "ecdsa"


@contextmanager
def certificate(key: Key = "ecdsa", host: str = "127.0.0.1") -> Iterator[Certificate]:
    """Makes a certificate for the servers of a measurement; its files are gone afterwards. Raises ConfigError."""
    pair = make(list(dict.fromkeys((*HERE, host))), CERTIFICATE_DAYS, key)
    with tempfile.TemporaryDirectory(prefix="tricorn-bench-") as folder:  # only its owner may enter it
        made = Certificate(f"{folder}/certificate.pem", f"{folder}/key.pem", key)
        Path(made.file).write_text(pair.certificate)
        Path(made.key_file).write_text(pair.key)
        yield made


class Order(Record):
    """Request to start a server."""

    python: str
    application: str
    port: int
    words: tuple[str, ...]
    """Arguments of the configuration, in the server's own spelling."""
    interface: str | None = None
    admin_port: int | None = None
    """Port of tricorn's admin listener, whose metrics say where the time of requests goes."""
    host: str = "127.0.0.1"
    certificate: Certificate | None = None
    """There is TLS, with this one."""
    http2: bool = False
    """Requests come over HTTP/2: agreed by ALPN with TLS, with prior knowledge without."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def tls(self, file: str, key: str) -> tuple[str, ...]:
        """A server's flags of this spelling, if there is TLS."""
        return (file, self.certificate.file, key, self.certificate.key_file) if self.certificate else ()


class Kind(Record):
    name: str
    package: str
    """The distribution whose version is told."""
    command: Callable[[Order], list[str]]
    interfaces: tuple[str, ...] = (WSGI,)
    workers_flag: tuple[str, ...] = ()
    """Flag for the number of worker processes, in all spellings; the first one is used. Empty: there is one process."""
    classes: tuple[str, ...] = ()
    """The worker classes that it has under our names. Empty: it has none."""
    needs_attribute: bool = False
    """Whether the application has to be named `module:attribute`."""
    has_tls: bool = False
    """Whether its command can be told a certificate."""
    has_http2: bool = False
    """Whether its command can serve HTTP/2, with TLS and without."""


def _gunicorns(module: str) -> Callable[[Order], list[str]]:
    def command(order: Order) -> list[str]:
        tls = order.tls("--certfile", "--keyfile")
        http2: tuple[str, ...] = ("--http-protocols", "h2,h1") if order.http2 else ()
        if http2 and order.certificate is None:
            http2 += ("--http2-cleartext", "prior-knowledge")
        return [order.python, "-m", module, "-b", order.address, *tls, *http2, *order.words, order.application]

    return command


def _tricorn(order: Order) -> list[str]:
    admin = () if order.admin_port is None else ("--admin-bind", f"127.0.0.1:{order.admin_port}")
    return _gunicorns("tricorn")(replace(order, words=(*admin, *order.words)))


def _host_and_port(*before: str, tls: tuple[str, str], after: Sequence[str] = ()) -> Callable[[Order], list[str]]:
    """`tls`: its flags for the files of certificate and key."""

    def command(order: Order) -> list[str]:
        address = ("--host", order.host, "--port", str(order.port), *order.tls(*tls))
        return [order.python, "-m", *before, *address, *after, *order.words, order.application]

    return command


def _granian(order: Order) -> list[str]:
    interface = "asgi" if order.interface == ASGI else "wsgi"
    tls = ("--ssl-certificate", "--ssl-keyfile")
    return _host_and_port("granian", "--interface", interface, tls=tls, after=("--backpressure", "20000"))(order)


def _hypercorn(order: Order) -> list[str]:
    # It tells ASGI and WSGI apart by itself, but for callables of other kinds.
    application = f"wsgi:{order.application}" if order.interface == WSGI else order.application
    tls = order.tls("--certfile", "--keyfile")
    return [order.python, "-m", "hypercorn", "--bind", order.address, *tls, *order.words, application]


def _waitress(order: Order) -> list[str]:
    limits = ("--connection-limit=20000", "--asyncore-use-poll")  # its select() watches no more than a thousand
    return [
        *(order.python, "-m", "waitress", f"--listen={order.address}", *limits),
        *(*order.words, order.application),
    ]


def _uwsgi(order: Order) -> list[str]:
    module, _, attribute = order.application.partition(":")
    beside = Path(order.python).with_name("uwsgi")  # pip puts it there; a distribution has one on PATH
    socket = ("--http-socket", order.address)
    if order.certificate:  # which a uWSGI that was built without OpenSSL does not know
        socket = ("--https-socket", ",".join((order.address, order.certificate.file, order.certificate.key_file)))
    return [
        *(str(beside) if beside.exists() else "uwsgi", *socket),
        *("--master", "--need-app", "--die-on-term"),
        *("--disable-logging", "--http-keepalive", "--wsgi", f"{module}:{attribute or 'application'}", *order.words),
    ]


def _twisted(order: Order) -> list[str]:
    dotted = order.application.replace(":", ".")
    kind, pair = "tcp", ""
    if order.certificate:
        kind, pair = "ssl", f":privateKey={order.certificate.key_file}:certKey={order.certificate.file}"
    listen = f"--listen={kind}:{order.port}:interface={order.host}:backlog=2048{pair}"
    return [order.python, "-m", "twisted", "--log-level=warn", "web", listen, f"--wsgi={dotted}", *order.words]


def _cheroot(order: Order) -> list[str]:
    return [order.python, "-m", "cheroot", order.application, "--bind", order.address, *order.words]


def _flask_dev(order: Order) -> list[str]:
    address = ("--host", order.host, "--port", str(order.port), *order.tls("--cert", "--key"))
    return [order.python, "-m", "flask", "--app", order.application, "run", *address, "--no-reload", *order.words]


def _launched(name: str) -> Callable[[Order], list[str]]:
    def command(order: Order) -> list[str]:
        launcher = ("-m", "tricorn_bench.bench.launch", name)
        pair = (order.certificate.file, order.certificate.key_file) if order.certificate else ()
        return [order.python, *launcher, order.application, order.host, str(order.port), *pair, *order.words]

    return command


GUNICORNS_CLASSES = ("sync", "gthread", "gevent", "tornado", "asgi")

KINDS = (
    Kind(
        "tricorn",
        "tricorn",
        _tricorn,
        interfaces=(WSGI, ASGI, TORNADO, AIOHTTP),
        workers_flag=("-w", "--workers"),
        classes=("sync", "gthread", "gevent", "eventlet", "asgi", "tornado", "aiohttp"),
        has_tls=True,
        has_http2=True,
    ),
    Kind(
        "gunicorn",
        "gunicorn",
        _gunicorns("gunicorn"),
        interfaces=(WSGI, ASGI, TORNADO),
        workers_flag=("-w", "--workers"),
        classes=GUNICORNS_CLASSES,
        has_tls=True,
        has_http2=True,
    ),
    Kind(
        "granian",
        "granian",
        _granian,
        interfaces=(WSGI, ASGI),
        workers_flag=("--workers",),
        needs_attribute=True,
        has_tls=True,
        has_http2=True,
    ),
    Kind(
        "uvicorn",
        "uvicorn",
        _host_and_port(
            "uvicorn", tls=("--ssl-certfile", "--ssl-keyfile"), after=("--no-access-log", "--log-level", "warning")
        ),
        interfaces=(ASGI,),
        workers_flag=("--workers",),
        needs_attribute=True,
        has_tls=True,
    ),
    Kind(
        "hypercorn",
        "hypercorn",
        _hypercorn,
        interfaces=(WSGI, ASGI),
        workers_flag=("--workers", "-w"),
        has_tls=True,
        has_http2=True,
    ),
    Kind("waitress", "waitress", _waitress, needs_attribute=True),
    Kind("uwsgi", "uwsgi", _uwsgi, workers_flag=("--processes", "-p"), has_tls=True),
    Kind("flask-dev", "flask", _flask_dev, has_tls=True),
    Kind("twisted", "twisted", _twisted, needs_attribute=True, has_tls=True),
    Kind("cherrypy", "cheroot", _cheroot, needs_attribute=True),
    Kind(
        "sanic",
        "sanic",
        _host_and_port("sanic", tls=("--cert", "--key"), after=("--no-access-logs", "--no-motd")),
        interfaces=(ASGI,),
        workers_flag=("--workers", "-w"),
        needs_attribute=True,
        has_tls=True,
    ),
    Kind("tornado-web", "tornado", _launched("tornado"), interfaces=(TORNADO,), has_tls=True),
    Kind("aiohttp-web", "aiohttp", _launched("aiohttp"), interfaces=(AIOHTTP,), has_tls=True),
    Kind("bjoern", "bjoern", _launched("bjoern")),
    Kind("fastwsgi", "fastwsgi", _launched("fastwsgi")),
    Kind("fastpysgi", "fastpysgi", _launched("fastpysgi"), interfaces=(WSGI, ASGI)),
    Kind("meinheld", "meinheld", _launched("meinheld")),
)

SERVERS = {kind.name: kind for kind in KINDS}

_ASK = """\
import importlib.metadata as metadata, sys
try:
    print(metadata.version(sys.argv[1]))
except metadata.PackageNotFoundError:
    sys.exit(1)
"""


def version(kind: Kind, python: str) -> str | None:
    """The version that the interpreter `python` would run; None if it is not installed there."""
    done = subprocess.run([python, "-c", _ASK, kind.package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
