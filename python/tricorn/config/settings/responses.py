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
        help="Leaves the field Server out of responses.",
        doc="In a file or a variable the setting is the field's value: a text, true for `tricorn`, false or an empty "
        "text for no field. A Server field of the application's own is sent in its place. Error pages of the server "
        "have none.",
    )

    date_header = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Leaves the field Date out of responses.",
        doc="For a front end that adds one. A Date of the application's own is sent in its place. Error pages of the "
        "server have one in any case.",
    )

    headers: Setting[tuple[tuple[str, str], ...]] = Setting(
        flags=("--header",),
        action=Action.APPEND,
        kind=HeaderFields(),
        default=(),
        own=True,
        help="A field for every response of the application, NAME:VALUE.",
        doc="May be given several times; in a file it is a list of texts or of pairs, or a dict, in a variable one "
        "field a line. A field of the same name that the application sets is sent in its place. `Server` here is the "
        "setting `server_header`. Error pages of the server have none of them.",
    )

    load_report = Setting(
        kind=Choice(("off", "orca"), metavar="HOW"),
        default="off",
        core=True,
        own=True,
        rare=True,
        help="How responses tell trusted peers the load of this server: off or orca.",
        doc="`orca`: in the field `endpoint-load-metrics`, as Envoy's `client_side_weighted_round_robin` and gRPC read "
        "it ([which balancer reads what](../guides/operations.md#load)). Only peers in `forwarded_allow_ips` are told, "
        "and those "
        "on a unix socket. A field of that name which the application sets is sent in its place. The admin listener "
        "tells the load at /load whatever is said here.",
    )

    stream_drain = Setting(
        kind=Seconds(max=YEAR),
        default=10,
        own=True,
        rare=True,
        help="Most seconds over which a worker that leaves ends event streams and WebSockets; 0 ends all at once.",
        doc="Their clients connect again as soon as they are told to go, and thousands that do so in the same second "
        "are a burst for other workers and servers. So a worker ends them one after another, the oldest first: at "
        "least 100 a second, so that few are no reason to wait, and all within this time and two thirds of "
        "`graceful_timeout`. "
        "With `reload` and on a quick stop they end at once. So they do when the whole server stops, unless this "
        "setting is given: give it where other hosts serve on. Under `aiohttp` WebSockets are the application's, which "
        "closes them in `on_shutdown`. [How a stream ends](../guides/stream-responses.md#how-a-stream-ends).",
    )

    sse_retry = Setting(
        kind=Milliseconds(),
        default=None,
        own=True,
        rare=True,
        help="Milliseconds, at random, that clients wait whose event streams end since the worker leaves.",
        doc="The last event of such a stream is a `retry` field with a number between MIN and MAX, the time that an "
        "EventSource waits before it connects again; browsers take 2 to 5 s by themselves. With a range clients come "
        "back spread. It is sent between two events only, in responses of `text/event-stream` without a "
        "Content-Encoding.",
    )

    sse_ping = Setting(
        kind=Seconds(max=86_400),
        default=0,
        own=True,
        core=True,
        rare=True,
        help="Seconds after which a silent event stream is sent a comment; 0 sends none.",
        doc="Proxies close responses that are silent for long, nginx after 60 s. The comment `: ping` is sent between "
        "two events only, in responses of `text/event-stream` without a Content-Encoding, and an EventSource ignores "
        "it. Under `asgi`, `aiohttp` and `tornado`.",
    )
