"""How long a client may take and how much memory it may hold. tricorn's own: gunicorn has no such limits."""

from __future__ import annotations

from tricorn.config.setting import Section, Setting, share
from tricorn.config.validators import Auto, Boolean, Bytes, Integer, OrAuto, Seconds


class SlowClients(Section):
    SECTION = "Slow Clients"

    memory_budget = Setting(
        kind=Bytes(min=7 << 20),
        default=224 << 20,
        own=True,
        help="Bytes of memory a worker may use for buffering.",
        doc="Two sevenths each for request bodies (`body_buffer_total`), buffered responses (`response_buffer_total`) "
        "and TLS sessions (`tls_buffer_total`), one seventh for incomplete request headers (`head_buffer_total`). One "
        "body may use 1/112 of it (`body_buffer_size`), one response 1/896 (`response_buffer_size`), and one TLS "
        "handshake may start per 448 KiB (`tls_pending_handshakes`). What does not fit goes to disk, waits, or is "
        "rejected with 503. Setting a part by its own name overrides its share.",
    )

    disk_budget = Setting(
        kind=Bytes(min=40 << 10),
        default=5 << 30,
        own=True,
        help="Bytes of temporary files the server may use for buffering.",
        doc="Four fifths for request bodies of all workers (`body_disk_total`), one fifth for the responses of each "
        "worker (`response_disk_total`), of which one response may use an eighth (`response_disk_size`). For the "
        "directory see `tmp_upload_dir`. Setting a part by its own name overrides its share.",
    )

    header_timeout = Setting(
        kind=Seconds(min=1),
        default=20,
        core=True,
        own=True,
        help="Seconds within which the complete request headers must arrive.",
        doc="A slower client gets 408 and occupies no thread.",
    )

    head_buffer_total = Setting(
        kind=Bytes(min=1 << 20),
        default=32 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 7),
        help="Bytes of memory for incomplete request headers in a worker.",
        doc="At the limit the longest are rejected with 503, among equal ones the oldest. Incomplete headers use at "
        "least 16 KB; headers that arrive in one piece are never counted.",
    )

    body_timeout = Setting(
        kind=Seconds(min=1),
        default=20,
        core=True,
        own=True,
        help="Seconds a request body may take before body_min_rate applies.",
        doc="A client that is slower after that, or that sends nothing for this long, gets 408.",
    )

    body_min_rate = Setting(
        kind=Bytes(),
        default=240,
        core=True,
        own=True,
        rare=True,
        help="Minimum rate of a request body in bytes per second, after body_timeout.",
        doc="240 bytes per second is the speed of a modem; 0 disables the check.",
    )

    write_timeout = Setting(
        kind=Seconds(min=1),
        default=60,
        core=True,
        own=True,
        help="Abort a response after this many seconds without progress.",
        doc="The client must acknowledge `body_min_rate` bytes for each of these seconds. nginx waits as long "
        "(`send_timeout`). Clients that pause a download, such as video players, continue with a Range request.",
    )

    body_buffer_size = Setting(
        kind=Bytes(),
        default=2 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 112),
        help="Bytes of a request body kept in memory; larger bodies go to disk.",
        doc="For the directory see `tmp_upload_dir`.",
    )

    body_buffer_total = Setting(
        kind=Bytes(),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes of memory for all request bodies of a worker.",
        doc="More goes to disk.",
    )

    body_disk_total = Setting(
        kind=Bytes(),
        default=4 << 30,
        core=True,
        own=True,
        part_of=share("disk_budget", 4, 5),
        help="Bytes of disk space for all request bodies of all workers; 0: unlimited.",
        doc="A single body larger than this gets 413. If there is no space left at the moment, a body gets 503 and "
        "`Retry-After`. Bodies count until their requests are completed. The directory (`tmp_upload_dir`) and the "
        "limit are shared by all workers; each may exceed the limit by 256 KiB. Event loop workers keep no bodies on "
        "disk.",
    )

    request_buffering = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        help="Call WSGI applications as soon as the request headers are complete, without waiting for the body.",
        doc="The application then reads `wsgi.input` while the body arrives. It can reject a long upload before it is "
        "sent (`100 Continue` is sent at the first read), and nothing is written to disk. A slow client occupies its "
        "thread, under `gevent` and `eventlet` its greenlet, for as long as `body_timeout` and `body_min_rate` allow. "
        "When they expire, when the client disconnects, or beyond `limit_request_body`, a read raises `BodyError` "
        "from `tricorn.errors`, an `OSError`. See [Slow clients](../guides/buffering.md). Event loop "
        "workers never wait for the body.",
    )

    response_buffering: Setting[bool | Auto] = Setting(
        kind=OrAuto(Boolean()),
        default="auto",
        own=True,
        help="Buffer responses on disk for slow clients: auto, on or off.",
        doc="A WSGI application that produces a response faster than its client reads it does not wait for the "
        "client. Data that the socket does not accept is kept in memory up to `response_buffer_size`, then in an "
        "unlinked temporary file (see `tmp_upload_dir`), and sent in the background. Fast clients get their data "
        "directly. `auto` is on under `sync` and `gthread`, where waiting occupies a thread, and off under `gevent` "
        "and `eventlet`, where it occupies only a greenlet and a disk write would block all of them. Event loop "
        "applications are paused by back-pressure, as their interfaces define.",
    )

    response_buffer_size = Setting(
        kind=Bytes(),
        default=256 << 10,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 896),
        help="Bytes of a response buffered in memory before it goes to disk or the application waits.",
        doc="For all worker classes. Counts data that the client has not read, besides the kernel's buffers.",
    )

    response_buffer_total = Setting(
        kind=Bytes(),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes of memory for all buffered responses of a worker, with response_buffering.",
        doc="When the application is done, the rest of its response stays in memory whatever its size; beyond this "
        "total it goes to disk.",
    )

    response_disk_size = Setting(
        kind=Bytes(),
        default=128 << 20,
        core=True,
        own=True,
        part_of=share("disk_budget", 1, 40),
        help="Maximum bytes of a response buffered on disk; beyond it the application waits for its client.",
        doc="nginx allows 1 GB (`proxy_max_temp_file_size`). In many containers and distributions the temporary "
        "directory is in memory, so this is less. 0 disables it.",
    )

    response_disk_total = Setting(
        kind=Bytes(),
        default=1 << 30,
        core=True,
        own=True,
        part_of=share("disk_budget", 1, 5),
        help="Maximum bytes of all responses of a worker buffered on disk.",
        doc="Beyond it applications wait for their clients, as without `response_buffering`.",
    )

    max_connections = Setting(
        kind=Integer(),
        default=0,
        core=True,
        own=True,
        help="Maximum open connections per worker, idle ones included; 0: as many as the descriptor limit allows.",
        doc="64 descriptors always stay free for the application (half of them if `ulimit -n` is below 128). Open "
        "files for bodies and responses count too. At the limit connections are closed: first those without a "
        "complete request for a second, oldest first (503), then those idle for longest. If none can be closed, the "
        "worker stops accepting, and new connections wait in the kernel (`backlog`). Logged at most once a second.",
    )
