"""The application and the processes that run it."""

from __future__ import annotations

from tricorn.config.setting import Action, Setting
from tricorn.config.validators import (
    Boolean,
    EnvAssignments,
    Integer,
    OptionalText,
    Seconds,
    Text,
    TextList,
    Umask,
)

WORKERS_SECTION = "Worker Processes"
MECHANICS_SECTION = "Server Mechanics"

WSGI_APP = Setting(
    name="wsgi_app",
    kind=OptionalText(metavar="APP_MODULE"),
    default=None,
    section="Application",
    help="The application: MODULE, MODULE:ATTRIBUTE or MODULE:FACTORY(ARGUMENTS).",
    doc="The attribute defaults to `application`. The arguments of a factory are literals.",
)

WORKERS = Setting(
    name="workers",
    flags=("-w", "--workers"),
    env_also=("WEB_CONCURRENCY",),
    kind=Integer(min=1, max=4096),
    default=1,
    section=WORKERS_SECTION,
    help="The number of worker processes for handling requests.",
)

WORKER_CLASS = Setting(
    name="worker_class",
    flags=("-k", "--worker-class"),
    kind=Text(),
    default="sync",
    section=WORKERS_SECTION,
    help="The type of workers to use.",
    doc="The way a worker waits. `sync` with more than one thread is `gthread`.",
)

THREADS = Setting(
    name="threads",
    flags=("--threads",),
    kind=Integer(min=1, max=4096),
    default=1,
    section=WORKERS_SECTION,
    help="The number of worker threads for handling requests.",
)

WORKER_CONNECTIONS = Setting(
    name="worker_connections",
    flags=("--worker-connections",),
    kind=Integer(min=1),
    default=1000,
    section=WORKERS_SECTION,
    help="The maximum number of simultaneous clients.",
)

TIMEOUT = Setting(
    name="timeout",
    flags=("-t", "--timeout"),
    kind=Seconds(),
    default=30,
    section=WORKERS_SECTION,
    help="Workers silent for more than this many seconds are killed and restarted.",
    doc="0 switches it off.",
)

GRACEFUL_TIMEOUT = Setting(
    name="graceful_timeout",
    flags=("--graceful-timeout",),
    kind=Seconds(),
    default=30,
    section=WORKERS_SECTION,
    help="How long a worker may finish its requests after it was told to stop.",
    doc="When it is over the worker is told to stop at once, and two seconds later it is killed.",
)

KEEPALIVE = Setting(
    name="keepalive",
    flags=("--keep-alive",),
    kind=Seconds(),
    default=2,
    section=WORKERS_SECTION,
    help="The number of seconds to wait for requests on a Keep-Alive connection.",
)

CHDIR = Setting(
    name="chdir",
    flags=("--chdir",),
    kind=OptionalText(metavar="DIR"),
    default=None,
    section=MECHANICS_SECTION,
    help="Change directory to specified directory before loading apps.",
)

PYTHONPATH = Setting(
    name="pythonpath",
    flags=("--pythonpath",),
    kind=TextList(metavar="DIRS"),
    default=(),
    section=MECHANICS_SECTION,
    help="A comma-separated list of directories to add to the Python path.",
)

RAW_ENV = Setting(
    name="raw_env",
    flags=("-e", "--env"),
    action=Action.APPEND,
    kind=EnvAssignments(),
    default=(),
    section=MECHANICS_SECTION,
    help="Set environment variables in the execution environment, as KEY=VALUE.",
)

PRELOAD_APP = Setting(
    name="preload_app",
    flags=("--preload",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=MECHANICS_SECTION,
    help="Load application code before the worker processes are forked.",
    doc="Saves memory, since workers share the pages; costs reloading code with HUP.",
)

SENDFILE = Setting(
    name="sendfile",
    flags=("--no-sendfile",),
    action=Action.UNSET,
    env_also=("SENDFILE",),
    kind=Boolean(),
    default=True,
    section=MECHANICS_SECTION,
    help="Disables the use of sendfile().",
)

UMASK = Setting(
    name="umask",
    flags=("-m", "--umask"),
    kind=Umask(),
    default=0,
    section=MECHANICS_SECTION,
    help="A bit mask for the file mode of unix sockets.",
)

SETTINGS = (
    WSGI_APP,
    WORKERS,
    WORKER_CLASS,
    THREADS,
    WORKER_CONNECTIONS,
    TIMEOUT,
    GRACEFUL_TIMEOUT,
    KEEPALIVE,
    CHDIR,
    PYTHONPATH,
    RAW_ENV,
    PRELOAD_APP,
    SENDFILE,
    UMASK,
)
