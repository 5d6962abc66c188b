"""Looking before leaping, and while developing."""

from __future__ import annotations

from tricorn.config.lookups import ExistingPaths
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Boolean, Choice, TextList


class Debugging(Section):
    SECTION = "Debugging"

    reload = Setting(
        kind=Boolean(),
        default=False,
        help="Restart workers when a file of the application changes. For development.",
        doc="For development. With the package watchfiles (`tricorn[reload]`) changes are noticed at once, otherwise "
        "files are polled four times a second. If the code cannot be loaded, browsers see the traceback until it can. "
        "Old workers close their idle connections at once, so that browsers reach the new code.",
    )

    reload_engine = Setting(
        kind=Choice(("auto", "poll", "inotify", "watchfiles")),
        default="auto",
        help="How to detect changes: auto, poll, or watchfiles (inotify).",
        doc="`auto` uses `watchfiles` if it is installed, otherwise `poll`. `inotify`, gunicorn's name, means "
        "`watchfiles`.",
    )

    reload_extra_files = Setting(
        flags=("--reload-extra-file",),
        action=Action.APPEND,
        kind=ExistingPaths("FILES"),
        default=(),
        help="Another file or pattern for reload to watch, such as templates.",
        doc="Patterns are matched again each time, so new files are noticed.",
    )

    reload_dirs: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-dir",),
        action=Action.APPEND,
        kind=ExistingPaths("DIR"),
        default=(),
        own=True,
        help="A directory for reload to watch for Python files, recursively, besides imported modules.",
        doc="As in uvicorn. May be repeated. Hidden directories are skipped.",
    )

    reload_includes: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-include",),
        action=Action.APPEND,
        kind=TextList(metavar="PATTERN"),
        default=(),
        own=True,
        help="A pattern of other files for reload to watch in reload_dirs: '*.html'.",
        doc="As in uvicorn. May be repeated. Without `reload_dirs` it applies to the working directory.",
    )

    reload_excludes: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-exclude",),
        action=Action.APPEND,
        kind=TextList(metavar="PATTERN"),
        default=(),
        own=True,
        help="A pattern of files and directories for reload to ignore.",
        doc="As in uvicorn. May be repeated. A pattern is matched against the names of the file and its directories, "
        "up to the working directory, and against the end of its path.",
    )

    spew = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Print every line of Python code as it runs to stderr. Very slow.",
        doc="This is the nuclear option.",
    )

    check_config = Setting(
        kind=Boolean(),
        default=False,
        help="Check the configuration and the application, and exit: 0 if they are valid, 1 if not.",
        doc="No worker starts and nothing listens. An address in use is an error, as at a start, unless it belongs to "
        "a server with the same `title_prefix`: then it is a check before a reload, and only a warning.",
    )

    print_config = Setting(
        kind=Boolean(),
        default=False,
        help="Show all settings and their origin, changed ones first, and check as --check-config.",
        doc="Each setting with its origin.",
    )
