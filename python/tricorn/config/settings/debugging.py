"""Looking before leaping, and while developing."""

from __future__ import annotations

from tricorn.config.lookups import Directories, FilesOrPatterns
from tricorn.config.setting import Action, Setting
from tricorn.config.validators import Boolean, Choice, TextList

SECTION = "Debugging"

RELOAD = Setting(
    name="reload",
    flags=("--reload",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Restart workers when code changes.",
    doc="For development. Changes are noticed at once with the package watchfiles, as installed by `tricorn[reload]`, "
    "and within a second without.",
)

RELOAD_ENGINE = Setting(
    name="reload_engine",
    flags=("--reload-engine",),
    kind=Choice(("auto", "poll", "inotify", "watchfiles")),
    default="auto",
    section=SECTION,
    help="The implementation that should be used to power reload: auto, poll, inotify or watchfiles.",
    doc="`auto` is `watchfiles` where it is installed, and `poll` elsewhere. `inotify`, gunicorn's word, is "
    "`watchfiles`.",
)

RELOAD_EXTRA_FILES = Setting(
    name="reload_extra_files",
    flags=("--reload-extra-file",),
    action=Action.APPEND,
    kind=FilesOrPatterns(),
    default=(),
    section=SECTION,
    help="Extends the reload option to also watch and reload on additional files or patterns.",
    doc="Templates, configuration files. Patterns are matched again each time, so that new files are noticed.",
)

RELOAD_DIRS: Setting[tuple[str, ...]] = Setting(
    name="reload_dirs",
    flags=("--reload-dir",),
    action=Action.APPEND,
    kind=Directories(),
    default=(),
    section=SECTION,
    own=True,
    help="A directory whose files of Python, in any depth, reload watches besides the modules that are imported.",
    doc="May be given several times; uvicorn's. Hidden directories are passed over.",
)

RELOAD_INCLUDES: Setting[tuple[str, ...]] = Setting(
    name="reload_includes",
    flags=("--reload-include",),
    action=Action.APPEND,
    kind=TextList(metavar="PATTERN"),
    default=(),
    section=SECTION,
    own=True,
    help="A pattern of further files that reload watches in the directories of reload_dirs: '*.html'.",
    doc="May be given several times; uvicorn's. Without `reload_dirs` in the working directory.",
)

RELOAD_EXCLUDES: Setting[tuple[str, ...]] = Setting(
    name="reload_excludes",
    flags=("--reload-exclude",),
    action=Action.APPEND,
    kind=TextList(metavar="PATTERN"),
    default=(),
    section=SECTION,
    own=True,
    help="A pattern of files and directories that reload does not watch.",
    doc="May be given several times; uvicorn's. A pattern is held against the names of the file and of the directories "
    "that it is in, as far as they are below the working directory, and against the end of its path.",
)

SPEW = Setting(
    name="spew",
    flags=("--spew",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Install a trace function that spews every line executed by the server.",
    doc="This is the nuclear option.",
)

CHECK_CONFIG = Setting(
    name="check_config",
    flags=("--check-config",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Check the configuration and the application and exit: 0 if they can be used, 1 if not.",
    doc="Nothing is bound and no worker is started.",
)

PRINT_CONFIG = Setting(
    name="print_config",
    flags=("--print-config",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Print the configuration settings as fully resolved, and check them as --check-config does.",
    doc="Each with the place it comes from.",
)
