"""Questions about the server's health, answered beside the application. tricorn's own."""

from __future__ import annotations

from tricorn.config.addresses import Addresses
from tricorn.config.setting import Action, Setting
from tricorn.config.validators import UrlPath

SECTION = "Admin Listener"

ADMIN_BIND: Setting[tuple[str, ...]] = Setting(
    name="admin_bind",
    flags=("--admin-bind",),
    action=Action.APPEND,
    kind=Addresses(least=0),
    default=(),
    section=SECTION,
    own=True,
    help="The socket to bind for health and readiness questions.",
    doc="In the form of `bind`; may be given several times. The core answers there also when every worker's "
    "application is busy. Without it there is no such listener.",
)

HEALTH_PATH = Setting(
    name="health_path",
    flags=("--health-path",),
    kind=UrlPath(),
    default="/healthz",
    core=True,
    section=SECTION,
    own=True,
    help="The path at which the admin listener answers 200 while the server lives.",
    doc="Anything else at that listener is answered with 404.",
)

READY_PATH = Setting(
    name="ready_path",
    flags=("--ready-path",),
    kind=UrlPath(),
    default="/readyz",
    core=True,
    section=SECTION,
    own=True,
    help="The path at which the admin listener answers 200 while requests are welcome, and 503 otherwise.",
    doc="They are welcome as soon as a worker is ready, and no longer when the server is told to stop.",
)
