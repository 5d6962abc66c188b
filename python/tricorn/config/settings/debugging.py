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
        help="Start new workers when a file of the application changes. For development.",
        doc="For development. Changes are noticed at once with the package watchfiles, as installed by "
        "`tricorn[reload]`, and by a look four times a second without. What cannot be loaded is answered for with "
        "its traceback until it can. A worker that leaves closes its idle connections at once, so that browsers "
        "meet the new code.",
    )

    reload_engine = Setting(
        kind=Choice(("auto", "poll", "inotify", "watchfiles")),
        default="auto",
        help="How changes are noticed: auto, poll, or watchfiles (inotify).",
        doc="`auto` is `watchfiles` where it is installed, and `poll` elsewhere. `inotify`, gunicorn's word, is "
        "`watchfiles`.",
    )

    reload_extra_files = Setting(
        flags=("--reload-extra-file",),
        action=Action.APPEND,
        kind=ExistingPaths("FILES"),
        default=(),
        help="A further file or pattern that reload watches: templates, for example.",
        doc="Templates, configuration files. Patterns are matched again each time, so that new files are noticed.",
    )

    reload_dirs: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-dir",),
        action=Action.APPEND,
        kind=ExistingPaths("DIR"),
        default=(),
        own=True,
        help="A directory whose files of Python, in any depth, reload watches besides the modules that are imported.",
        doc="May be given several times; uvicorn's. Hidden directories are passed over.",
    )

    reload_includes: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-include",),
        action=Action.APPEND,
        kind=TextList(metavar="PATTERN"),
        default=(),
        own=True,
        help="A pattern of further files that reload watches in the directories of reload_dirs: '*.html'.",
        doc="May be given several times; uvicorn's. Without `reload_dirs` in the working directory.",
    )

    reload_excludes: Setting[tuple[str, ...]] = Setting(
        flags=("--reload-exclude",),
        action=Action.APPEND,
        kind=TextList(metavar="PATTERN"),
        default=(),
        own=True,
        help="A pattern of files and directories that reload does not watch.",
        doc="May be given several times; uvicorn's. A pattern is held against the names of the file and of the "
        "directories that it is in, as far as they are below the working directory, and against the end of its path.",
    )

    spew = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Write every line of Python that runs to stderr. Very slow.",
        doc="This is the nuclear option.",
    )

    check_config = Setting(
        kind=Boolean(),
        default=False,
        help="Check configuration and application, and exit: 0 if they can be used, 1 if not.",
        doc="No worker is started and nothing listens. An address in use is refused as a start would refuse it, unless "
        "a server with the same `title_prefix` has it: then this is a check before its reload, and a warning.",
    )

    print_config = Setting(
        kind=Boolean(),
        default=False,
        help="Show each setting and where it comes from, what is set first, and check as --check-config.",
        doc="Each with the place it comes from.",
    )
