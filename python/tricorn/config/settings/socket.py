"""Settings of the listeners."""

from __future__ import annotations

from tricorn.config.doors import Doors
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Integer


class Socket(Section):
    SECTION = "Server Socket"

    bind = Setting(
        flags=("-b", "--bind"),
        action=Action.APPEND,
        env_also=("PORT",),
        kind=Doors(),
        default=("127.0.0.1:8000",),
        help="Where to listen: [https://]HOST:PORT, HOST, :PORT, unix:PATH or fd://NUMBER.",
        doc="HOST, HOST:PORT, [v6]:PORT, unix:PATH, unix:@NAME (abstract) or fd://N; may be given several times. "
        "The variable PORT, which platforms set, means 0.0.0.0:$PORT. Such an address speaks TLS if there is a "
        "certificate (`certfile` or `certificate`), as under gunicorn, and HTTP in the clear if there is none. Others "
        "say it: https://HOST:PORT, https+unix:PATH, https+fd://N, and the same with http, which is in the clear "
        "beside a certificate as well. Behind these may stand options, which are stronger than the settings of their "
        "names: https://0.0.0.0:443?proxy_protocol=v2&proxy_protocol_required=on.",
    )

    backlog = Setting(
        kind=Integer(),
        default=2048,
        help="How many new connections the kernel keeps until a worker takes them.",
        doc="The kernel cuts it to net.core.somaxconn, and lets one wait with 0.",
    )
