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
        help="The socket to bind for health and readiness questions, and for metrics.",
        doc="In the form of `bind`; may be given several times. The core answers there also when every worker's "
        "application is busy. Without it there is no such listener.",
    )

    health_path = Setting(
        kind=UrlPath(),
        default="/healthz",
        core=True,
        own=True,
        help="The path at which the admin listener answers 200 while the server lives.",
        doc="Anything else at that listener is answered with 404.",
    )

    ready_path = Setting(
        kind=UrlPath(),
        default="/readyz",
        core=True,
        own=True,
        help="The path at which the admin listener answers 200 while requests are welcome, and 503 otherwise.",
        doc="They are welcome as soon as a worker is ready, and no longer when the server is told to stop.",
    )

    metrics_path = Setting(
        kind=UrlPath(empty=True),
        default="/metrics",
        core=True,
        own=True,
        help="The path at which the admin listener tells the metrics of all workers; empty: nowhere.",
        doc="OpenMetrics 1.0 if the client asks for it (`Accept`), else the text format 0.0.4 of Prometheus.",
    )

    admin_page = Setting(
        kind=UrlPath(empty=True),
        default="/",
        core=True,
        own=True,
        rare=True,
        help="The path at which the admin listener shows a page with live figures and charts; empty: nowhere.",
        doc="It changes nothing, and shows neither paths nor addresses of requests. live.json beside it has its data.",
    )

    admin_status = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        rare=True,
        help="Tell the state of the server and of each worker as JSON at /status of the admin listener.",
        doc="It is what `tricorn ctl status` and `workers` say, without requests and addresses of clients. Nothing can "
        "be changed there. See [Status](../guides/operations.md#status).",
    )

    metrics_app = Setting(
        kind=Choice(("auto", "off"), metavar="WHEN"),
        default="auto",
        own=True,
        rare=True,
        help="Whether prometheus_client's multiprocess mode is looked after, and its metrics are among those of "
        "metrics_path: auto or off.",
        doc="auto: if PROMETHEUS_MULTIPROC_DIR is set and its directory is this server's. See "
        "docs/guides/operations.md.",
    )

    route_metrics = Setting(
        kind=Integer(min=0, max=1024),
        default=64,
        own=True,
        rare=True,
        help="How many routes of the application have metrics of their own; 0 counts none.",
        doc="For each: requests, errors, how long they took, and what the time was used for, in `tricorn_route_…` of "
        "metrics_path and in `tricorn doctor`. The name is what the application's framework says "
        "([which do](../guides/operations.md#routes)), never the path of a request. Requests without one, and those of "
        "further "
        "routes, are `other`. The number in force at the first start of a worker holds until the server ends.",
    )

    admin_allow = Setting(
        kind=Networks(),
        default="*",
        core=True,
        own=True,
        rare=True,
        help="The IP addresses or networks from which questions at the admin listener are answered.",
        doc="Others get 403. Peers on a unix socket are always answered.",
    )
