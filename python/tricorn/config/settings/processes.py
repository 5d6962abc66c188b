"""The processes that run the application."""

from __future__ import annotations

from tricorn.config.lookups import ClassName
from tricorn.config.setting import Section, Setting, fixed
from tricorn.config.validators import YEAR, Boolean, Bytes, Integer, Seconds, WorkerCount

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
        help="How many processes serve requests; auto is as many as fill the processors.",
        doc="TTIN and TTOU change it by one while the server runs; a reload sets it again. `auto` is one for each "
        "processor that the server may use, and two under `sync`, whose worker leaves its processor idle while its "
        "request waits. Processors are those of the cgroup's CPU quota (a container's limit) and of "
        "`sched_getaffinity`, rounded up. Where the cgroup has a limit of memory, there are no more workers than it "
        "has room for twice, since a reload has two generations: `max_worker_memory` for each, or else 80 MiB. The "
        "log says the number and its reasons. See [how many "
        "workers](../guides/choose-a-class.md#how-many-workers).",
    )

    worker_class = Setting(
        flags=("-k", "--worker-class"),
        kind=ClassName(WORKER_CLASSES),
        default=AUTO,
        help=f"How workers run requests: {', '.join(WORKER_CLASSES[:-1])} or {WORKER_CLASSES[-1]}.",
        doc="The way a worker waits. `auto` follows the application: `sync` for WSGI (`gthread` with several "
        "threads), `asgi` for ASGI, `tornado` or `aiohttp` for an application of these libraries. Each worker tells "
        "it by the type of what it has loaded, and the log says the class and the reason. What could be any of them "
        "is called as WSGI. `auto` never chooses `gevent` or `eventlet`, which patch the standard library before the "
        "application is loaded. Nor is there an event loop while the application is loaded: modules that ask for one "
        "get the one that asyncio makes then; from Python 3.14 on it makes none, and such an application needs its "
        "class named. For WSGI applications: `sync` runs one request at a time, `gthread` as many as it has threads, "
        "`gevent` and `eventlet` up to `worker_connections` on greenlets ([greenlets](../how-it-works/greenlets.md)). "
        "`asgi` is for ASGI "
        "applications, `tornado` and `aiohttp` are for those of these libraries; they run up to `worker_connections` "
        "requests on an event loop ([event loops](../how-it-works/event-loops.md)). Classes that need a package have "
        "an extra of their name: "
        "`pip install 'tricorn[gevent]'`. The other names and the dotted ones of gunicorn's, uvicorn's and aiohttp's "
        "classes are understood. `sync` with more than one thread is `gthread`. An application that a class cannot "
        "call is refused with the name of one that can.",
    )

    worker_class_strict = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Refuses a worker class that reads and writes its connections itself.",
        doc="A class that is derived from gunicorn's and has a `handle_request`, an `accept` or a whole `run` of its "
        "own is otherwise hosted: it runs under the arbiter without the native core, and a warning says what it does "
        "without. With this setting the server ends, and says which setting does what the method is for "
        "(`request_timeout` for a `handle_request` with a timeout).",
    )

    threads = Setting(
        kind=Integer(min=1, max=4096, zero=1),
        default=1,
        help="How many requests one worker runs at once, each in a thread of its own.",
        doc="0 is 1. With more than one, `sync` becomes `gthread`.",
    )

    worker_connections = Setting(
        kind=Integer(min=1),
        default=1000,
        core=True,
        help="The maximum number of requests that a worker with greenlets or an event loop runs at once.",
        doc="Idle connections do not count, open WebSockets do. A worker with greenlets or an event loop runs so many "
        "at once; more wait, in order. Under sync and gthread a worker that runs and holds so many accepts no more.",
    )

    green_drivers = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Leaves drivers written in C as they are in greenlet workers.",
        doc="Otherwise, with the worker classes `gevent` and `eventlet`, those that can be are made to wait "
        "cooperatively when the application imports them: psycopg2, psycopg 3, grpcio. Of others that are known to "
        "block the whole worker while they wait the log says so, and what to do. See [Greenlet "
        "workers](../how-it-works/greenlets.md#drivers).",
    )

    max_requests = Setting(
        kind=Integer(),
        default=0,
        help="Replace a worker after this many requests; 0 switches it off.",
        doc="Its successor is started first, so that nothing waits for it.",
    )

    max_requests_jitter = Setting(
        kind=Integer(),
        default=0,
        help="Up to how many requests are added to max_requests by chance, so that workers do not leave together.",
        doc="Each worker adds a random number up to this one, so that they do not all restart at once.",
    )

    timeout = Setting(
        flags=("-t", "--timeout"),
        kind=Seconds(max=YEAR),
        default=30,
        core=True,
        help="Seconds without progress after which the worker of a request is replaced; 0 switches it off.",
        doc="A request that holds a thread of a sync or gthread worker and makes no progress for longer has its "
        "Python stack logged, also when the thread sits in C code. The worker then finishes its other requests and is "
        "replaced. Progress is the call, each piece that the application yields or writes, and each that a slow "
        "client makes room for: a stream may last for as long as it likes. The time in which a thread waits for its "
        "client does not count; slow clients have limits of their own. A connection that the application has taken "
        "(`gunicorn.socket`) has no limit. A worker that is merely busy is never replaced. In a worker with greenlets "
        "or an event loop it is the loop that must not be held up for so long; a request may wait longer. To end the "
        "request and keep the worker, see `request_timeout`.",
    )

    graceful_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=30,
        core=True,
        help="How long a worker may finish its requests after it was told to stop.",
        doc="When it is over the worker is told to stop at once, and two seconds later it is killed.",
    )

    keepalive = Setting(
        flags=("--keep-alive",),
        kind=Seconds(max=YEAR),
        default=2,
        core=True,
        help="Seconds an idle connection stays open for its next request.",
        doc="`sync` keeps idle connections as well: they hold no thread. 0 closes each after its response.",
    )

    connection_max_requests = Setting(
        kind=Integer(min=0),
        default=0,
        core=True,
        own=True,
        rare=True,
        help="Requests after which a connection is closed; 0 is any number.",
        doc="The last reply says `Connection: close`, so that no request is lost. nginx closes after 1000. Where a "
        "balancer of the fourth layer or a Service of Kubernetes spreads connections, a server that is added gets none "
        "of those that are there: this, or `connection_max_age`, makes clients and pools connect anew. Workers that "
        "hand a connection over go on counting.",
    )

    connection_max_age = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        core=True,
        own=True,
        rare=True,
        help="Seconds after which a connection is closed behind its next reply; 0 is any time.",
        doc="The reply says `Connection: close`; none is ended in its midst. A connection that is idle then is closed "
        "as after `keepalive`. Each has up to a tenth more or less, so that those that began together do not end "
        "together. WebSockets have no age.",
    )

    request_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        core=True,
        own=True,
        help="Seconds an application may take for one request; 0 switches it off.",
        doc="A request that takes longer has its Python stack logged, and `tricorn.errors.RequestTimeout` is raised "
        "in it. Under asgi its task is cancelled. The client is answered with 504 if nothing was sent. The worker "
        "goes on. Make it shorter than `timeout`, which replaces the worker.",
    )

    boot_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=300,
        own=True,
        help="Seconds in which a worker must have loaded the application; 0 switches it off.",
        doc="A worker that takes longer has its Python stack logged and is killed. On the first start that ends the "
        "server; on a reload the old workers go on serving.",
    )

    max_worker_memory = Setting(
        kind=Bytes(),
        default=0,
        own=True,
        help="Resident bytes beyond which a worker is replaced; 0 switches it off.",
        doc="The worker finishes its requests first. At most a quarter of the workers is replaced at the same time.",
    )

    max_worker_lifetime = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        help="Seconds after which a worker is replaced; 0 switches it off.",
        doc="The worker finishes its requests first.",
    )

    max_worker_lifetime_jitter = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        rare=True,
        help="Up to how many seconds are added to max_worker_lifetime by chance.",
        doc="Each worker adds a random time up to this one, so that they are not all replaced at once.",
    )

    drain_delay = Setting(
        kind=Seconds(max=YEAR),
        default=0,
        own=True,
        help="Seconds to go on serving after TERM, with the readiness path answering 503.",
        doc="For load balancers that take a while to notice: new connections are served until it is over, and only "
        "then does the graceful stop begin. Each response says `Connection: close` meanwhile, so that pools of "
        "balancers that never ask for readiness (nginx, those of the fourth layer) move as well. It ends early if no "
        "request comes for `drain_quiet`.",
    )

    drain_quiet = Setting(
        kind=Seconds(max=YEAR),
        default=3,
        own=True,
        part_of=fixed("drain_delay", 3),
        help="Seconds without a request that end drain_delay early; 0 waits for all of it.",
        doc="No request and no connection has come for so long, and none waits at the listeners: the load balancers "
        "have noticed. Health checks at these listeners are requests, too. Where requests are seldom, silence says "
        "nothing: if the balancer takes long to notice, set 0, or a time in which a request would have come.",
    )
