"""Requests that find no free thread: how many may wait, for how long, and who takes them. tricorn's own."""

from __future__ import annotations

from tricorn.config.kinds import Affinity
from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Auto, Boolean, Choice, Integer, OrAuto, Seconds


class Queueing(Section):
    SECTION = "Queueing"

    queue_limit = Setting(
        kind=Integer(),
        default=1000,
        core=True,
        own=True,
        help="Maximum number of requests waiting in a worker; 0: unlimited.",
        doc="Further requests are rejected at once with 503 and `Retry-After`, without running Python. The limit "
        "counts complete requests on accepted connections. While a worker is idle, new connections are left to it; "
        "when all are busy, they are accepted so that the limit applies to them. Connections beyond `max_connections` "
        "wait in the kernel, see `backlog`. With gunicorn every request waits there or in the worker, without a "
        "limit. The default is far more than can be answered before clients give up; it limits memory.",
    )

    queue_timeout = Setting(
        kind=Seconds(),
        default=60,
        core=True,
        own=True,
        help="Maximum seconds a request may wait for a free thread; 0 disables it.",
        doc="After that the request is rejected with 503 and `Retry-After`, and the application is not called. The "
        "wait starts when the request headers are complete, or at the time in `X-Request-Start` if a trusted front "
        "end (`forwarded_allow_ips`) sent it, which includes the wait there and in the kernel. In nginx: "
        "`proxy_set_header X-Request-Start t=${msec};`. The default equals nginx's `proxy_read_timeout`, after which "
        "the front end gives up. A better value is your clients' timeout less the time that a request takes. gunicorn "
        "has no such limit.",
    )

    queue_order = Setting(
        kind=Choice(("fifo", "adaptive")),
        default="fifo",
        core=True,
        own=True,
        rare=True,
        help="Order of waiting requests: fifo or adaptive.",
        doc="`fifo` serves the oldest request first. `adaptive` does too, but switches to newest first while the "
        "queue has not been empty for 100 ms. Under overload this serves some clients in time instead of all of them "
        "too late. The others are rejected after `queue_timeout`, or give up by themselves.",
    )

    max_concurrency: Setting[int | Auto] = Setting(
        kind=OrAuto(Integer()),
        default=0,
        own=True,
        help="Maximum number of requests running at once in all workers; a number or auto, 0: the number of threads.",
        doc="Further requests wait, as if all threads were busy. Use it for resources that allow fewer concurrent "
        "users than there are threads: a database, memory. `auto` follows the lowest latency measured: it lowers the "
        "limit while requests take longer, and raises it while they do not.",
    )

    handover = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Keep every connection on the worker that accepted it.",
        doc="By default a request that would have to wait moves, with its connection, to an idle worker. It costs "
        "nothing while no request waits. With gunicorn a keep-alive connection stays with its worker even if that is "
        "busy. Use this setting for applications that keep state per connection in memory (NTLM, multi-step "
        "Negotiate). Linux only; on other systems connections never move.",
    )

    affinity: Setting[tuple[str, ...]] = Setting(
        kind=Affinity(),
        default=("auto",),
        own=True,
        help="Send requests of one session to the worker that has it: auto, off, or where the session is named.",
        doc="For applications that keep sessions in memory. With `auto`, workers that have loaded the `mcp` package "
        "use `mcp` (the field `Mcp-Session-Id`), those with `engineio` use `socketio` (Socket.IO by polling), and "
        "those with `nicegui` use `cookie:session`, too; a line in the log says so. Other names: `header:NAME`, "
        "`cookie:NAME`, `query:NAME`, and `peer` (the client's address). There the worker that serves a name first "
        "keeps it. A comma separates several names. A worker that ends takes its sessions with it. No effect with one "
        "worker, or with `--no-handover`. [Sessions and workers](../guides/sessions.md).",
    )
