"""Options of uWSGI, and what each is here: the table of a page, and the words of an error. No option is accepted.

Options are in its files and on its command line alike; what they ask for is told by names of settings, which an error
on a command line shows as flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tricorn.errors import ConfigError
from tricorn.record import Record

PAGE = "docs/migrate/from-uwsgi.md"
SECTION = "[uwsgi]"


class Row(Record):
    options: str
    """Separated by spaces. Those that end with a dash are all with this beginning."""
    here: str
    """A sentence of Markdown, with settings in backticks."""


SECTIONS: dict[str, tuple[Row, ...]] = {
    "The application": (
        Row("module wsgi w", "the command's argument, or `wsgi_app`: `shop.wsgi:application`"),
        Row("wsgi-file file", "the command's argument: a file such as `app.py`, or `app.py:application`"),
        Row("callable", "behind the colon of the application: `shop:app`"),
        Row("mount", "one application for each server. Its prefix is SCRIPT_NAME: from the front end, or `raw_env`"),
        Row(
            "manage-script-name",
            "the front end's SCRIPT_NAME is taken off the path; without one: `raw_env`, with SCRIPT_NAME=/shop",
        ),
        Row("chdir chdir2", "`chdir`"),
        Row("pythonpath python-path pp", "`pythonpath`"),
        Row(
            "home virtualenv venv pyhome H",
            "start the `tricorn` of the virtual environment: `/srv/shop/venv/bin/tricorn`",
        ),
        Row("env", "`raw_env`; many: `env_file`"),
        Row("for-readline envdir", "`env_file`"),
        Row(
            "need-app",
            "always so: an application that cannot be loaded ends the start",
        ),
        Row("single-interpreter", "always so: one interpreter for each worker"),
        Row("strict", "always so on the command line; names in a file that are near to a setting's are warned about"),
        Row("plugin plugins plugin-dir", "nothing: there are no plugins to load"),
        Row(
            "import pyimport shared-import shared-pyimport",
            "import it in the application, or in a hook: `post_worker_init`, `on_starting`",
        ),
        Row("pymodule-alias", "not available: set `sys.modules` in `tricorn.conf.py`"),
        Row("pyargv", "not available: read variables (`raw_env`), or call a factory (`factory`)"),
        Row("paste ini-paste ini-paste-logged", "`paste`"),
        Row("py-autoreload python-autoreload", "`reload`"),
        Row("py-call-osafterfork py-call-uwsgi-fork-hooks", "always so: workers are forked by Python"),
        Row("no-site optimize", "flags of Python: `python -S -m tricorn`, `PYTHONOPTIMIZE`"),
        Row(
            "wsgi-disable-file-wrapper",
            "`sendfile`; `wsgi.file_wrapper` takes every file-like object, `io.BytesIO` too",
        ),
        Row("wsgi-env-behaviour wsgi-env-behavior", "always so: each request has an environ of its own"),
        Row("catch-exceptions", "not available: tracebacks are for the log, or for the application's own debugger"),
        Row(
            "honour-stdin",
            "nothing: stdin stays, but with `daemon`",
        ),
        Row("set-placeholder set-ph set", "variables of Python in `tricorn.conf.py`"),
        Row("ini yaml json xml config", "a configuration in Python: `config`"),
    ),
    "Addresses and connections": (
        Row("http http-socket", "`bind`: there is no router in between"),
        Row("https https-socket", "`bind = https://…`, `certfile`, `keyfile`"),
        Row(
            "socket uwsgi-socket s",
            "`bind = uwsgi+unix:PATH` or `uwsgi://HOST:PORT`; front ends on other machines: `uwsgi_allow_ips`",
        ),
        Row("fastcgi-socket", "`bind = fastcgi+unix:PATH`, or `fastcgi://HOST:PORT`"),
        Row("scgi-socket", "`bind = scgi+unix:PATH`, or `scgi://HOST:PORT`"),
        Row("protocol socket-protocol", "`protocol`, or the scheme of the address"),
        Row(
            "shared-socket map-socket",
            "`bind`: sockets are bound before privileges are dropped. systemd's and others': `bind = fd://N`",
        ),
        Row("chmod-socket chmod", "`umask`: `0o007` for 660, `0` for 666"),
        Row("chown-socket", "`user`, `group`: sockets are theirs"),
        Row("abstract-socket", "`bind = unix:@NAME`"),
        Row("listen l", "`backlog`"),
        Row("reuse-port", "`reuse_port`"),
        Row("freebind", "not available: systemd's socket unit (`FreeBind=`)"),
        Row("http-to http-modifier1 http-processes http-workers", "nothing: workers use HTTP themselves"),
        Row("http-keepalive http-socket-keepalive add-header-keepalive", "`keepalive`"),
        Row("http-auto-chunked http-chunked-input http-raw-body", "always so: chunked bodies are read and written"),
        Row(
            "http-websockets",
            "WebSockets need no setting; `uwsgi.websocket_…` is Flask-Sock, simple-websocket or ASGI",
        ),
        Row("http-timeout http-connect-timeout", "`request_timeout`, `queue_timeout`"),
        Row("socket-timeout http-headers-timeout", "`header_timeout`, `body_timeout`, `write_timeout`"),
        Row(
            "so-keepalive so-send-timeout tcp-nodelay socket-sndbuf socket-rcvbuf tcp-fast-open",
            "nothing: the core sets what connections need",
        ),
        Row(
            "buffer-size b http-buffer-size",
            "nothing for variables: 64 KiB, as the protocol has it. Over HTTP: `limit_request_line`, "
            "`limit_request_field_size`",
        ),
        Row(
            "post-buffering post-buffering-bufsize body-read-warning",
            "always so: bodies are buffered, the large ones on disk (`request_buffering`)",
        ),
        Row("limit-post", "`limit_request_body`"),
        Row("upload-progress", "not available: clients know how far they are"),
        Row("add-header", "`headers`"),
        Row("rem-header del-header collect-header response-header-collect", "the application, or the front end"),
        Row(
            "honour-range",
            "the application, or the front end",
        ),
        Row("enable-proxy-protocol http-enable-proxy-protocol http-socket-proxy-protocol", "`proxy_protocol`"),
        Row(
            "ssl-sessions-use-cache ssl-session- ssl-verify-depth",
            "sessions are resumed by every worker: `tls_ticket_lifetime`",
        ),
        Row("https-export-cert", "always so with `cert_reqs`"),
        Row("sni sni-", "`certificate`"),
        Row("vhost vhost-host", "one server for each application; the front end chooses by the host"),
        Row("vacuum", "always so: sockets and pid files are removed at the end"),
    ),
    "Processes and threads": (
        Row("master M", "always so"),
        Row("processes workers p", "`workers`; for `%k`: `workers = auto`"),
        Row("threads", "`threads`"),
        Row("enable-threads T", "always so: threads of the application run"),
        Row(
            "threads-stacksize thread-stacksize",
            "not available",
        ),
        Row("thunder-lock zerg- no-threads-wait", "nothing: one queue for all workers"),
        Row("lazy-apps lazy", "the default. uWSGI's own default is `preload_app`"),
        Row(
            "cheaper cheaper- cheap idle die-on-idle",
            "not available: workers stay. `workers = auto` sizes them, TTIN and TTOU change the number",
        ),
        Row("async ugreen greenlet", "`worker_class = gevent`"),
        Row("gevent", "`worker_class = gevent`, `worker_connections`"),
        Row("gevent-monkey-patch gevent-early-monkey-patch", "always so with `worker_class = gevent`"),
        Row("asyncio loop tornado", "`worker_class = asgi`, for an application of ASGI"),
        Row("uid", "`user`"),
        Row("gid add-gid", "`group`, `initgroups`"),
        Row("umask", "`umask`"),
        Row("procname procname-", "`proc_name`"),
        Row("auto-procname", "always so"),
        Row("pidfile pidfile2 safe-pidfile safe-pidfile2", "`pidfile`"),
        Row("daemonize daemonize2", "a service of systemd (`tricorn init systemd`), or `daemon` and `errorlog`"),
        Row("no-orphans", "always so: workers end with the arbiter, after `graceful_timeout`"),
        Row("die-on-term", "always so: TERM ends the server"),
        Row("exit-on-reload", "not available: HUP reloads, TERM ends"),
        Row("cpu-affinity", "not available: `taskset`, or systemd's `CPUAffinity=`"),
        Row("nice ionice-prio", "systemd's `Nice=`, `IOSchedulingClass=`"),
        Row("limit-as rlimit-nofile max-fd", "systemd's `LimitAS=`, `LimitNOFILE=`; for memory: `max_worker_memory`"),
        Row(
            "cgroup cgroup- unshare chroot pivot-root cap",
            "systemd's `MemoryMax=`, `CPUQuota=`, `RootDirectory=` …, or a container",
        ),
        Row("close-on-exec close-on-exec2", "always so: Python opens descriptors so"),
        Row(
            "hook- exec- call- as-user-call-",
            "hooks in `tricorn.conf.py`: `on_starting`, `post_fork`, `worker_exit`, `on_exit`; `ExecStartPre=` "
            "of systemd",
        ),
        Row("attach-daemon smart-attach-daemon attach-daemon2 legion-", "a service of its own: systemd, Compose"),
        Row(
            "emperor vassals- emperor- zerg subscribe-to subscription- fastrouter fastrouter-",
            "a service for each application: systemd's templates, Kubernetes",
        ),
        Row("mule mules farm", "not available: a job queue such as Celery, RQ or Dramatiq"),
        Row("spooler spooler- spoolers", "not available: a job queue such as Celery, RQ or Dramatiq"),
        Row("cron cron2 unique-cron timer", "not available: systemd's timers, cron, Celery beat"),
        Row("cache cache2 cache-", "not available: Redis, memcached, or the framework's cache"),
        Row(
            "locks sharedarea queue queue-",
            "not available: `multiprocessing`, before the fork with `preload_app`; or Redis",
        ),
        Row("rpc- erlang- perl php- lua cgi rack", "not available: Python only"),
    ),
    "Requests that take long, and the life of workers": (
        Row(
            "harakiri http-harakiri harakiri-graceful-timeout",
            "`request_timeout` ends the request with 504 and keeps the worker; `timeout` replaces the worker",
        ),
        Row(
            "harakiri-verbose",
            "always so: the log has the Python stack",
        ),
        Row("harakiri-no-arh", "nothing: a request that waits is not counted"),
        Row("max-requests", "`max_requests`"),
        Row("max-requests-delta", "`max_requests_jitter`"),
        Row("max-worker-lifetime", "`max_worker_lifetime`"),
        Row("max-worker-lifetime-delta", "`max_worker_lifetime_jitter`"),
        Row("min-worker-lifetime", "nothing: workers that fail at once are started again after growing pauses"),
        Row("reload-on-rss evil-reload-on-rss", "`max_worker_memory`: megabytes with M, as in `512M`"),
        Row("reload-on-as evil-reload-on-as", "`max_worker_memory`, which counts resident memory"),
        Row("reload-mercy worker-reload-mercy mule-reload-mercy", "`graceful_timeout`"),
        Row(
            "touch-reload fs-reload fs-brutal-reload touch-workers-reload",
            "HUP, `tricorn ctl reload`, or a path unit of systemd; in development: `reload`",
        ),
        Row("touch-chain-reload chain-reload", "always so: a reload starts new workers before old ones stop"),
        Row("touch-", "HUP, `tricorn ctl`"),
        Row("master-fifo", "`control_socket`: `tricorn ctl reload`, `shutdown`, `scale`"),
        Row(
            "reload stop connect-and-read",
            "`tricorn ctl reload`, `tricorn ctl shutdown`; or HUP and TERM to the pid in `pidfile`",
        ),
        Row(
            "ignore-sigpipe ignore-write-errors disable-write-exception write-errors-tolerance "
            "write-errors-exception-only",
            "always so: a client that leaves is no error of the application",
        ),
        Row(
            "backtrace-depth py-tracebacker",
            "`tricorn ctl stacks`, [a stack of what hangs](../diagnose/hanging-process.md)",
        ),
    ),
    "Logs and measurements": (
        Row("logto logto2 log-master", "`errorlog`: a file, or `-` for stderr"),
        Row("logger req-logger log-route log-req-route", "`accesslog`, `errorlog`, `syslog`, `logconfig`"),
        Row("disable-logging L", "the default: there is an access log only with `accesslog`"),
        Row(
            "log-format logformat logformat-strftime",
            "`access_log_format`, with [gunicorn's atoms](../reference/log-formats.md)",
        ),
        Row(
            "log-4xx log-5xx log-slow log-big log-zero log-sendfile",
            "not available as filters: the access log has status, time and size. Slow requests: `doctor_slow_request`",
        ),
        Row("log-date log-micros log-prefix log-encoder log-req-encoder", "`log_format`: text with a date, or JSON"),
        Row("log-x-forwarded-for", "`trusted_proxy_headers`: the client's address is the forwarded one"),
        Row(
            "log-maxsize log-backupname log-reopen log-truncate",
            "logrotate and USR1 ([how](../guides/rotate-logs.md))",
        ),
        Row("logfile-chown logfile-chmod", "`user`, `umask`"),
        Row("threaded-logger threaded-log", "always so: a thread writes the access log"),
        Row("memory-report", "`/metrics` and `tricorn top` have each worker's memory"),
        Row(
            "stats stats-server stats-http stats-push stats-pusher stats-minified",
            "`admin_bind`: Prometheus' metrics at `/metrics`. `tricorn top` in place of uwsgitop",
        ),
        Row("carbon carbon- snmp snmp- metric metrics-dir enable-metrics", "`statsd_host`, or `admin_bind`"),
        Row("show-config", "`print_config`"),
    ),
    "Files and routes": (
        Row(
            "static-map static-map2",
            "`static_map`, with [options of its own](../guides/static-files.md) behind the directory",
        ),
        Row("check-static", "`static_map`, with / as the prefix: what is no file is the application's"),
        Row("static-index", "`static_index`"),
        Row("static-expires static-expires-", "`static_map` with max-age, or `static_cache_control`"),
        Row("static-gzip-", "always so: copies that end with .gz, .br or .zst are sent to clients that accept them"),
        Row("static-safe", "not available: links that lead out of the directory are not followed"),
        Row("mimefile", "nothing: the type follows from the ending of the file"),
        Row("http-auto-gzip http-gzip", "`compress`"),
        Row(
            "offload-threads file-serve-mode",
            "nothing: the core sends files, also those of `wsgi.file_wrapper`",
        ),
        Row(
            "route route- error-route- response-route- final-route",
            "not available: the front end, or the application",
        ),
        Row("error-page-", "not available: the front end, or the application"),
    ),
}


def rows() -> Iterator[Row]:
    for section in SECTIONS.values():
        yield from section


def find(option: str, *, by_beginning: bool = True) -> Row | None:
    """The row of an option, with or without dashes before it. A name of its own is stronger than a beginning."""
    name = option.lstrip("-").replace("_", "-")
    words = [(word, row) for row in rows() for word in row.options.split()]
    if name in dict(words):
        return dict(words)[name]
    begun = (row for word, row in words if word.endswith("-") and name.startswith(word))
    return next(begun, None) if by_beginning else None


def counterpart(row: Row, flags: Mapping[str, str] | None = None) -> str:
    """Returns what is here in place of an option, as text. With `flags` settings are told as flags, by their names."""

    def shown(found: re.Match[str]) -> str:
        name, _, value = found[1].partition(" = ")
        flag = (flags or {}).get(name)
        return f"{flag} {value}".rstrip() if flag else found[1]

    return re.sub(r"`([^`]+)`", shown, re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", row.here))


def options(text: str) -> list[str] | None:
    """The options of a configuration file, each once; None if it has no section `[uwsgi]`."""
    lines = [line.strip() for line in text.splitlines()]
    if SECTION not in lines:
        return None
    section, found = "", dict[str, None]()
    for line in lines:
        if line.startswith("["):
            section = line
        elif section == SECTION and line and line[0] not in "#;":
            found[line.partition("=")[0].strip()] = None
    return list(found)


def refusal(file: str, names: Sequence[str]) -> ConfigError:
    """Why a file with these options is not read, and what each is here."""
    known = [(name, row) for name in names if (row := find(name)) is not None]
    details = "".join(f"  {name}: {counterpart(row)}\n" for name, row in known)
    return ConfigError(
        f"{file!r} is a configuration of uWSGI, which is not read. Write what it says into tricorn.conf.py, as NAME = "
        f"VALUE, and name the application: `tricorn MODULE:APPLICATION` ({PAGE}).",
        details=f"Its options are here:\n{details}" if details else "",
    )
