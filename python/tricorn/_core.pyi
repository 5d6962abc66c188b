"""The native core. One per worker process, made after the fork."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TypeAlias, TypeVar, final

_T = TypeVar("_T")

__all__ = [
    "GROUP_BYTES",
    "LEDGER_BYTES",
    "AsgiGateway",
    "BodySource",
    "Call",
    "CallGateway",
    "CallSoon",
    "Collector",
    "Core",
    "Counts",
    "GreenServer",
    "Ledger",
    "LedgerReader",
    "LoopClock",
    "LoopServer",
    "PageReader",
    "Reports",
    "RequestFactory",
    "Route",
    "RoutePages",
    "RunningRequest",
    "Scoreboard",
    "Sessions",
    "SignalHandler",
    "Snapshot",
    "Transport",
    "TransportGateway",
    "WsgiGateway",
    "access_escape",
    "access_object",
    "adopt_orphans",
    "basic_auth_user",
    "check_access_log_format",
    "check_tls",
    "check_upload_dir",
    "doctor_look",
    "doctor_walk",
    "enlarge_signal_stack",
    "histogram_edges",
    "is_metric_file",
    "load",
    "metric_families",
    "pages_in_use",
    "publish_tls",
    "request_id",
    "route_bytes",
    "scoreboard_bytes",
    "scoreboard_words",
    "self_signed",
    "session_sizes",
    "suite_names",
    "tls_page_bytes",
    "trim_heap",
    "unavailable",
    "upload_dir_in_memory",
]

GROUP_BYTES: int
"""The size of the page that all workers share."""

LEDGER_BYTES: int
"""The size of what the arbiter counts in."""

def pages_in_use(group: Any) -> int:
    """How many pages of the scoreboard cores have ever used, by the page of their group."""

def histogram_edges() -> tuple[list[int], list[int]]:
    """The edges of the buckets of `Counts.histograms` in nanoseconds: of times, and of waits for the GIL.

    A bucket lies between its edge and the next; there is one edge more than there are buckets.
    """

def is_metric_file(content: bytes) -> bool:
    """Whether prometheus_client can open a file of this content again."""

def metric_families() -> list[tuple[str, str, str, str]]:
    """The metrics there are: name, kind, label, help; without `tricorn_`, and a counter's without `_total`."""

def route_bytes(named: int, workers: int) -> int:
    """The size of the pages for so many routes with a name, and so many workers at a time."""

def scoreboard_bytes(entries: int) -> int:
    """The size of the page of a worker that runs so many requests at once: a multiple of 4096."""

def scoreboard_words() -> list[tuple[int, int, str, str, str]]:
    """The single words of a page: index, how many words, role (counter, gauge, own), name among the figures, text."""

def tls_page_bytes() -> int:
    """The size of the page of certificates, keys and lists that workers share."""

def self_signed(names: list[str], days: int, key: str) -> tuple[str, str]:
    """Returns a server certificate for these names and addresses, and its private key (PKCS #8), both PEM.

    `key` is `ecdsa` (P-256) or `rsa` (2048 bits). Raises `ValueError` for a name that no certificate can have.
    """

def suite_names() -> list[str]:
    """IANA's names of the cipher suites there are."""

def check_tls(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    """Judges all that TLS doors need: one dictionary for each certificate.

    Its keys are `label`, `names`, `serial` (hexadecimal), `not_after` (seconds since 1970), `key` ("ECDSA P-256") and
    `warnings`. Raises `ValueError` with a sentence for what is wrong.

    The keys of a bundle are `certificates`, a list of (label, chain, key, OCSP response or None), the first of which is
    the default; `ca`, PEM or None; `crls`, each PEM or DER; `client_certificates`, "none", "optional" or "required";
    `min_version` and `max_version`, "1.2" or "1.3"; `suites`, IANA's names or None for all; `alpn`; `require_sni`;
    `ticket_keys`, of 32 bytes each, the newest first; `ticket_lifetime` in seconds; `key_log`, a path or None.
    """

def publish_tls(page: Any, bundle: dict[str, Any]) -> None:
    """Judges a bundle as `check_tls` does, and puts it into the page; on `ValueError` that is as before."""

def access_escape(text: str) -> str:
    """Text of a client, made harmless for a line of the access log."""

def basic_auth_user(authorization: str) -> str | None:
    """The user name of HTTP Basic authentication; None for other credentials and broken ones."""

def access_object(atoms: dict[str, Any], time: str, millis: int) -> str:
    """The JSON object of a request for the access log, made of what `Logger.atoms` returns.

    `time` is the log's, `[21/Nov/2026:01:02:32 +0000]`; `millis` have passed since then.
    """

def request_id() -> str | None:
    """The id of the request that this context handles, with the setting `request_id`."""

@final
class Sessions:
    """The table of sessions, for the arbiter. It keeps the buffer exported.

    Raises `ValueError` if the buffer is read-only or too short.
    """

    def __new__(cls, page: Any) -> Sessions: ...
    def begin(self, first: int, second: int) -> None:
        """Gives the table its keys (64 bits each), before it is shared."""

    def disown(self, mailbox: int) -> None:
        """Forgets the sessions of the worker that read this mailbox."""

    def counts(self) -> list[tuple[int, int, int]]:
        """Mailbox, pid and number of sessions, of each mailbox that a worker reads."""

def session_sizes() -> tuple[int, int]:
    """The size of the table in bytes, and how many mailboxes it knows."""

def unavailable(message: bytes) -> bytes:
    """Returns the 503 for a request in the workers' channel that none of them will take.

    `message` is what its message begins with: it tells how the client is spoken to.
    """

def trim_heap() -> None:
    """Returns to the kernel what the allocator keeps of memory that was freed (malloc_trim(3)); glibc's only."""

def adopt_orphans() -> None:
    """Makes orphans among the descendants of this process its children (prctl(2), PR_SET_CHILD_SUBREAPER).

    Raises `OSError` where the system does not have it.
    """

def enlarge_signal_stack() -> bool:
    """Makes room for every signal at once on the calling thread's alternate signal stack, if it has one.

    Returns whether that was too small, and raises `OSError` if there is no memory for another.
    """

def load(plan: bytes, tick: Callable[[bytes], bool] | None = None) -> bytes:
    """Sends what a plan says, and returns what came of it; both are JSON, see `tricorn_bench.load`.

    `tick` is called about once a second with the progress as JSON; False ends the run. Raises `ValueError` with a
    sentence where nothing can be sent. What `tick` or a handler of a signal raises is raised at the end, with what was
    measured as its attribute `outcome`.
    """

def doctor_look(pid: int, seconds: float) -> bytes:
    """What the threads of a process do within so many seconds, as JSON; see `tricorn_tools.doctor`.

    Raises `ProcessLookupError`, `PermissionError`, or `ValueError` for a process without an interpreter, each with a
    sentence.
    """

def doctor_walk(pid: int, seconds: float) -> tuple[int, int, int, int]:
    """Reads the frames of each Python thread again and again: walks made, discarded, trimmed; frames found."""

def check_access_log_format(text: str) -> str | None:
    """A sentence with the known atoms, if the format has another one. Raises `ValueError` for what is no format."""

def check_upload_dir(path: str) -> None:
    """Raises `OSError`, saying why, for a directory in which bodies of requests cannot be kept."""

def upload_dir_in_memory(path: str | None) -> Path | None:
    """The directory for bodies of requests, if what is kept there takes memory; without a path the system's."""

@final
class BodySource:
    """The body of a request that was begun before its body had come; see `tricorn.gateway.request_body`."""

    def receive(self, most: int) -> bytes | None:
        """Up to `most` bytes, at least one; empty at the end; None if there is nothing yet: ask again.

        Raises `tricorn.errors.BodyError` if the rest does not come, and RuntimeError when the request is over.
        """

@final
class WsgiGateway:
    """How a WSGI application is called (PEP 3333).

    `base_environ` holds the keys that are the same for every request. `on_error(message, exception)` logs an exception
    that the application let out; `on_notice(level, text)` logs what the core noticed (refused requests and such).

    `before(environ)` is called right before the application; an exception it lets out is reported to `on_error` and
    answered with 500, and the application is not called. `after(environ, token, status, headers, sent, micros)` is
    called when the reply is complete, after its line in the access log: `token` is what `before` returned (None
    without one, or if it failed), `status` and `headers` are what was sent as the application's (`"200 OK"`, a list
    of name and value), `sent` the bytes of the body, `micros` the time since the request's first byte. It is also
    called when the application failed (`500 Internal Server Error` and no headers, if nothing was sent before), but
    not for requests refused before the application was called. An exception it lets out is reported to `on_error`
    and changes nothing.
    """

    def __new__(
        cls,
        application: Callable[..., Any],
        base_environ: Mapping[str, Any],
        on_error: Callable[[str, BaseException], object],
        on_notice: Callable[[int, str], object] | None = None,
        before: Callable[[dict[str, Any]], object] | None = None,
        after: Callable[[dict[str, Any], Any, str, list[tuple[str, str]], int, int], object] | None = None,
    ) -> WsgiGateway: ...

@final
class Scoreboard:
    """A worker's page of the scoreboard: a writable buffer, aligned to 8 bytes, that stays exported.

    Raises `ValueError` for a buffer that is too short for a page.
    """

    def __new__(cls, page: Any) -> Scoreboard: ...
    def read(self) -> Snapshot | None:
        """None for a page no worker has begun. Raises `ValueError` for a page of another layout.

        The writer does not stop meanwhile: figures that belong together may be a request apart.
        """

    def requests(self) -> list[RunningRequest]:
        """The requests the worker is serving, or was serving when it was killed. There may be thousands."""

    def histogram(self, name: str) -> dict[int, int]:
        """`queue`, `application` or `total`: lower edges of the buckets in use, in nanoseconds, and their counts."""

    @property
    def begun(self) -> int:
        """How many requests the worker has begun; 0 for a page no worker has begun."""

    def order(
        self,
        *,
        not_ready: bool = False,
        drain: bool = False,
        yields: bool = False,
        replaced: bool = False,
        reconnect: bool = False,
    ) -> None:
        """Tells the worker's core what to do by itself; the orders before are replaced.

        `not_ready`: its readiness path answers 503. `drain`: it drains, though its Python may never run again. The core
        looks when it ticks and when a signal wakes it. `yields`: when it drains it takes no more connections, since
        others listen on the same sockets. `replaced`: others serve on when it has left. `reconnect`: each reply
        is the last of its connection. A worker that has not begun its page yet finds them when it does.
        """

    @property
    def replaced(self) -> bool:
        """Whether that was ordered."""

    def order_log_level(self, level: int) -> None:
        """The level of the log that the worker's Python is to take, as `logging` numbers them; 0: as configured."""

    @property
    def log_level(self) -> int:
        """What was ordered so."""

    def order_cancel(self, slot: int, started: int) -> None:
        """Has the worker's monitor end the call at this slot, if it is still the one that began then. One at a time."""

    def take_cancelled(self) -> Literal["told", "ended", "over"] | None:
        """What became of the order: the call was told to end, had ended, or was told or had answered before.

        None: the monitor has not taken it, and will not do so any more.
        """

    @property
    def databases(self) -> int:
        """How many connections to databases the worker holds, as far as it can tell."""

    def count_databases(self, count: int) -> None: ...
    def set_memory(self, pss: int, uss: int, shared: int) -> None:
        """Publishes the memory of the worker in bytes, as the arbiter has measured it; zeros: it is not known."""

    def offload_waits(self, change: int) -> None:
        """So many calls more wait for a native thread (`tricorn.offload`); like those below from any thread."""

    def offload_begins(self) -> None: ...
    def offload_ends(self, nanoseconds: int) -> None: ...
    def offload_abandoned(self) -> None: ...
    def offload_threads(self, change: int) -> None: ...
    def begin(self, pid: int) -> None:
        """For a worker without a core, which says nothing of its load.

        One request counts as in flight, so that the arbiter looks at the heartbeat, which rests for an idle core.
        """

    def beat(self) -> None:
        """The heartbeat of a worker without a core."""

    def clear(self) -> None:
        """Makes a page that a worker had one that no worker has begun. What no worker used is not touched."""

    def vacate(self) -> None:
        """The worker is gone: no other counts on its threads, or waits for those that waited there."""

@final
class Ledger:
    """What workers that are gone have counted, and what the arbiter counts: a writable buffer that stays exported.

    Raises `ValueError` for a buffer that is too short.
    """

    def __new__(cls, page: Any) -> Ledger: ...
    def begin(self) -> None:
        """The server begins now."""

    def bury(self, page: Scoreboard) -> None:
        """The worker of this page is gone: what it has counted is the ledger's, as `vacate` besides."""

    def spawned(self) -> None:
        """A worker was started."""

    def exited(self, reason: str) -> None:
        """A worker has ended. Raises `KeyError` for a reason that there is not."""

    def reloaded(self, result: str) -> None:
        """A reload has ended: `committed`, `refused` or `rolled_back`."""

    def note(self, pages: Any, size: int, group: Any) -> None:
        """Adds a sample of all workers at this moment to the history; each of the pages has `size` bytes."""

    def post(self, text: bytes) -> bool:
        """What workers tell of the server at `/status`, as JSON; False if it is too long, and what was there stays."""

    def publish(self, target: int, generation: int) -> None:
        """How many workers are wanted, and which generation is in force."""

    def set_arbiter_memory(self, pss: int, uss: int, shared: int) -> None:
        """Publishes the memory of the arbiter in bytes; zeros: it is not known."""

    def set_mold_memory(self, pss: int, uss: int, shared: int) -> None:
        """Publishes the memory of all molds together."""

    def certificates_end(self, seconds: int) -> None:
        """When the first certificate in force ends, since 1970; 0: there is none."""

@final
class Snapshot:
    """One worker at one moment."""

    @property
    def pid(self) -> int: ...
    @property
    def state(self) -> str:
        """`booting`, `serving`, `draining` or `stopped`."""

    @property
    def heartbeat(self) -> int:
        """Monotonic nanoseconds; it rests while nothing is in flight."""

    @property
    def threads(self) -> int:
        """How many requests can run at once."""

    @property
    def statuses(self) -> tuple[int, int, int, int, int]:
        """Responses with status 1xx to 5xx."""

    @property
    def oldest_wait(self) -> float:
        """Seconds that the request has waited that waits longest; 0 if none does."""

    @property
    def figures(self) -> dict[str, int]:
        """Gauges (`in_flight`, `queued`, …) and counters (`requests`, `refused`, …) by their names."""

@final
class RunningRequest:
    """A request that is with the application."""

    @property
    def slot(self) -> int:
        """Its place among the requests that can run at once."""

    @property
    def started(self) -> int:
        """When the application was called, in monotonic nanoseconds."""

    @property
    def age(self) -> float:
        """Seconds since then."""

    @property
    def phase(self) -> str:
        """`call`, `sending`, `body` (it waits for more of its body), `websocket`, `upgraded` (to another protocol)."""

    @property
    def text(self) -> str:
        """`GET /path?query`, cut at 104 bytes."""

@final
class Counts:
    """What a worker has counted, or all that ever were have together. Numbers are as they stand in the page."""

    @property
    def figures(self) -> dict[str, int]:
        """As `Snapshot.figures`. Sums of gauges have those of workers that are gone, as they last were."""

    @property
    def statuses(self) -> tuple[int, int, int, int, int]:
        """Responses with status 1xx to 5xx."""

    @property
    def histograms(self) -> dict[str, list[int]]:
        """`queue`, `application`, `total` and `gil`; for their edges see `histogram_edges`."""

@final
class PageReader:
    """A worker's page, which may be mapped read-only: a buffer, aligned to 8 bytes, that stays exported.

    What stands in it may be anything: the worker can write there. Raises `ValueError` for a buffer that is too short.
    """

    def __new__(cls, page: Any) -> PageReader: ...
    def read(self) -> Snapshot | None:
        """None for a page no worker has begun. Raises `ValueError` for a page of another layout."""

    def requests(self) -> list[RunningRequest]:
        """The requests the worker is serving. There may be thousands."""

    def counts(self) -> Counts: ...

@final
class Reports:
    """The file by which a worker and the arbiter talk of reports and stacks. Its descriptor stays the caller's."""

    def __new__(cls, fd: int) -> Reports: ...
    @staticmethod
    def create() -> int:
        """Makes such a file. Returns its descriptor. Raises OSError."""

    def forget_stacks(self) -> None:
        """Forgets stacks, and has faulthandler write where they belong."""

    def stacks(self, most: int) -> bytes:
        """The stacks of threads, at most so many bytes."""

    def waiting(self) -> bytes:
        """The stacks of what waits; empty: Python has not come to it."""

    def write_waiting(self, text: bytes) -> None:
        """In the worker: writes the stacks of what waits."""

    def order(self, seconds: float, rate: int, most: int) -> int:
        """Orders a profile; 0 seconds: ends the one that goes on. Returns the order's number."""

    def slow(self) -> bytes:
        """The last report on slow requests; empty: there is none yet."""

    def profile(self, number: int) -> bytes:
        """The last report for the order of this number, which may go on; empty: there is none."""

@final
class Route:
    """What all requests of a route have cost; times in nanoseconds."""

    @property
    def name(self) -> str: ...
    @property
    def requests(self) -> int: ...
    @property
    def errors(self) -> int:
        """Requests that were answered with a status from 500 on."""

    @property
    def time(self) -> int:
        """From the call of the application to the last piece of the response."""

    @property
    def told(self) -> int:
        """The same of those requests of which it is known what it was used for; the next four are its parts."""

    @property
    def computed(self) -> int: ...
    @property
    def yielded(self) -> int: ...
    @property
    def blocked(self) -> int: ...
    @property
    def delayed(self) -> int: ...
    @property
    def buckets(self) -> list[int]:
        """Requests by duration; the edges are the second of `histogram_edges`."""

@final
class RoutePages:
    """What the routes of an application cost, counted by all workers: empty writable memory, which stays exported.

    Raises `ValueError` for memory that is too short.
    """

    def __new__(cls, buffer: Any, named: int) -> RoutePages: ...
    def bury(self, slot: int) -> None:
        """The worker that had this slot is gone; its counts are kept."""

    def read(self) -> list[Route]:
        """Those of all workers that ever were; the last is the one for requests without a route of their own."""

@final
class LedgerReader:
    """The ledger, which may be mapped read-only. Raises `ValueError` for a buffer that is too short."""

    def __new__(cls, page: Any) -> LedgerReader: ...
    def totals(self, pages: list[PageReader]) -> Counts:
        """What the workers of these pages have counted, and all that are gone; the sums never fall."""

    def exits(self) -> dict[str, int]:
        """Workers that have ended, by reason."""

    def reloads(self) -> dict[str, int]:
        """Reloads by result."""

    @property
    def target(self) -> int:
        """How many workers are wanted."""

    @property
    def generation(self) -> int: ...
    @property
    def started(self) -> int:
        """When the arbiter began: microseconds since 1970."""

    @property
    def spawned(self) -> int:
        """Workers that were started."""

@final
class SignalHandler:
    """Calls `method`, which is bound, without a trace function: no debugger stops in it.

    The trace function is put back afterwards unless it is one of `bdb.Bdb`, as pdb's is.
    """

    def __new__(cls, method: Callable[[int, FrameType | None], object]) -> SignalHandler: ...
    @property
    def __self__(self) -> object:
        """The object of the method, as of the method itself."""

    def __call__(self, number: int, frame: FrameType | None, /) -> object: ...

@final
class Collector:
    """A connection to statsd or syslog. It has no thread; a forked process begins anew with its first message."""

    def __new__(cls, transport: str, place: str | None, *, keeps: bool, follows: bool) -> Collector:
        """`transport`: udp, tcp, unix, dgram or stream. `place`: ADDRESS:PORT, a path, or None: an unknown name.

        `keeps`: what the socket does not take is sent later. `follows`: the place is that of a name, which may come to
        mean another one.
        """

    def connect(self) -> None:
        """Connects, and waits for a moment until a stream is there. Raises OSError."""

    def send(self, message: bytes) -> None:
        """Sends a message. What the socket does not take is kept, or lost: no call waits."""

    def flush(self) -> None:
        """Sends what is kept, as far as the socket takes it."""

    def close(self) -> None:
        """Sends what is kept before the process ends, as far as there is time; the rest is lost. Disconnects."""

    def move_to(self, place: str) -> bool:
        """Follows the collector's name to this place. Returns whether it is another one."""

    def lose(self) -> None:
        """Counts a message that could not be made."""

    @property
    def lost(self) -> int:
        """Messages that were lost in this process."""

    @property
    def address(self) -> tuple[str, int] | str | None:
        """(ADDRESS, PORT), a path, or None: a name that is not known."""

    @property
    def is_stream(self) -> bool:
        """Whether messages follow one another without borders, as far as that is known."""

    def fileno(self) -> int:
        """The connected socket, -1: there is none."""

@final
class Core:
    """The reactor, its monitor thread and the scoreboard page of this worker.

    `listeners` are descriptors of listening sockets. The core owns them from now on: no other code closes them.
    `scoreboard` is a writable buffer of at least `scoreboard_bytes(threads)`. Raises `ValueError` or `KeyError` for
    options it cannot use and `OSError` for what the system refuses.
    """

    def __new__(cls, listeners: Sequence[int], options: Mapping[str, Any], scoreboard: Any) -> Core: ...
    @property
    def wakeup_fd(self) -> int:
        """A non-blocking descriptor for `signal.set_wakeup_fd`."""

    def end_calls(self) -> bool:
        """Raises `SystemExit` in the calls of all threads but the main one, once each. Whether there was one to end.

        A thread meets it between two of its instructions: what it waits for in C is not ended. From now on an
        application that lets it out has done what it was told, and there is no traceback in the log.
        """

    def call_when_woken(self, function: Callable[[], object]) -> None:
        """Has the main thread call this between two requests, whenever `wakeup_fd` was written to. For one function."""

    def follow_sessions(self, namings: Sequence[str]) -> None:
        """From now on, requests that name a session in one of these ways go to the worker that has it (`affinity`).

        Raises `ValueError` for a text that names no way.
        """

    @property
    def request_timeout(self) -> float:
        """Seconds an application call may take before `RequestTimeout` is raised in it; 0: as long as it likes."""

    def late_call(self) -> type[BaseException] | None:
        """What is to be raised in the call on the main thread if the monitor found that to be late.

        For the handler of LATE_SIGNAL; None as soon as the application has answered.
        """

    def raise_when_late(self, late: type[BaseException], cancelled: type[BaseException]) -> None:
        """What is raised in calls that are over `request_timeout`, and in those that are cancelled.

        `wait` raises it in those of other threads. They take no arguments.
        """

    def guard_forks(self) -> None:
        """Makes this core useless in processes that the application forks. For the one core of a worker's process."""

    def let_go_of_forks(self) -> None:
        """Undoes `guard_forks`, after `close`: forks of this process may have cores of their own."""

    def hand_over_access_log(self) -> None:
        """Makes no more lines of the access log, nor for syslog: Python makes them. Before `start`."""

    def start(self) -> None:
        """Starts the monitor thread. A process that is forked from now on has none."""

    def serve(self, gateway: WsgiGateway) -> None:
        """Serves requests on the calling thread until the core is drained or stopped.

        On the main thread Python's signal handlers run in between. Up to `threads` threads may serve. Whatever an
        application lets out, `SystemExit` included, ends its request only. Raises what a signal handler raises, and
        `RuntimeError` for a defect of the core.
        """

    def wait(self) -> None:
        """Blocks the (main) thread until the core is drained or stopped; signal handlers run meanwhile."""

    def drain(self) -> None:
        """Accepts nothing more, finishes what was begun, then lets `serve` return.

        Idle connections are closed after a moment in which a request already on its way is still answered.
        """

    def close_streams(self, lead: float, spread: float, rest: float) -> None:
        """Has calls on threads and greenlets end their streams at their next piece. Callable in a signal handler.

        Event streams whose clients come again end when `lead` seconds are over, one after another within `spread`
        seconds; other responses without a length when `rest` seconds are over.
        """

    def stop(self) -> None:
        """Lets `serve` return as soon as running application calls do; connections are closed."""

    def close(self) -> str | None:
        """Joins the monitor, flushes the access log and closes every connection. What the error log should be told."""

    def reopen_logs(self) -> None:
        """Opens the access log file anew (after rotation). Raises `OSError`."""

_Frame: TypeAlias = tuple[str, int, str]
_PoolWait: TypeAlias = tuple[str, str, _Frame, _Frame | None]
_Sample: TypeAlias = tuple[int, Sequence[_Frame], _PoolWait | None]
_Sampling: TypeAlias = Callable[[Sequence[int], Sequence[tuple[int, object]], bool], Sequence[_Sample]]

@final
class GreenServer:
    """Serves requests on greenlets of the calling thread's hub, up to as many as the core has room for.

    `hub` is a `tricorn_green.workers.green.Hub`; `done()` is called once, in the hub or in a greenlet, when the core
    has been drained or stopped. Belongs to the thread that made it. Raises `RuntimeError` for a core made without the
    option `hub`.
    """

    def __new__(cls, core: Core, gateway: WsgiGateway, hub: Any, done: Callable[[], object]) -> GreenServer: ...
    @property
    def descriptors(self) -> tuple[int, int]:
        """What the hub is to watch for reading, and to call `poll` for."""

    def when_slow(self, call: Callable[[], object]) -> None:
        """What is to be called, once and in the hub, when something has held it up."""

    @property
    def made(self) -> int:
        """How many greenlets were made so far."""

    @property
    def parked(self) -> int:
        """How many greenlets wait for a request."""

    def poll(self, _descriptor: object = None) -> None:
        """Does what there is to do. To be called in the hub; raises nothing."""

    def late_call(self) -> type[BaseException] | None:
        """What is to be raised in the calling greenlet if its request is late, and the application at it still."""

    def calls(self) -> list[tuple[int, object]]:
        """The greenlets of requests, with their places."""

    def end_calls(self) -> None:
        """Has the hub raise `SystemExit` in every call that waits."""

    def sample_with(self, sample: _Sampling) -> None:
        """What tells where the requests in some slots wait: frames (file, line and function, the innermost first).

        If it is asked for pools: the pool of each in place of them, by its name, its size, the frame of the library,
        and that of the application.
        """

    def close(self) -> None:
        """Lets go of everything. Raises what ended the service, if that was not a drain or a stop."""

@final
class AsgiGateway:
    """How an ASGI application is called (ASGI 3)."""

    def __new__(
        cls,
        application: Callable[..., Any],
        event_loop: Any,
        on_error: Callable[[str, BaseException], object],
        on_notice: Callable[[int, str], object] | None = None,
        *,
        before: Callable[..., Any] | None = None,
        after: Callable[..., Any] | None = None,
        state: dict[str, Any] | None = None,
        root_path: str = "",
        disconnect_grace: float = 0.0,
        grace_is_given: bool = False,
        pathsend: bool = False,
        websocket_max_message_size: int = ...,
        websocket_ping_interval: float = 20.0,
        websocket_ping_timeout: float = 20.0,
        websocket_compression: bool = True,
    ) -> AsgiGateway:
        """Sizes in bytes, after decompression; times in seconds. 0 is no limit and no pings."""

@final
class Call:
    """One request of a server that is made of Python classes; its promises stand in `tricorn.gateway.call.Call`."""

    @property
    def head(self) -> tuple[str, str, str]: ...
    @property
    def fields(self) -> dict[str, list[str]]: ...
    @property
    def scheme(self) -> str: ...
    @property
    def tls(self) -> dict[str, Any] | None: ...
    @property
    def peer(self) -> tuple[str, int] | None: ...
    @property
    def is_trusted(self) -> bool: ...
    def name_route(self, method: object) -> None: ...
    @property
    def forwarded(self) -> str | None: ...
    @property
    def has_body(self) -> bool: ...
    @property
    def length(self) -> int | None: ...
    def read(self) -> bytes | None: ...
    def start(
        self, status: int, reason: str, fields: dict[str, list[str]] | list[tuple[str, str]], chunk: bytes
    ) -> int: ...
    def write(self, chunk: bytes) -> int: ...
    def end(self) -> int: ...
    def abort(self) -> None: ...
    def caught_up(self) -> None: ...
    def refuse(self, status: int, message: str) -> None: ...
    def fail(self, error: BaseException) -> None: ...
    def take_socket(self) -> tuple[int, bytes, dict[str, Any] | None]: ...
    def left(self) -> None:
        """The core's own."""

    def hung_up(self) -> None:
        """The core's own."""

    def closed(self) -> None:
        """The core's own."""

@final
class CallGateway:
    """How a server that is made of Python classes is called.

    `connect(call)` is called for the first request of a connection; what it returns is kept as long as that is open.
    `begin(call, connection)` begins to answer and returns a `tricorn.gateway.call.Listener`. `leave(code)` is called
    when the worker leaves and returns how many connections there are that would stay; `dismiss(most)` tells so many of
    them, the oldest first. `before(call)` is called before `begin` and returns a token and None, or the exception that
    refuses the request; `after(token, status, headers, sent, micros)` is called when the answer is complete; see
    `WsgiGateway`. A client that closes its sending side is given up after `disconnect_grace` seconds.
    """

    def __new__(
        cls,
        event_loop: Any,
        connect: Callable[[Any], object],
        begin: Callable[[Any, Any], object],
        on_error: Callable[[str, BaseException], object],
        on_notice: Callable[[int, str], object] | None = None,
        *,
        before: Callable[[Any], tuple[object, BaseException | None]] | None = None,
        after: Callable[[Any, str, list[tuple[str, str]], int, int], object] | None = None,
        leave: Callable[[int], int] | None = None,
        dismiss: Callable[[int], object] | None = None,
        disconnect_grace: float = 0.0,
        grace_is_given: bool = False,
    ) -> CallGateway: ...

@final
class TransportGateway:
    """How the protocols of a library are made (`asyncio.Protocol`), and told to leave."""

    def __new__(
        cls,
        factory: Callable[[], Any],
        event_loop: Any,
        on_error: Callable[[str, BaseException], object],
        on_notice: Callable[[int, str], object] | None = None,
        on_leave: Callable[[], object] | None = None,
        before: Callable[..., Any] | None = None,
        after: Callable[..., Any] | None = None,
        disconnect_grace: float = 3.0,
        grace_is_given: bool = False,
    ) -> TransportGateway:
        """`on_leave` is called once, when the worker leaves. `before(scope)` and `after(scope, token, status, headers,
        sent, micros)` are called around each request, as of ASGI."""

@final
class RequestFactory:
    """Makes requests of aiohttp that their transports know, which ask them for their routes (`route_metrics`)."""

    def __new__(cls, make: Callable[..., Any]) -> RequestFactory: ...
    def make(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Any:
        """In place of `aiohttp.web.Server.request_factory`."""

@final
class Transport:
    """A connection as its protocol sees it: an `asyncio.Transport`."""

    def write(self, data: Any) -> None: ...
    def writelines(self, pieces: Any) -> None: ...
    def write_file(self, descriptor: int, offset: int, count: int) -> bool:
        """Sends a piece of a file as the next of the body; false if the response has no place for it."""

    def response_ended(self) -> None:
        """The handler is done with its response: one that is shorter than its Content-Length is cut off, and logged."""

    def close(self) -> None: ...
    def abort(self) -> None: ...
    def is_closing(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def is_reading(self) -> bool: ...
    def get_extra_info(self, name: str, default: Any = None) -> Any: ...
    def get_protocol(self) -> Any: ...
    def set_protocol(self, protocol: Any) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Has no effect: the protocol is told to pause where every class has to wait for its client."""

    def get_write_buffer_size(self) -> int: ...
    def can_write_eof(self) -> bool: ...
    def write_eof(self) -> None: ...

@final
class CallSoon:
    """`call_soon` of an event loop of asyncio's, by fewer Python functions than its own."""

    def __new__(cls, event_loop: Any) -> CallSoon: ...
    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any: ...

@final
class LoopClock:
    """Keeps the time that the event loop of a hub waits and works."""

    def __new__(cls, core: Core) -> LoopClock: ...
    def begin(self) -> None:
        """The loop works, and says from now on when it waits."""

    def waits(self) -> None:
        """The loop is about to wait for events."""

    def works(self) -> None:
        """The loop has waited."""

    def around(self, wait: Callable[..., _T]) -> Callable[..., _T]:
        """What waits for events, as something that keeps the time. It is called with a timeout."""

    def select(self, epoll: int, keys: dict[int, Any]) -> Callable[..., list[tuple[Any, int]]]:
        """`selectors.EpollSelector.select` for this epoll, without a line of Python, which keeps the time.

        `keys` are the selector's own, by their descriptors.
        """

@final
class LoopServer:
    """Serves requests in the event loop of the calling thread until the core is drained or stopped.

    A WSGI application is called on this thread, and holds up the loop until it has answered.
    """

    def __new__(
        cls,
        core: Core,
        gateway: AsgiGateway | CallGateway | TransportGateway | WsgiGateway,
        done: Callable[[], object],
    ) -> LoopServer: ...
    @property
    def descriptors(self) -> tuple[int, int]:
        """To be watched for reading, with `poll` as callback."""

    def poll(self) -> None:
        """Does what there is to do."""

    def running(self) -> int:
        """Calls that have not ended; some of them may have answered."""

    def late_call(self) -> type[BaseException] | None:
        """What is to be raised in the call that the loop is at if that is late."""

    def calls(self) -> list[tuple[int, object]]:
        """What calls that wait are known by, with their places: a task, or the object that stands for the call."""

    def sample_with(self, sample: _Sampling) -> None:
        """What tells where the requests in some slots wait: frames (file, line and function, the innermost first).

        If it is asked for pools: the pool of each in place of them, by its name, its size, the frame of the library,
        and that of the application.
        """

    def cancel_all(self) -> None:
        """Cancels every call that has not ended."""

    def leave(self, code: int) -> int:
        """WebSockets, with this close code, and event streams are to end: the first so many when `dismiss` is called.

        WebSockets that open from now on end at once, and event streams behind the others. Returns how many others there
        are.
        """

    def dismiss(self, most: int) -> None:
        """Tells so many of them, the oldest first."""

    def last_call(self) -> None:
        """Tells all responses to end that are under way and have no length."""

    def enforce(self, at_once: bool = False) -> None:
        """Ends responses that were told to end and have had their time, or that have none."""

    def closed(self) -> tuple[int, int]:
        """How many responses were told to end, and how many of them did not in time."""

    def close(self) -> None:
        """After `done`, or in its place: raises what ended the service."""
