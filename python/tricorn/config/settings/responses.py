"""What every response carries besides the application's own fields. tricorn's own; the names are uvicorn's."""

from __future__ import annotations

from tricorn.config.header_fields import HeaderFields, ServerName
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Boolean, Choice


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
        help="How responses tell trusted peers the load of this server: off or orca.",
        doc="`orca`: in the field `endpoint-load-metrics`, as Envoy's `client_side_weighted_round_robin` and gRPC read "
        "it ([which balancer reads what](OPERATIONS.md#load)). Only peers in `forwarded_allow_ips` are told, and those "
        "on a unix socket. A field of that name which the application sets is sent in its place. The admin listener "
        "tells the load at /load whatever is said here.",
    )
