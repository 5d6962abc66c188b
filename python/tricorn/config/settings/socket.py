"""Where the server listens."""

from __future__ import annotations

from tricorn.config.addresses import Addresses
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Integer


class Socket(Section):
    SECTION = "Server Socket"

    bind = Setting(
        flags=("-b", "--bind"),
        action=Action.APPEND,
        env_also=("PORT",),
        kind=Addresses(),
        default=("127.0.0.1:8000",),
        help="Where to listen: HOST:PORT, HOST, :PORT, unix:PATH or fd://NUMBER.",
        doc="HOST, HOST:PORT, [v6]:PORT, unix:PATH, unix:@NAME (abstract) or fd://N; may be given several times. "
        "The variable PORT, which platforms set, means 0.0.0.0:$PORT.",
    )

    backlog = Setting(
        kind=Integer(),
        default=2048,
        help="How many new connections the kernel keeps until a worker takes them.",
        doc="The kernel cuts it to net.core.somaxconn, and lets one wait with 0.",
    )
