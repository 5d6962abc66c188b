"""Settings of header fields that every response carries beside the application's. The names are uvicorn's."""

from __future__ import annotations

from tricorn.config.header_fields import HeaderFields, ServerName
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import YEAR, Boolean, Choice, Milliseconds, Seconds


class Responses(Section):
    SECTION = "Responses"

    server_header = Setting(
        flags=("--no-server-header",),
        action=Action.UNSET,
        kind=ServerName(),
        default="tricorn",
        own=True,
        help="Do not send the Server header.",
        doc="In a file or a variable the value is the header's: a string, true for `tricorn`, false or empty for no "
        "header. A Server header from the application replaces it. Error pages of the server have none.",
    )

    date_header = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Do not send the Date header.",
        doc="For a front end that adds one. A Date header from the application replaces the server's. Error pages of "
        "the server always have one.",
    )

    headers: Setting[tuple[tuple[str, str], ...]] = Setting(
        flags=("--header",),
        action=Action.APPEND,
        kind=HeaderFields(),
        default=(),
        own=True,
        help="Add a header to every response of the application, NAME:VALUE.",
        doc="May be repeated. In a file it is a list of strings or pairs, or a dict; in a variable one header per "
        "line. A header of the same name from the application replaces it. `Server` sets `server_header`. Not added "
        "to the server's error pages.",
    )

    load_report = Setting(
        kind=Choice(("off", "orca"), metavar="HOW"),
        default="off",
        core=True,
        own=True,
        rare=True,
        help="Report the server's load to trusted peers in response headers: off or orca.",
        doc="`orca` adds `endpoint-load-metrics`, for Envoy's `client_side_weighted_round_robin` and gRPC ([supported "
        "balancers](../guides/load-balancing.md)). Only for peers in `forwarded_allow_ips` and on Unix sockets. A "
        "header of that name from the application replaces it. The admin listener always reports the load at /load.",
    )

    stream_drain = Setting(
        kind=Seconds(max=YEAR),
        default=10,
        own=True,
        rare=True,
        help="Maximum seconds over which a worker shutting down ends event streams and WebSockets; 0 ends all at once.",
        doc="Their clients reconnect at once, and thousands in the same second overload the other workers. So a "
        "worker ends streams one after another, oldest first: at least 100 per second, and all within this time and "
        "two thirds of `graceful_timeout`. With `reload` and at a quick shutdown they end at once. The same applies "
        "when the whole server shuts down, unless you set this: set it if other hosts keep serving. Under `aiohttp` "
        "the application closes WebSockets itself, in `on_shutdown`. [How a stream "
        "ends](../guides/stream-responses.md#how-a-stream-ends).",
    )

    sse_retry = Setting(
        kind=Milliseconds(),
        default=None,
        own=True,
        rare=True,
        help="Range of random reconnection delays for clients of event streams that end at shutdown, in milliseconds.",
        doc="The stream ends with a `retry` field: a random number between MIN and MAX, after which an EventSource "
        "reconnects. Browsers wait 2 to 5 s by default. With a range, clients do not all return at once. Sent only "
        "between two events, in `text/event-stream` responses without Content-Encoding.",
    )

    sse_ping = Setting(
        kind=Seconds(max=86_400),
        default=0,
        own=True,
        core=True,
        rare=True,
        help="Send a comment to an event stream after this many seconds of silence; 0 disables it.",
        doc="Proxies close silent responses, nginx after 60 s. The comment `: ping` is sent only between two events, "
        "in `text/event-stream` responses without Content-Encoding, and EventSource ignores it. For `asgi`, `aiohttp` "
        "and `tornado`.",
    )
