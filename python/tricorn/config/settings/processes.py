"""The processes that run the application."""

from __future__ import annotations

from tricorn.config.lookups import ClassName
from tricorn.config.setting import Section, Setting, fixed
from tricorn.config.validators import YEAR, Boolean, Bytes, CanarySize, Integer, Seconds, WorkerCount

AUTO = "auto"
WORKER_CLASSES = (AUTO, "sync", "gthread", "gevent", "eventlet", "asgi", "tornado", "aiohttp")
HOSTED = "hosted"
"""Name in the log of a user's class that serves connections itself. It cannot be asked for."""


class Processes(Section):
    SECTION = "Worker Processes"

    workers = Setting(
        flags=("-w", "--workers"),
        env_also=("WEB_CONCURRENCY",),
        kind=WorkerCount(),
        default=1,
        help="Number of worker processes; auto: as many as the CPUs can use.",
        doc="TTIN and TTOU change the number by one at run time; a reload resets it. `auto` is one worker per CPU, or "
        "two under `sync`, because a sync worker leaves its CPU idle while its request waits. CPUs are counted by the "
        "cgroup's CPU quota (a container's limit) and `sched_getaffinity`, rounded up. With a cgroup memory limit, "
        "tricorn leaves room for two generations of workers (during a reload), at `max_worker_memory` or else 80 MiB "
        "each. The log shows the number and the reason. See [how many "
        "workers](../guides/choose-a-class.md#how-many-workers).",
    )

    worker_class = Setting(
        flags=("-k", "--worker-class"),
        kind=ClassName(WORKER_CLASSES),
        default=AUTO,
        help=f"Worker class: {', '.join(WORKER_CLASSES[:-1])} or {WORKER_CLASSES[-1]}.",
        doc="`auto` detects the class from the application's type: `sync` for WSGI (`gthread` with more than one "
        "thread), `asgi` for ASGI, `tornado` or `aiohttp` for applications of these libraries. The log shows the "
        "class and the reason. Ambiguous applications are treated as WSGI. `auto` never selects `gevent` or "
        "`eventlet`, which must patch the standard library before the application is loaded. Nor is an event loop "
        "running while the application is loaded: modules that request one get a new one from asyncio; since Python "
        "3.14 asyncio creates none, and such applications need an explicit class. For WSGI applications: `sync` runs "
        "one request at a time, `gthread` one per thread, `gevent` and `eventlet` up to `worker_connections` on "
        "greenlets (see GREENLETS.md). `asgi`, `tornado` and `aiohttp` run up to `worker_connections` requests on an "
        "event loop (see EVENT_LOOPS.md). Classes that need a package have an extra of the same name: `pip install "
        "'tricorn[gevent]'`. The aliases and dotted names of gunicorn's, uvicorn's and aiohttp's worker classes are "
        "accepted. `sync` with more than one thread is `gthread`. If a class cannot run the application, the start "
        "fails and the error message suggests one that can.",
    )

    worker_class_strict = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Refuse worker classes that do their own socket I/O.",
        doc="By default a class derived from gunicorn's with its own `handle_request`, `accept` or complete `run` is "
        "hosted: it runs under the arbiter without the native core, and a warning says what is missing. With this "
        "setting the server stops, and suggests a setting that replaces the method (`request_timeout` for a "
        "`handle_request` with a timeout).",
    )

    threads = Setting(
        kind=Integer(min=1, max=4096, zero=1),
        default=1,
        help="Number of threads per worker; each runs one request.",
        doc="0 means 1. With more than one thread, `sync` becomes `gthread`.",
    )

    worker_connections = Setting(
        kind=Integer(min=1),
        default=1000,
        core=True,
        help="Maximum number of requests running at once in a greenlet or event loop worker.",
        doc="Open WebSockets count, idle connections do not. Further requests wait, in order. A sync or gthread "
        "worker with this many requests running and waiting accepts no more.",
    )

    green_drivers = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Do not patch C drivers in greenlet workers.",
        doc="By default, with `gevent` and `eventlet`, drivers that support it are made cooperative when the "
        "application imports them: psycopg2, psycopg 3, grpcio. For drivers known to block the whole worker the log "
        "has a warning and a remedy. See [Greenlet workers](../how-it-works/greenlets.md#drivers).",
    )

    max_requests = Setting(
        kind=Integer(),
        default=0,
        help="Replace a worker after this many requests; 0 disables it.",
        doc="The new worker boots first, so no request waits for it.",
    )

    max_requests_jitter = Setting(
        kind=Integer(),
        default=0,
        help="Random jitter added to max_requests, so that workers do not restart at the same time.",
        doc="Each worker adds a random number between 0 and this value.",
    )

    timeout = Setting(
        flags=("-t", "--timeout"),
        kind=Seconds(max=YEAR),
        default=30,
        core=True,
        help="Replace the worker if a request makes no progress for this many seconds; 0 disables it.",
        doc="If a request occupies a thread of a sync or gthread worker for longer without progress, its Python stack "
        "is logged, even if the thread is in C code. The worker then finishes its other requests and is replaced. "
        "Progress is the call, each piece that the application yields or writes, and each piece that a slow client "
        "makes room for, so streams may last for any time. Time spent waiting for the client does not count; slow "
        "clients have their own limits. Connections that the application has taken over (`gunicorn.socket`) have no "
        "limit. A worker that is merely busy is never replaced. In greenlet and event loop workers the limit applies "
        "to the loop, not to a request: it must not be blocked for this long. To end the request and keep the worker, "
        "see `request_timeout`.",
    )

    graceful_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=30,
        core=True,
        help="How long a worker may take to finish its requests during shutdown.",
        doc="After that the worker is interrupted, and killed two seconds later.",
    )

    keepalive = Setting(
        flags=("--keep-alive",),
        kind=Seconds(max=YEAR),
        default=2,
        core=True,
        help="Seconds to keep an idle connection open for the next request.",
        doc="Idle connections occupy no thread, so `sync` keeps them too. 0 closes each connection after its response. "
        "For HTTP/2 see `http2_idle_timeout`.",
    )

    connection_max_requests = Setting(
        kind=Integer(min=0),
        default=0,
        core=True,
        own=True,
        rare=True,
        help="Close a connection after this many requests; 0: unlimited.",
        doc="The last response has `Connection: close`, so no request is lost. nginx closes after 1000. Layer 4 "
        "balancers and Kubernetes Services distribute connections, not requests, so a new server gets none of the "
        "existing ones. This setting, or `connection_max_age`, makes clients and pools reconnect. The count continues "
        "when a connection moves to another worker.",
    )

    connection_max_age = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        core=True,
        own=True,
        rare=True,
        help="Close a connection after this many seconds, with its next response; 0: unlimited.",
        doc="The response has `Connection: close`; no response is cut off. Idle connections of that age are closed as "
        "after `keepalive`. The age varies by up to 10 %, so that connections opened together do not close together. "
        "Does not apply to WebSockets.",
    )

    request_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        core=True,
        own=True,
        help="Maximum seconds the application may take for a request; 0 disables it.",
        doc="After that the Python stack is logged and `tricorn.errors.RequestTimeout` is raised in the request. "
        "Under asgi its task is cancelled. The client gets 504 if nothing was sent, and the worker keeps running. Use "
        "a value below `timeout`, which replaces the worker.",
    )

    boot_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=300,
        own=True,
        help="Seconds within which a worker must load the application; 0 disables it.",
        doc="A slower worker has its Python stack logged and is killed. At the first start this ends the server; at a "
        "reload the old workers keep serving.",
    )

    max_worker_memory = Setting(
        kind=Bytes(),
        default=0,
        own=True,
        help="Replace a worker when it uses more resident memory; 0 disables it.",
        doc="The worker finishes its requests first. At most a quarter of the workers are replaced at the same time.",
    )

    max_worker_lifetime = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        help="Replace a worker after this many seconds; 0 disables it.",
        doc="The worker finishes its requests first.",
    )

    max_worker_lifetime_jitter = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        rare=True,
        help="Random jitter added to max_worker_lifetime.",
        doc="Each worker adds a random time between 0 and this value, so that they are not all replaced at once.",
    )

    drain_delay = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        help="Keep serving for this many seconds after TERM, with the readiness path answering 503.",
        doc="Gives load balancers time to notice: new connections are served until it ends, and only then does the "
        "graceful shutdown begin. During this time each response has `Connection: close`, so that balancers without "
        "readiness probes (nginx, layer 4) move their pools too. It ends early if there is no request for "
        "`drain_quiet`.",
    )

    canary = Setting(
        kind=CanarySize(),
        default=0,
        own=True,
        help="Workers that a reload begins with, compared with the old ones; 0: all at once.",
        doc="A number, or a share of `workers` such as `10%`, rounded up. They serve beside all of the old workers for "
        "`canary_time`. The reload is rolled back if one of them ends or is stuck, if more of their requests fail, or "
        "if they take longer. Otherwise the other new workers are started. See [canary](../guides/canary.md). `reload` "
        "(changed code) replaces all workers at once.",
    )

    canary_time = Setting(
        kind=Seconds(min=1, max=YEAR),
        default=60,
        own=True,
        rare=True,
        help="Seconds for which canaries are compared with the old workers.",
        doc="Times are compared after a warm-up: ten seconds and 50 requests for each canary, or a fifth of this time "
        "and a tenth of `canary_requests` if that is less, and half of this time at most.",
    )

    canary_requests = Setting(
        kind=Integer(min=1),
        default=500,
        own=True,
        part_of=fixed("canary", 500),
        help="Requests to the canaries below which the log says that they were too few.",
        doc="The other new workers are started nevertheless when `canary_time` is over.",
    )

    drain_quiet = Setting(
        kind=Seconds(max=YEAR),
        default=3,
        own=True,
        part_of=fixed("drain_delay", 3),
        help="Seconds without a request after which drain_delay ends early; 0 waits for all of it.",
        doc="No request and no connection arrived for this long, and none waits at the listeners, so the load "
        "balancers have noticed. Health checks on these listeners count as requests. In a service with few requests "
        "silence proves nothing: if the balancer is slow to notice, set 0, or a time in which a request would have "
        "arrived.",
    )
