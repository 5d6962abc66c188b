"""Requests that find no free thread: how many may wait, for how long, and who takes them. tricorn's own."""

from __future__ import annotations

from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Auto, Boolean, Choice, Integer, OrAuto, Seconds


class Queueing(Section):
    SECTION = "Queueing"

    queue_limit = Setting(
        kind=Integer(),
        default=1000,
        core=True,
        own=True,
        help="The number of requests that may wait in a worker for a free thread; 0 is no limit.",
        doc="One more is answered at once with 503 and `Retry-After`, without Python and without a thread. It counts "
        "complete requests on connections that a worker has accepted. While a worker is idle newcomers are left to "
        "it; when all are busy they are accepted, so that the limit holds for them. What is beyond `max_connections` "
        "waits in the kernel, see `backlog`. With gunicorn every request waits there or in the worker, without a "
        "limit. The default is far beyond what can be answered before clients give up; it bounds memory.",
    )

    queue_timeout = Setting(
        kind=Seconds(),
        default=60,
        core=True,
        own=True,
        help="Seconds a request may wait for a free thread; 0 switches it off.",
        doc="One that has waited longer is answered with 503 and `Retry-After`, and the application is not called. "
        "The wait begins when the request's head is complete, or at the time in its `X-Request-Start` if a trusted "
        "front end (`forwarded_allow_ips`) sent it: then what it waited there and in the kernel counts too. In nginx: "
        "`proxy_set_header X-Request-Start t=${msec};`. The default is that of nginx's `proxy_read_timeout`, after "
        "which the front end waits no longer. Better is what your clients wait, less what a request takes. gunicorn "
        "has no such limit.",
    )

    queue_order = Setting(
        kind=Choice(("fifo", "adaptive")),
        default="fifo",
        core=True,
        own=True,
        rare=True,
        help="Which of the waiting requests is served next: fifo or adaptive.",
        doc="`fifo`: the one that has waited longest. `adaptive`: the same, and newest first while the queue stands, "
        "which is when it has not been empty for 100 ms. Under overload that serves some clients in time instead of "
        "all of them too late; those left over are answered when `queue_timeout` is over, or have gone by themselves.",
    )

    max_concurrency: Setting[int | Auto] = Setting(
        kind=OrAuto(Integer()),
        default=0,
        own=True,
        help="The most requests that run at once in all workers together; a number or auto, 0 is as many as threads.",
        doc="Others wait, as if all threads were busy. For resources that allow fewer concurrent users than there are "
        "threads: a database, memory. `auto` follows the smallest latency that was measured: it lowers the limit while "
        "requests take longer than that and raises it while they do not.",
    )

    handover = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Leaves every connection with the worker that accepted it.",
        doc="Otherwise a request that would have to wait goes, with its connection, to a worker that is idle, so that "
        "no request waits behind a busy worker while another has nothing to do. That costs nothing while nothing "
        "waits. With gunicorn a keep-alive connection stays with its worker, whatever that is doing. What an "
        "application keeps in its memory for each connection (NTLM, Negotiate in several steps) needs connections "
        "that stay. On Linux only; elsewhere they always do.",
    )
