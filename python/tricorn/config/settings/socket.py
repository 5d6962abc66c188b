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
        help="Address to listen on: [https://]HOST:PORT, HOST, :PORT, unix:PATH or fd://NUMBER.",
        doc="HOST, HOST:PORT, [v6]:PORT, unix:PATH, unix:@NAME (abstract) or fd://N. May be repeated. The variable "
        "PORT, which platforms set, means 0.0.0.0:$PORT. An address without a scheme uses TLS if there is a "
        "certificate (`certfile` or `certificate`), as with gunicorn, and plain HTTP otherwise. To choose, add a "
        "scheme: https://HOST:PORT, https+unix:PATH or https+fd://N for TLS, the same with http for plain HTTP, and "
        "with uwsgi, scgi or fastcgi for front ends that speak those (`protocol`). "
        "Options after `?` override the settings of the same names for this address: "
        "https://0.0.0.0:443?proxy_protocol=v2&proxy_protocol_required=on.",
    )

    backlog = Setting(
        kind=Integer(),
        default=2048,
        help="Maximum number of connections waiting in the kernel to be accepted.",
        doc="Capped at net.core.somaxconn. With 0 one connection can still wait.",
    )
