"""Configuration files of public projects, in our words, unchanged in what they say: they start and behave.

Addresses come from the command line, and paths are not those of a project's image; all else is the project's.
`make test-reference` runs the same table with gunicorn, as far as its packages are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Site, until
from tests.harness.needs import needs

SHOP = """
import os

NOTES = []

def text():
    return ";".join([*NOTES, os.environ.get("SERVER_SOFTWARE", "")[:9]]).encode()

def application(environ, start_response):
    body = text()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

app = application

async def asgi(scope, receive, send):
    body = text()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})

def post_worker_init(worker):
    NOTES.append("initialized")
"""


@dataclass(frozen=True)
class Row:
    source: str
    text: str
    worker: str = "sync"
    """As the log says it; where gunicorn says it otherwise it is not compared."""
    app: str = "shop:application"
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    """What the log or the standard output says."""
    body: str = ";gunicorn/"
    """What the response ends with."""
    server: str | None = "any"
    """The field Server of responses; None: there is none."""
    package: str = ""
    unavailable: bool = False
    """It asks for what this version has not: started with `--unavailable warn`."""
    reference: str = ""
    """Why gunicorn is not asked."""


UVICORN = "uvicorn would have to be installed beside gunicorn"

ROWS = {
    "hooks with annotations": Row(
        "gunicorn's issue tracker; files whose hooks are annotated with classes of gunicorn's",
        """
from gunicorn.arbiter import Arbiter
from gunicorn.http.message import Request
from gunicorn.http.wsgi import Response
from gunicorn.workers.gthread import ThreadWorker

threads = 2
worker_class = "gthread"

def pre_request(worker: ThreadWorker, req: Request) -> None:
    assert isinstance(worker, ThreadWorker), type(worker).__mro__
    worker.log.info("pre %s", req.path)

def post_request(worker: ThreadWorker, req: Request, environ: dict, resp: Response) -> None:
    worker.log.info("post %s", resp.status)
""",
        worker="gthread",
        log="post 200 OK",
    ),
    "tiangolo/uvicorn-gunicorn-docker": Row(
        "docker-images/gunicorn_conf.py",
        """
import json, multiprocessing, os

per_core = float(os.getenv("WORKERS_PER_CORE", "1"))
concurrency = os.getenv("WEB_CONCURRENCY", None)
host, port = os.getenv("HOST", "0.0.0.0"), os.getenv("PORT", "80")
use_bind = os.getenv("BIND", None) or f"{host}:{port}"
web_concurrency = int(concurrency) if concurrency else max(int(per_core * multiprocessing.cpu_count()), 2)

loglevel = os.getenv("LOG_LEVEL", "info")
workers = web_concurrency
bind = use_bind
errorlog = "-"
worker_tmp_dir = "/dev/shm"
worker_class = os.getenv("WORKER_CLASS", "uvicorn.workers.UvicornWorker")
graceful_timeout = int(os.getenv("GRACEFUL_TIMEOUT", "120"))
timeout = int(os.getenv("TIMEOUT", "120"))
keepalive = int(os.getenv("KEEPALIVE", "120"))

log_data = {"loglevel": loglevel, "workers": workers, "bind": bind, "host": host, "port": port, "keepalive": keepalive}
print(json.dumps(log_data))
""",
        worker="asgi",
        app="shop:asgi",
        env={"WEB_CONCURRENCY": "1"},
        log='"keepalive": 120',
        reference=UVICORN,
    ),
    "paperless-ngx/paperless-ngx": Row(
        "docker gunicorn.conf.py and src/paperless/workers.py",
        """
import os

bind = f'{os.getenv("PAPERLESS_BIND_ADDR", "[::]")}:{os.getenv("PAPERLESS_PORT", 8000)}'
workers = int(os.getenv("PAPERLESS_WEBSERVER_WORKERS", 1))
worker_class = "paper_workers.ConfigurableWorker"
timeout = 120
preload_app = True
worker_tmp_dir = "/dev/shm"

def pre_fork(server, worker):
    pass

def pre_exec(server):
    server.log.info("Forked child, re-executing.")

def when_ready(server):
    server.log.info("Server is ready. Spawning workers")

def worker_int(worker):
    import sys, threading, traceback
    worker.log.info("worker received INT or QUIT signal")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, stack in sys._current_frames().items():
        worker.log.debug("%s %s", names.get(ident), traceback.extract_stack(stack))

def worker_abort(worker):
    worker.log.info("worker received SIGABRT signal")
""",
        worker="asgi (paper_workers.ConfigurableWorker)",
        app="shop:asgi",
        files={
            "paper_workers.py": """
import os
from uvicorn.workers import UvicornWorker

class ConfigurableWorker(UvicornWorker):
    CONFIG_KWARGS = {"root_path": os.getenv("PAPERLESS_FORCE_SCRIPT_NAME") or ""}
"""
        },
        log="Server is ready. Spawning workers",
        reference=UVICORN,
    ),
    "goauthentik/authentik": Row(
        "lifecycle/gunicorn.conf.py and lifecycle/worker.py",
        """
import os
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING
from prometheus_client.values import MultiProcessValue
from lifecycle_worker import DjangoUvicornWorker

if TYPE_CHECKING:
    from gunicorn.arbiter import Arbiter

worker_class = "lifecycle_worker.DjangoUvicornWorker"
prometheus_tmp_dir = os.environ["METRICS"]
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", prometheus_tmp_dir)
preload = True
max_requests = 1000
max_requests_jitter = 50
workers = 2
threads = 4

def post_fork(server: "Arbiter", worker: DjangoUvicornWorker):
    from prometheus_client import values
    values.ValueClass = MultiProcessValue(lambda: worker._worker_id)

def worker_exit(server: "Arbiter", worker: DjangoUvicornWorker):
    from prometheus_client import multiprocess
    multiprocess.mark_process_dead(worker._worker_id)

def on_starting(server):
    server._worker_id_overload = set()

def nworkers_changed(server, new_value, old_value):
    server._worker_id_current_workers = new_value

def _next_worker_id(server):
    if server._worker_id_overload:
        return server._worker_id_overload.pop()
    in_use = set(w._worker_id for w in tuple(server.WORKERS.values()) if w.alive)
    free = set(range(1, server._worker_id_current_workers + 1)) - in_use
    return free.pop()

def on_reload(server):
    server._worker_id_overload = set(range(1, server.cfg.workers + 1))

def pre_fork(server, worker):
    worker._worker_id = _next_worker_id(server)

def post_worker_init(worker):
    worker.log.info("numbered %s", worker._worker_id)
""",
        worker="asgi (lifecycle_worker.DjangoUvicornWorker)",
        app="shop:asgi",
        env={"METRICS": "."},
        files={
            "lifecycle_worker.py": """
from uvicorn.workers import UvicornWorker

class DjangoUvicornWorker(UvicornWorker):
    CONFIG_KWARGS = {"loop": "asyncio", "http": "httptools", "lifespan": "off", "ws": "wsproto", "root_path": ""}
"""
        },
        log="numbered [12]",
        package="prometheus_client",
        reference=UVICORN,
    ),
    "pypi/warehouse": Row(
        "gunicorn-prod.conf.py",
        """
backlog = 2048
preload_app = True
max_requests = 2048
max_requests_jitter = 128
worker_connections = 1000
timeout = 60
keepalive = 2
errorlog = "-"
loglevel = "info"
accesslog = "-"
access_log_format = '%({Warehouse-Hashed-IP}i)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'
statsd_host = "localhost:8125"
control_socket_disable = True
""",
        log=r'- - - \[.*\] "GET / HTTP/1.1" 200',
    ),
    "alphagov/notifications-api": Row(
        "gunicorn_config.py",
        """
import os

def child_exit(server, worker):
    from prometheus_client import multiprocess
    multiprocess.mark_process_dead(worker.pid)

workers = 4
worker_class = "gevent"
worker_connections = 8
statsd_host = "{}:8125".format(os.getenv("STATSD_HOST"))
keepalive = 0
timeout = int(os.getenv("HTTP_SERVE_TIMEOUT_SECONDS", 30))
""",
        worker="gevent",
        package="gevent",
    ),
    "mysociety/mzalendo": Row(
        "deploy gunicorn configuration: without the field Server, behind any proxy",
        """
from gunicorn.http import wsgi

proxy_allow_ips = "*"
forwarded_allow_ips = "*"

class Response(wsgi.Response):
    def default_headers(self, *args, **kwargs):
        headers = super().default_headers(*args, **kwargs)
        return [h for h in headers if not h.startswith("Server:")]

wsgi.Response = Response
""",
        server=None,
    ),
    "alphagov, pgAdmin": Row(
        "gunicorn.SERVER_SOFTWARE and SERVER assigned in the configuration",
        'import gunicorn\ngunicorn.SERVER_SOFTWARE = "None"\ngunicorn.SERVER = "None"\nworkers = 1\n',
        server="None",
    ),
    "epos": Row(
        "EPOS's gunicorn configuration: the number of workers is set by a hook",
        """
workers = 2
def on_starting(server):
    if server.cfg.workers > 1:
        server.cfg.set("workers", 1)
        server.num_workers = 1
""",
    ),
    "semgrep-analysis": Row(
        "a dotted class, preload and captured output",
        """
worker_class = "gunicorn.workers.gthread.ThreadWorker"
threads = 3
preload_app = True
capture_output = True
loglevel = "debug"
""",
        worker="gthread",
    ),
    "meinheld": Row(
        'seven of ten public files with worker_class = "egg:…"',
        'worker_class = "egg:meinheld#gunicorn_worker"\nworkers = 2\n',
        reference="meinheld is not installed",
    ),
    "overhangio/tutor, openedx": Row(
        "docker_lms_gunicorn.py",
        """
preload_app = False
timeout = 300
pythonpath = "."
max_requests = 50
workers = 2

def pre_request(worker, req):
    worker.log.info("%s %s", req.method, req.path)

def close_all_caches():
    pass

def post_fork(_server, _worker):
    close_all_caches()

def when_ready(server):
    server.log.info("ready with %s", server.cfg.worker_class_str)
""",
        log="GET /",
    ),
    "PostHog/posthog": Row(
        "gunicorn.config.py",
        """
loglevel = "error"
worker_class = "gevent"
timeout = 90

def on_starting(server):
    print("Server running on http://{}:{}".format(*server.address[0]))

def when_ready(server):
    open("app-initialized", "w").close()
    print("when_ready was called", flush=True)
""",
        worker="",
        package="gevent",
        log="when_ready was called",
    ),
    "CERT-Polska/mwdb-core": Row(
        "docker/gunicorn.conf.py",
        """
import os

wsgi_app = "shop:app"
reload = bool(int(os.getenv("HOT_RELOAD", "0")))
workers = int(os.getenv("GUNICORN_WORKERS", "4"))
""",
        app="",
    ),
    "NYPL-Simplified/circulation": Row(
        "docker/gunicorn.conf.py",
        """
import multiprocessing, os

HOME = os.environ.get("SIMPLIFIED_HOME", os.getcwd())
wsgi_app = "shop:app"
accesslog = "access.log"
errorlog = "-"
loglevel = "info"
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 8190
preload_app = False
chdir = HOME
daemon = False
bind = ["127.0.0.1:8000"]
workers = (2 * multiprocessing.cpu_count()) + 1
threads = 2
max_requests = 500
max_requests_jitter = 50
pythonpath = ",".join([str(HOME)])

if os.environ.get("FLASK_ENV", None) == "development":
    reload = True
    loglevel = "debug"
    workers = 1
    threads = 1
""",
        worker="gthread",
        app="",
    ),
    "gpodder/mygpo": Row(
        "conf/gunicorn.conf.py",
        """
import os

workers = 3
log_dir = os.getenv("LOGGING_DIR_GUNICORN", "")
accesslog = "-"
loglevel = "info"
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s %(T)s "%(f)s" "%(a)s"'
timeout = 120
graceful_timeout = 60

def get_bool(name, default):
    return os.getenv(name, str(default)).lower() == "true"

def _post_fork_handler(server, worker):
    patch_psycopg()
    worker.log.info("Made Psycopg2 Green")

_USE_GEVENT = get_bool("USE_GEVENT", False)
try:
    from psycogreen.gevent import patch_psycopg
except ImportError:
    _USE_GEVENT = False

if _USE_GEVENT:
    workers = 9
    worker_connections = 100
    worker_class = "gevent"
    post_fork = _post_fork_handler
else:
    thread = 3
    worker_class = "gthread"
""",
        worker="gthread",
        log='"GET / HTTP/1.1" 200',
    ),
    "YunoHost-Apps/umap_ynh": Row(
        "conf/gunicorn.conf.py",
        """
import multiprocessing

workers = multiprocessing.cpu_count() * 2 + 1
loglevel = 'info'
accesslog = 'app.log'
errorlog = '-'
pidfile = 'gunicorn.pid'
""",
    ),
    "6G-SANDBOX/TNLCM": Row(
        "conf/gunicorn.conf.py: settings of the project's own module",
        """
from conf_settings import Settings

workers = 3
bind = f"0.0.0.0:{Settings.PORT}"
timeout = 2100
wsgi_app = "shop:app"
loglevel = "info"
backlog = 1024
""",
        app="",
        files={"conf_settings.py": "class Settings:\n    PORT = 5000\n"},
    ),
    "cdhigh/KindleEar": Row(
        "docker/gunicorn.conf.py: rotating files, TLS switched off by None",
        """
import os

workers = 1
threads = 3
capture_output = True
enable_stdio_inheritance = True
certfile = os.getenv('GUNI_CERT')
keyfile = os.getenv('GUNI_KEY')
logconfig_dict = {
    'version': 1,
    'disable_existing_loggers': False,
    "root": {"level": "INFO", "handlers": ["error_file"]},
    'loggers': {
        "gunicorn.error": {"level": "INFO", "handlers": ["error_file", "console"], "propagate": 1,
                           "qualname": "gunicorn.error"},
        "gunicorn.access": {"level": "INFO", "handlers": ["access_file"], "propagate": 0,
                            "qualname": "gunicorn.access"},
    },
    'handlers': {
        "console": {"class": "logging.StreamHandler", "formatter": "generic"},
        "error_file": {"class": "logging.handlers.RotatingFileHandler", "maxBytes": 50 * 1024 * 1024, "backupCount": 1,
                       "formatter": "generic", "filename": "error.log"},
        "access_file": {"class": "logging.handlers.RotatingFileHandler", "maxBytes": 10 * 1024 * 1024,
                        "backupCount": 1, "formatter": "generic", "filename": "access.log"},
    },
    'formatters': {
        "generic": {"format": "[%(asctime)s] %(levelname)s [%(filename)s:%(lineno)s] %(message)s",
                    "datefmt": "[%Y-%m-%d %H:%M:%S %z]", "class": "logging.Formatter"},
    },
}
""",
        worker="gthread",
    ),
    "AGIBE/oereb_server": Row(
        "gunicorn_config.py: numbers as text, loggers of the worker set up anew",
        """
import os
from logging.config import dictConfig

def post_fork(server, worker):
    dictConfig({"version": 1, "disable_existing_loggers": False})

workers = os.environ["GUNICORN_WORKERS"]
threads = os.environ["GUNICORN_THREADS"]
worker_tmp_dir = "/dev/shm"
secure_scheme_headers = {"X-FORWARDED-PORT": "443", "X-FORWARDED-PROTO": "https"}
forwarded_allow_ips = "*"
accesslog = "-"
errorlog = "-"
max_requests = os.environ["GUNICORN_MAX_REQUESTS"]
max_requests_jitter = 50
""",
        worker="gthread",
        env={"GUNICORN_WORKERS": "1", "GUNICORN_THREADS": "4", "GUNICORN_MAX_REQUESTS": "500"},
        log='"GET / HTTP/1.1" 200',
    ),
    "ait-cs-IaaS/Taranis-NG": Row(
        "docker/gunicorn.conf.py: a logger class with a filter, a hook by name",
        """
import logging, multiprocessing, os
from gunicorn import glogging

workers_per_core = int(os.getenv("WORKERS_PER_CORE", "2"))
web_concurrency = os.getenv("WEB_CONCURRENCY", int(workers_per_core * multiprocessing.cpu_count()))
bind = os.getenv("BIND", "0.0.0.0:80")
wsgi_app = os.getenv("APP_MODULE", "shop:app")
post_worker_init = "shop.post_worker_init"
workers = web_concurrency
reload = False
keepalive = 120
timeout = 600
errorlog = "-"
log_file = "-"
disable_redirect_access_to_syslog = True

class CustomGunicornLogger(glogging.Logger):
    def setup(self, cfg):
        super().setup(cfg)
        logging.getLogger("gunicorn.access").addFilter(HealthCheckFilter())

class HealthCheckFilter(logging.Filter):
    def filter(self, record):
        return "GET /api/v1/isalive" not in record.getMessage()

accesslog = "-"
logger_class = CustomGunicornLogger
""",
        app="",
        body="initialized;gunicorn/",
        log='"GET / HTTP/1.1" 200',
    ),
    "EvilFlowersCatalog/EvilFlowersCatalog": Row(
        "conf/gunicorn.conf.py",
        """
worker_class = "gevent"
workers = 4
timeout = 240

def post_fork(server, worker):
    import os
    if os.getenv("LOGFIRE_TOKEN"):
        import logfire
        logfire.configure()
""",
        worker="gevent",
        package="gevent",
        reference="its four gevent workers do not all leave within 15 s of TERM",
    ),
    "amir20/clash-export": Row(
        "conf/gunicorn.conf.py: a name that is no setting",
        """
import os

name = "clashleaders.com"
workers = 2
worker_class = "sync"
reload = bool(os.getenv("DEBUG", False))
""",
    ),
    "100-hours-a-week/5-yeosa-ongi-ai": Row(
        "gunicorn.conf.py",
        """
workers = 3
worker_class = "uvicorn.workers.UvicornWorker"
max_requests = 10000
max_requests_jitter = 100
timeout = 0
keepalive = 10
preload_app = True
loglevel = "info"
""",
        worker="asgi",
        app="shop:asgi",
        reference=UVICORN,
    ),
    "0xPCP/paceline": Row(
        "gunicorn.conf.py: the pool of the database is disposed of after the fork",
        """
import os

workers = int(os.environ.get('WEB_CONCURRENCY', 2))
worker_class = 'sync'
timeout = 60
preload_app = True
accesslog = '-'
errorlog = '-'
loglevel = 'info'

def post_fork(server, worker):
    try:
        from shop import NOTES
        NOTES.append("disposed")
    except Exception:
        pass
""",
        body="disposed;gunicorn/",
    ),
    "024-code/GPUOpt": Row(
        "gunicorn.conf.py",
        """
from __future__ import annotations
import multiprocessing
import os

workers = int(os.getenv("API_WORKERS", str(multiprocessing.cpu_count() * 2 + 1)))
worker_class = "uvicorn.workers.UvicornWorker"
timeout = int(os.getenv("GUNICORN_TIMEOUT", "120"))
graceful_timeout = int(os.getenv("GRACEFUL_TIMEOUT", "30"))
keepalive = int(os.getenv("KEEPALIVE", "5"))
max_requests = int(os.getenv("MAX_REQUESTS", "10000"))
max_requests_jitter = int(os.getenv("MAX_REQUESTS_JITTER", "1000"))
preload_app = True
reload = os.getenv("ENV", "production") != "production"
accesslog = os.getenv("ACCESS_LOG", "-")
errorlog = os.getenv("ERROR_LOG", "-")
loglevel = os.getenv("LOG_LEVEL", "INFO").lower()
""",
        worker="asgi",
        app="shop:asgi",
        env={"API_WORKERS": "1"},
        log='"GET / HTTP/1.1" 200',
        reference=UVICORN,
    ),
    "094459/game-engine": Row(
        "gunicorn.conf.py",
        """
import os

bind = os.environ.get("GUNICORN_BIND", "0.0.0.0:8000")
workers = int(os.environ.get("GUNICORN_WORKERS", "4"))
timeout = int(os.environ.get("GUNICORN_TIMEOUT", "120"))
accesslog = "-"
errorlog = "-"
loglevel = "info"
""",
        log='"GET / HTTP/1.1" 200',
    ),
    "bluebamus/gunicorn-celery-nginx-postgresql-pgdog-redis-rabbitmq": Row(
        "conf/gunicorn.conf.py",
        'bind = "0.0.0.0:8000"\nworkers = 4\nthreads = 4\ntimeout = 60\nkeepalive = 2\nloglevel = "info"\n',
        worker="gthread",
    ),
    "Agent-Hellboy/gunicorn-prometheus-exporter": Row(
        "docker/gunicorn.conf.py, whose class wraps request handling: None for what is switched off",
        """
workers = 2
worker_connections = 1000
timeout = 30
keepalive = 2
accesslog = "-"
proc_name = "exporter-app"
preload_app = True
daemon = False
pidfile = None
user = None
group = None
tmp_upload_dir = None
keyfile = None
certfile = None
worker_tmp_dir = "/dev/shm"
graceful_timeout = 30
max_requests = 1000
max_requests_jitter = 100
max_worker_connections = 1000
backlog = 2048
reload = False
reload_extra_files = []
reload_engine = "auto"
""",
    ),
    "johang88/guessr": Row(
        "gunicorn.conf.py: OpenTelemetry is set up in the worker if its collector is known; a control socket",
        """
bind = "0.0.0.0:5000"
workers = 1
threads = 4
timeout = 120
worker_tmp_dir = "/dev/shm"
control_socket = "/dev/shm/gunicorn.sock"
accesslog = "-"
errorlog = "-"
loglevel = "info"

def post_fork(server, worker):
    import os
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http import no_such_exporter
    except Exception as e:
        server.log.warning("Failed to reinitialize OTel log provider: %s", e)
""",
        worker="gthread",
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        log="Failed to reinitialize OTel log provider: No module named",
    ),
    "xiangyanw/python-otlp-tracing, agrega-dev/taller-observabilidad": Row(
        "gunicorn_config.py: a tracer for each worker, whose exporter is a thread",
        """
import queue
import threading

EXPORTED = queue.Queue()

def post_fork(server, worker):
    server.log.info("Worker spawned (pid: %s)", worker.pid)
    threading.Thread(target=lambda: worker.log.info("exported %s", EXPORTED.get()), daemon=True).start()

def post_request(worker, req, environ, resp):
    EXPORTED.put(f"{req.method} {req.path} {resp.status_code}")

workers = 3
""",
        log="exported GET / 200",
    ),
    "Ricainz/Final-Project-DataEngineering, Sciebo-RDS/Sciebo-RDS": Row(
        "gunicorn_config.py: an exporter of metrics on a thread of the master (prometheus_flask_exporter)",
        """
from exporter import GunicornPrometheusMetrics

workers = 2
threads = 4
timeout = 120

def when_ready(server):
    GunicornPrometheusMetrics.start_http_server_when_ready(0)

def child_exit(server, worker):
    GunicornPrometheusMetrics.mark_process_dead_on_child_exit(worker.pid)
""",
        worker="gthread",
        env={"PROMETHEUS_MULTIPROC_DIR": "."},
        files={
            "exporter.py": """
import urllib.request
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

class GunicornPrometheusMetrics:
    @staticmethod
    def start_http_server_when_ready(port, host="127.0.0.1"):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        server, _ = start_http_server(port, host, registry=registry)
        with urllib.request.urlopen(f"http://{host}:{server.server_port}/metrics") as reply:
            print("metrics:", reply.status, flush=True)

    mark_process_dead_on_child_exit = staticmethod(mark_process_dead)
"""
        },
        log="metrics: 200",
        package="prometheus_client",
    ),
    "meanother/project_promise": Row(
        "config/gunicorn_config.py: names of a process manager beside settings, raw_env as a text, no limit of fields",
        """
command = '/srv/venv/bin/gunicorn'
pythonpath = '.'
workers = 5
limit_request_field = 3200
limit_request_field_size = 0
errorlog = '-'
loglevel = 'info'
accesslog = 'access.log'
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'
raw_env = 'SERVER_SOFTWARE=by raw_env'
redirect_stderr = True
autorestart = True

def post_fork(server, worker):
    server.log.info("Worker spawned (pid: %s)", worker.pid)

def pre_exec(server):
    server.log.info("Forked child, re-executing.")

def when_ready(server):
    server.log.info("Server is ready. Spawning workers")
""",
        body="by raw_en",
        log="Worker spawned",
    ),
    "TIM-JYU/TIM": Row(
        "timApp/gunicornconf.py: gevent, psycogreen in post_fork, a request line without limit",
        """
import multiprocessing, os
from typing import Any
from psycogreen.gevent import patch_psycopg

workers = multiprocessing.cpu_count()
worker_class = (
    "gevent"  # Possible values: sync, gevent, eventlet, tornado, gaiohttp, gthread
)
limit_request_line = 0
timeout = 600
max_requests = int(os.environ.get("GUNICORN_MAX_REQUESTS", 2000))
max_requests_jitter = int(os.environ.get("GUNICORN_MAX_REQUESTS_JITTER", 200))

def post_fork(server: Any, worker: Any) -> None:
    patch_psycopg()
    worker.log.info("patched")
""",
        worker="gevent",
        log="patched",
        package="psycogreen",
    ),
    "donaldzou/WGDashboard": Row(
        "src/gunicorn.conf.py: the address comes from the application, reload and a pidfile",
        """
import multiprocessing
import dashboard

app_host, app_port = dashboard.get_host_bind()

worker_class = 'gthread'
workers = multiprocessing.cpu_count() * 2 + 1
threads = 4
bind = f"{app_host}:{app_port}"
daemon = False
pidfile = './gunicorn.pid'
reload = True
""",
        worker="gthread",
        files={"dashboard.py": "def get_host_bind():\n    return '0.0.0.0', 10086\n"},
    ),
    "netbox-community/netbox": Row(
        "contrib/gunicorn.py",
        """
bind = '127.0.0.1:8001'
workers = 5
threads = 3
timeout = 120
max_requests = 5000
max_requests_jitter = 500
""",
        worker="gthread",
    ),
    "o-o-overflow/dc2020q-uploooadit": Row(
        "config/gunicorn.conf.py: gevent behind a proxy",
        """
accesslog = "-"
access_log_format = (
    '%({X-Forwarded-For}i)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'
)
bind = "127.0.0.1:8000"
capture_output = True
errorlog = "-"
keepalive = 60
worker_class = "gevent"
worker_tmp_dir = "/dev/shm"
workers = 1
""",
        worker="gevent",
        log=r'^- - - \[.*\] "GET / HTTP/1.1" 200',
        package="gevent",
    ),
    "NicholasLiem/kubescale": Row(
        "src/mltps/gunicorn_config.py: a float of its own, a text that is not ASCII in the log",
        """
workers = 1
worker_class = "sync"
timeout = 300
keepalive = 5
worker_connections = 100
max_requests = 500
max_requests_jitter = 50
preload_app = False
memory_limit = 1024 * 1024 * 1024 * 1.5
worker_tmp_dir = "/dev/shm"

def post_worker_init(worker):
    worker.log.info("✅ Worker initialized")

def worker_int(worker):
    worker.log.info("🛑 Worker interrupted, cleaning up...")
""",
        log="✅ Worker initialized",
    ),
    "vardanaloyan/lottery-system": Row(
        "lottery_system/config/gunicorn_conf.py: a file for the access log that is named stdout",
        """
loglevel = "info"
errorlog = "-"
accesslog = "stdout"
worker_tmp_dir = "/dev/shm"
graceful_timeout = 120
timeout = 120
keepalive = 5
threads = 3
""",
        worker="gthread",
    ),
    "JSON by the logger's class": Row(
        "a public gunicorn.conf.py for gevent: formats are assigned to glogging.Logger, numbers are texts",
        r"""
import logging, os
from gunicorn import glogging

max_requests = os.getenv("GUNICORN_MAX_REQUESTS", 0)
workers = 1
worker_class = "gevent"
worker_connections = os.getenv("GEVENT_GREENLETS", 128)
timeout = os.getenv("WORKER_STARTUP_TIMEOUT", 180)
loglevel = "info"
accesslog = "-"
errorlog = "-"
access_log_format = '"message": "%(r)s", "http_host": "%({http_host}i)s", "uri": "%(U)s", "rq_size": %(b)s'
logconfig = None

class HealthCheckFilter(logging.Filter):
    def filter(self, record):
        return '/health"' not in record.getMessage()

class CustomGunicornLogger(glogging.Logger):
    def setup(self, cfg):
        super().setup(cfg)
        logging.getLogger("gunicorn.access").addFilter(HealthCheckFilter())

logger_class = CustomGunicornLogger
glogging.Logger.datefmt = "%Y-%m-%dT%H:%M:%S%z"
glogging.Logger.error_fmt = '{"@timestamp": "%(asctime)s", "level": "%(levelname)s", "message": "%(message)s"}'
glogging.Logger.access_fmt = '{"@timestamp": "%(asctime)s", "level": "%(levelname)s", %(message)s}'
""",
        worker="gevent",
        log=r'^\{"@timestamp": "\d{4}-\d\d-\d\d [\d:]+,\d{3}", "level": "INFO", "message": "GET / HTTP/1.1", '
        r'"http_host": "-", "uri": "/", "rq_size": \d+\}',
        package="gevent",
    ),
    "rhub-api": Row(
        "a Red Hat service's gunicorn.conf.py: a filter that looks at the atoms of a record, preload, extra files",
        """
import logging, os, pathlib
from gunicorn import glogging

class HealthCheckFilter(logging.Filter):
    def filter(self, record):
        url = record.args['U']
        return not url.endswith('/ping') and not url.endswith('/cowsay')

class CustomGunicornLogger(glogging.Logger):
    def setup(self, cfg):
        super().setup(cfg)
        self.access_log.addFilter(HealthCheckFilter())

LOG_LEVEL = os.getenv('LOG_LEVEL', 'warning')
LOG_CONFIG = os.getenv('LOG_CONFIG')
reload = os.getenv('FLASK_ENV', 'production') == 'development'
reload_extra_files = [str(path.resolve()) for path in pathlib.Path('.').glob('**/*.yml')]
if LOG_CONFIG:
    logconfig_dict = {}
else:
    loglevel = LOG_LEVEL
accesslog = "-"
logger_class = CustomGunicornLogger
preload_app = True

def child_exit(server, worker):
    pass
""",
        worker="",
        log='"GET / HTTP/1.1" 200',
    ),
    "a watchdog of requests": Row(
        "hooks for gthread that end a worker whose request is stuck: worker.cfg, threads, worker.futures",
        """
import os, threading, time

_requests = {}
_lock = threading.Lock()
threads = 2
timeout = 30

def pre_request(worker, req):
    with _lock:
        _requests[threading.get_ident()] = (time.monotonic(), f"{req.method} {req.path}")

def post_request(worker, req, environ, resp):
    with _lock:
        _, what = _requests.pop(threading.get_ident(), (0, "nothing"))
    worker.log.info("watched %s of %s", what, [f.done() for f in getattr(worker, "futures", ())][:0])

def post_worker_init(worker):
    limit = worker.cfg.timeout
    if limit <= 0:
        return

    def watch():
        while True:
            time.sleep(10)
            with _lock:
                stuck = [what for started, what in _requests.values() if time.monotonic() - started > limit]
            if stuck:
                worker.alive = False
                os._exit(1)

    threading.Thread(target=watch, name="request-watchdog", daemon=True).start()
""",
        worker="gthread",
        log="watched GET /",
    ),
    "a queue of logs": Row(
        "a FastAPI service's gunicorn.conf.py: a thread of the master writes what workers put into a queue",
        """
import logging, multiprocessing, threading
from logging.handlers import QueueHandler, RotatingFileHandler

workers = 4
max_requests = 100
max_requests_jitter = 10
accesslog = "access.log"
errorlog = "-"
timeout = 100000
pidfile = "gunicorn.pid"
log_queue = multiprocessing.Queue(-1)

def setup_queue_file_handler(queue):
    handler = RotatingFileHandler("debug.log", maxBytes=1024 * 1024, backupCount=7)
    while True:
        record = queue.get()
        if record is None:
            break
        handler.emit(record)
        print("written:", record.getMessage(), flush=True)

def on_starting(server):
    threading.Thread(target=setup_queue_file_handler, args=(log_queue,), daemon=True).start()

def on_reload(server):
    on_starting(server)

def post_worker_init(worker):
    logger = logging.getLogger("debug_logger")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(QueueHandler(log_queue))
    logger.debug(f"Logger handler setup done for worker PID: {worker.pid}")
""",
        log="written: Logger handler setup done for worker PID",
    ),
    "flask-starter": Row(
        "a template's gunicorn.conf.py: every switch of TLS, and none of it on",
        """
import os

backlog = 2048
workers = 2
worker_class = 'sync'
proc_name = 'flask-starter'
umask = 0
user = None
group = None
tmp_upload_dir = None
keyfile = None
certfile = None
ssl_version = 2
cert_reqs = 0
ca_certs = None
suppress_ragged_eofs = True
do_handshake_on_connect = False

def ssl_context(config, default_ssl_context_factory):
    return default_ssl_context_factory()

def when_ready(server):
    print("Gunicorn server ready.", flush=True)

def pre_request(worker, req):
    worker.log.debug(f"{req.method} {req.path}")
""",
        log="Gunicorn server ready.",
        reference="gunicorn 27 takes no number for ssl_version",
    ),
    "pocketpro-sba": Row(
        "a gunicorn.conf.py for Render: reuse_port beside preload, a name that is no setting",
        """
import os

backlog = 2048
workers = 1
worker_class = "sync"
timeout = 300
keepalive = 120
graceful_timeout = 120
max_requests = 1000
max_requests_jitter = 100
worker_tmp_dir = "/dev/shm"
preload_app = True
accesslog = "-"
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s" %(D)s'
proc_name = "pocketpro-sba"
capture_output = True
enable_stdio_inheritance = True
reuse_port = True
max_worker_connections = 1000

def pre_fork(server, worker):
    server.log.info("🔄 Pre-fork worker (pid: %s)", worker.pid)

def post_worker_init(worker):
    worker.log.info("🎯 Worker initialized (pid: %s)", worker.pid)
""",
        log=r'"GET / HTTP/1.1" 200 \d+ "-" "-" \d+$',
    ),
    "a profile of each request": Row(
        "wsgi_profiler_conf.py of a public project: pre_request and post_request(worker, req, *args)",
        """
import cProfile, pstats, time
from io import StringIO

def pre_request(worker, req):
    worker.start_time = time.time()
    worker.profile = cProfile.Profile()
    worker.profile.enable()
    worker.log.info(f"PROFILING {worker.pid}: {req.uri}")

def post_request(worker, req, *args):
    s = StringIO()
    worker.profile.disable()
    pstats.Stats(worker.profile, stream=s).sort_stats("cumulative").print_stats(200)
    worker.log.info("[%s] URI %s took %s", req.method, req.uri, "application" in s.getvalue())
""",
        log=r"\[GET\] URI / took True",
    ),
    "a guard of memory": Row(
        "a gunicorn.conf.py for a small instance: post_request sets worker.alive (with psutil there)",
        """
import os, resource

preload_app = True
log_file = "-"
workers = 1
timeout = 120
MEMORY_LIMIT_MB = 1

def post_request(worker, req, environ, resp):
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if memory_mb > MEMORY_LIMIT_MB:
        worker.alive = False

def worker_exit(server, worker):
    server.log.info("worker %s has served %s", worker.age, worker.nr >= 1)
""",
        log="worker 1 has served True",
    ),
    "background threads in one worker": Row(
        "a Flask service's gunicorn.conf.py: a lock of a file decides which worker runs them",
        """
import os

workers = 3
worker_class = "sync"
accesslog = "-"
loglevel = os.getenv("LOG_LEVEL", "info").lower()
forwarded_allow_ips = os.getenv("FORWARDED_ALLOW_IPS", "*")
proxy_allow_ips = forwarded_allow_ips

def post_fork(server, worker):
    try:
        lock_file = open("bg.lock", "w")
        import fcntl
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, OSError):
        return
    worker.lock = lock_file
    worker.log.info("Background threads started in worker pid=%s", worker.pid)
""",
        log="Background threads started",
    ),
    "names in capitals": Row(
        "a public gunicorn configuration whose settings are in capitals, and so none",
        """
BIND = "0.0.0.0:44195"
WORKERS = 4
TIMEOUT = 120
PRELOAD_APP = True
PROC_NAME = "dashboard"
PROXY_ALLOW_IPS = "*"

def when_ready(server):
    server.log.info("%s of %s workers", server.cfg.workers, WORKERS)
""",
        log="1 of 4 workers",
    ),
    "garbage is frozen": Row(
        "a streaming service's gunicorn.conf.py: gc.freeze() before the forks, resident memory after them",
        """
import gc

graceful_timeout = 120
preload_app = True

def when_ready(server):
    gc.freeze()
    server.log.info(f"Objects in permanent generation: {gc.get_freeze_count()}")

def post_fork(server, worker):
    import resource
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    server.log.info(f"Worker {worker.pid} RSS after fork: {rss} KB")
""",
        log=r"RSS after fork: \d+ KB",
    ),
}


def param(name: str) -> object:
    row, marks = ROWS[name], []
    if row.reference:
        marks.append(pytest.mark.beyond_reference(row.reference))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [param(name) for name in ROWS])
def test_a_configuration_of_a_project(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    if row.package:
        needs(row.package)
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text(row.text)
    extra = ("--unavailable", "warn") if row.unavailable and not REFERENCE else ()
    with Site(conf, app=row.app, files={"shop.py": SHOP, **row.files}, env=row.env, extra=extra, wait=False) as server:
        until(server._accepts, "the server listens")
        reply = server.get("/")
        assert reply.status == 200
        assert reply.body.decode().endswith(row.body.removeprefix(";"))
        if row.worker and not REFERENCE:
            server.log.wait(rf"Using worker: {re.escape(row.worker)}")
        if row.log:
            until(lambda: server.log.matching(row.log) or server.out.matching(row.log), f"it says {row.log!r}")
        if row.server != "any":
            assert reply.get("Server") == row.server
