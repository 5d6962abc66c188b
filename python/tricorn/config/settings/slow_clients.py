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
        help="Bytes of memory that a worker may hold for its clients.",
        doc="Two sevenths each for request bodies (`body_buffer_total`), for responses that wait "
        "(`response_buffer_total`) and for sessions of TLS (`tls_buffer_total`), and one for unfinished request heads "
        "(`head_buffer_total`). One body may take a 112th of it (`body_buffer_size`), one response an 896th "
        "(`response_buffer_size`), and a handshake of TLS may begin for each 448 KiB (`tls_pending_handshakes`). What "
        "does not fit goes to disk, waits, or is refused with 503. A part that is set by its own name has that value.",
    )

    disk_budget = Setting(
        kind=Bytes(min=40 << 10),
        default=5 << 30,
        own=True,
        help="Bytes of temporary files that the server may keep for its clients.",
        doc="Four fifths for request bodies of all workers (`body_disk_total`); one fifth for the responses of each "
        "worker (`response_disk_total`), of which one response may take an eighth (`response_disk_size`). See "
        "`tmp_upload_dir` for where. A part that is set by its own name has that value.",
    )

    header_timeout = Setting(
        kind=Seconds(min=1),
        default=20,
        core=True,
        own=True,
        help="Seconds in which a whole request head must have arrived.",
        doc="A client that is late is answered with 408 and costs no thread.",
    )

    head_buffer_total = Setting(
        kind=Bytes(min=1 << 20),
        default=32 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 7),
        help="Bytes of memory that all unfinished request heads of a worker may take.",
        doc="Beyond it the longest of them are answered with 503, of equal ones the oldest. An unfinished head takes "
        "16 KB at least; one that came in one piece is never counted.",
    )

    body_timeout = Setting(
        kind=Seconds(min=1),
        default=20,
        core=True,
        own=True,
        help="Seconds a request body may take before its minimum rate counts.",
        doc="A client that is slower after that, or that sends nothing of its body for so long, is answered with 408.",
    )

    body_min_rate = Setting(
        kind=Bytes(),
        default=240,
        core=True,
        own=True,
        rare=True,
        help="Bytes a second at which a request body must arrive after that.",
        doc="240 bytes are a modem's speed; 0 asks for none.",
    )

    write_timeout = Setting(
        kind=Seconds(min=1),
        default=60,
        core=True,
        own=True,
        help="Seconds without progress after which a response is given up.",
        doc="Progress is what the client acknowledges: `body_min_rate` bytes for each of these seconds. nginx waits as "
        "long (`send_timeout`). Clients that pause a download, such as players of videos, ask for the rest by a Range "
        "request when they go on.",
    )

    body_buffer_size = Setting(
        kind=Bytes(),
        default=2 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 112),
        help="Bytes of one request body that are kept in memory; more goes to disk.",
        doc="See `tmp_upload_dir` for where.",
    )

    body_buffer_total = Setting(
        kind=Bytes(),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes of all request bodies of a worker that are kept in memory.",
        doc="What is beyond it goes to disk as well.",
    )

    body_disk_total = Setting(
        kind=Bytes(),
        default=4 << 30,
        core=True,
        own=True,
        part_of=share("disk_budget", 4, 5),
        help="Bytes of all request bodies of all workers that are kept on disk; 0 is any number.",
        doc="A body that alone is larger is refused with 413, one for which there is no room now with 503 and "
        "`Retry-After`. Bodies count until their requests are answered. The directory (`tmp_upload_dir`) is the same "
        "for all workers, and so is the limit; it may be exceeded by 256 KiB for each of them. Event-loop workers "
        "keep no bodies on disk.",
    )

    request_buffering = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        help="Calls WSGI applications when the head of a request is there, and not its body.",
        doc="The application then reads `wsgi.input` while the body comes: it can refuse a long upload before it is "
        "sent (`100 Continue` goes out when it reads for the first time), and nothing of it goes to disk. A slow "
        "client holds its thread, under `gevent` and `eventlet` its greenlet, for as long as `body_timeout` and "
        "`body_min_rate` allow. When they are over, when the client leaves, and beyond `limit_request_body` a read "
        "raises `BodyError` of `tricorn.errors`, an `OSError`. See [Slow "
        "clients](../guides/operations.md#slow-clients). Event "
        "loops always begin with the head.",
    )

    response_buffering: Setting[bool | Auto] = Setting(
        kind=OrAuto(Boolean()),
        default="auto",
        own=True,
        help="Keeps on disk what slow clients do not take of responses: auto, on or off.",
        doc="A WSGI application that produces a response faster than its client reads it then does not wait for the "
        "client: what the socket does not take is kept in memory up to `response_buffer_size`, beyond it in an "
        "unlinked temporary file (see `tmp_upload_dir`), and sent when the application has gone on. A client that "
        "reads gets its bytes as without it. `auto` is on under `sync` and `gthread`, where a wait holds a thread, "
        "and off under `gevent` and `eventlet`, where it holds a greenlet and a write to disk would hold all of them. "
        "Applications of event loops are told to wait, as their interfaces have it.",
    )

    response_buffer_size = Setting(
        kind=Bytes(),
        default=256 << 10,
        core=True,
        own=True,
        part_of=share("memory_budget", 1, 896),
        help="Bytes of one response that may wait in memory before its application does, or they go to disk.",
        doc="Under every worker class. It counts what the client has not taken, besides the kernel's own buffers.",
    )

    response_buffer_total = Setting(
        kind=Bytes(),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes of all responses of a worker that wait in memory, with response_buffering.",
        doc="The rest of a response whose application is done stays in memory, however long it is; beyond this number "
        "it goes to disk.",
    )

    response_disk_size = Setting(
        kind=Bytes(),
        default=128 << 20,
        core=True,
        own=True,
        part_of=share("disk_budget", 1, 40),
        help="Bytes of one response that may wait on disk; beyond it the application waits for its client.",
        doc="nginx allows 1 GB (`proxy_max_temp_file_size`), on the disk of a machine of its own. In many containers "
        "and distributions the directory for temporary files is memory, so that this is less. 0 allows none.",
    )

    response_disk_total = Setting(
        kind=Bytes(),
        default=1 << 30,
        core=True,
        own=True,
        part_of=share("disk_budget", 1, 5),
        help="Bytes of all responses of a worker that may wait on disk.",
        doc="Beyond it applications wait for their clients, as without `response_buffering`.",
    )

    max_connections = Setting(
        kind=Integer(),
        default=0,
        core=True,
        own=True,
        help="Open connections of a worker, idle ones included; 0 is as many as its descriptor limit allows.",
        doc="64 descriptors are left to the application, whatever this says (half of them where the limit, `ulimit "
        "-n`, is below 128); files of bodies and streams that are sent count as well. Beyond it connections are "
        "closed to make room: first those that sent no request or no complete head for a second, the oldest first "
        "(503), then the longest idle. Where none can be closed nothing is accepted, and newcomers wait in the "
        "kernel's `backlog`. The log has a line a second at most.",
    )
