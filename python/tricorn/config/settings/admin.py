"""Questions about the server's health, answered beside the application. tricorn's own."""

from __future__ import annotations

from tricorn.config.addresses import Addresses
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Boolean, Choice, Integer, Networks, UrlPath


class Admin(Section):
    SECTION = "Admin Listener"

    admin_bind: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=Addresses(least=0),
        default=(),
        own=True,
        help="Address of the admin listener: health, readiness and metrics.",
        doc="Same format as `bind`. May be repeated. The core answers there even when the application is busy in "
        "every worker. Without this setting there is no admin listener.",
    )

    health_path = Setting(
        kind=UrlPath(),
        default="/healthz",
        core=True,
        own=True,
        help="Path on the admin listener that answers 200 while the server is running.",
        doc="Unknown paths on that listener get 404.",
    )

    ready_path = Setting(
        kind=UrlPath(),
        default="/readyz",
        core=True,
        own=True,
        help="Path on the admin listener that answers 200 when the server is ready for requests, 503 otherwise.",
        doc="The server is ready as soon as one worker is, and no longer ready once it begins to shut down.",
    )

    metrics_path = Setting(
        kind=UrlPath(empty=True),
        default="/metrics",
        core=True,
        own=True,
        help="Path of the metrics of all workers on the admin listener; empty: disabled.",
        doc="OpenMetrics 1.0 if the client accepts it (`Accept`), otherwise the Prometheus text format 0.0.4.",
    )

    admin_page = Setting(
        kind=UrlPath(empty=True),
        default="/",
        core=True,
        own=True,
        rare=True,
        help="Path of a page with live figures and charts on the admin listener; empty: disabled.",
        doc="The page is read-only, and shows neither paths nor client addresses. Its data is in live.json beside it.",
    )

    admin_status = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        rare=True,
        help="Serve the state of the server and its workers as JSON at /status of the admin listener.",
        doc="It is what `tricorn ctl status` and `workers` say, without requests and addresses of clients. Nothing can "
        "be changed there. See [Status](../guides/health.md#status-as-json).",
    )

    metrics_app = Setting(
        kind=Choice(("auto", "off"), metavar="WHEN"),
        default="auto",
        own=True,
        rare=True,
        help="Manage prometheus_client's multiprocess mode and merge its metrics into metrics_path: auto or off.",
        doc="`auto` does so if PROMETHEUS_MULTIPROC_DIR is set and its directory belongs to this server. See "
        "[metrics of the application](../guides/metrics.md#metrics-of-the-application).",
    )

    route_metrics = Setting(
        kind=Integer(min=0, max=1024),
        default=64,
        own=True,
        rare=True,
        help="Maximum number of routes with their own metrics; 0 disables them.",
        doc="For each route: requests, errors, durations, and how the time was spent, as `tricorn_route_…` in "
        "metrics_path and in `tricorn doctor`. The name comes from the application's framework ([supported "
        "frameworks](../guides/metrics.md#routes)), never from the path of a request. Requests without a route, "
        "and those of further routes, count as `other`. Changing the number takes a restart.",
    )

    admin_allow = Setting(
        kind=Networks(),
        default="*",
        core=True,
        own=True,
        rare=True,
        help="IP addresses or networks that may use the admin listener.",
        doc="Others get 403. Clients on a Unix socket are always allowed.",
    )
