"""How long a client may take and how much memory it may hold. tricorn's own: gunicorn has no such limits."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.validators import Bytes, Integer, Seconds

SECTION = "Slow Clients"

HEADER_TIMEOUT = Setting(
    name="header_timeout",
    flags=("--header-timeout",),
    kind=Seconds(min=1),
    default=20,
    section=SECTION,
    own=True,
    help="Seconds in which a whole request head must have arrived.",
    doc="A client that is late is answered with 408 and costs no thread.",
)

BODY_TIMEOUT = Setting(
    name="body_timeout",
    flags=("--body-timeout",),
    kind=Seconds(min=1),
    default=20,
    section=SECTION,
    own=True,
    help="Seconds a request body may take before its minimum rate counts.",
    doc="A client that is slower after that is answered with 408.",
)

BODY_MIN_RATE = Setting(
    name="body_min_rate",
    flags=("--body-min-rate",),
    kind=Bytes(),
    default=240,
    section=SECTION,
    own=True,
    help="Bytes a second at which a request body must arrive after that.",
    doc="240 bytes are a modem's speed; 0 asks for none.",
)

WRITE_TIMEOUT = Setting(
    name="write_timeout",
    flags=("--write-timeout",),
    kind=Seconds(min=1),
    default=30,
    section=SECTION,
    own=True,
    help="Seconds without progress after which a response is given up.",
    doc="A client that takes nothing of its response for so long has left.",
)

BODY_BUFFER_SIZE = Setting(
    name="body_buffer_size",
    flags=("--body-buffer-size",),
    kind=Bytes(),
    default=2 << 20,
    section=SECTION,
    own=True,
    help="Bytes of one request body that are kept in memory; more goes to disk.",
    doc="See `tmp_upload_dir` for where.",
)

BODY_BUFFER_TOTAL = Setting(
    name="body_buffer_total",
    flags=("--body-buffer-total",),
    kind=Bytes(),
    default=64 << 20,
    section=SECTION,
    own=True,
    help="Bytes of all request bodies of a worker that are kept in memory.",
    doc="What is beyond it goes to disk as well.",
)

MAX_CONNECTIONS = Setting(
    name="max_connections",
    flags=("--max-connections",),
    kind=Integer(),
    default=0,
    section=SECTION,
    own=True,
    help="Open connections of a worker, idle ones included; 0 is as many as its descriptor limit allows.",
)

SETTINGS = (
    HEADER_TIMEOUT,
    BODY_TIMEOUT,
    BODY_MIN_RATE,
    WRITE_TIMEOUT,
    BODY_BUFFER_SIZE,
    BODY_BUFFER_TOTAL,
    MAX_CONNECTIONS,
)
