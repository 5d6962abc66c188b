"""Settings of the files that the server sends itself."""

from __future__ import annotations

from tricorn.config.setting import Action, Section, Setting, fixed
from tricorn.config.static_files import CacheControl, IndexFile, SendfileRoots, StaticMap


class StaticFiles(Section):
    SECTION = "Static files"

    static_map: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=StaticMap(),
        default=(),
        own=True,
        help="Serve the files of a directory: PREFIX=DIR, with Cache-Control directives behind commas.",
        doc="May be repeated. In a file it is a list of strings or a dict from prefixes, in a variable one mapping per "
        "line. `/static=/srv/static,max-age=31536000,immutable` serves /static/app.css from /srv/static/app.css, and "
        "allows caches to keep it for a year. The longest prefix wins. Requests for missing files go to the "
        "application; with the option `miss=404` they do not, and methods other than GET and HEAD get 405. Files are "
        "read beneath DIR only, without dot-files. The application, its threads and the queue are not involved. "
        "[Static files](../guides/static-files.md).",
    )

    static_index = Setting(
        kind=IndexFile(),
        default="index.html",
        own=True,
        part_of=fixed("static_map", "index.html"),
        help="File of `static_map` sent for its directory; empty disables it.",
        doc="A path of a directory that does not end with a slash is redirected to the same path with one.",
    )

    static_cache_control = Setting(
        kind=CacheControl(),
        default="",
        own=True,
        part_of=fixed("static_map", ""),
        help="Cache-Control header for files of `static_map` whose mapping has no directives.",
        doc="`max-age=3600` for instance. Without it browsers revalidate or guess.",
    )

    x_sendfile: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=SendfileRoots(),
        default=(),
        own=True,
        rare=True,
        help="Directory whose files the application may name in X-Sendfile; PREFIX=DIR for X-Accel-Redirect.",
        doc="May be repeated. In a file it is a list of strings, in a variable one per line. With `/srv/files`, a "
        "response with `X-Sendfile: /srv/files/a.pdf` becomes that file: its body is dropped, its other headers stay, "
        "and ranges and preconditions are answered. With `/protected=/srv/files`, `X-Accel-Redirect: /protected/a.pdf` "
        "does the same, as with an internal location of nginx. A file elsewhere is an error of the application: 500, "
        "and a line in the log. Off by default: the headers pass to a front end, which may act on them. "
        "[X-Sendfile](../guides/static-files.md#x-sendfile).",
    )
