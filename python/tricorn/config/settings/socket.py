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
        help="The socket to bind.",
        doc="HOST, HOST:PORT, [v6]:PORT, unix:PATH, unix:@NAME (abstract) or fd://N; may be given several times. "
        "The variable PORT, which platforms set, means 0.0.0.0:$PORT.",
    )

    backlog = Setting(
        kind=Integer(),
        default=2048,
        help="The maximum number of pending connections.",
        doc="The kernel cuts it to net.core.somaxconn, and lets one wait with 0.",
    )
