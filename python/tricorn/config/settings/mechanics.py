"""Settings of the processes as the operating system sees them."""

from __future__ import annotations

from tricorn.config.kinds import WarmupTargets
from tricorn.config.lookups import ExistingPath, Group, User, own_group, own_user
from tricorn.config.setting import Action, Section, Setting, fixed
from tricorn.config.validators import (
    MOLD,
    Boolean,
    EnvAssignments,
    OptionalText,
    Preloading,
    RisingNumbers,
    Text,
    TextList,
    Umask,
)


class Mechanics(Section):
    SECTION = "Server Mechanics"

    preload_app = Setting(
        flags=("--preload", "--mold"),
        meanings={"--mold": MOLD},
        kind=Preloading(),
        default=False,
        help="Load the application once, before forking, so that workers share its memory.",
        doc="`--preload` is `true`: the arbiter loads it, and HUP cannot reload its code. `--mold` is `mold`: a "
        "process of its own loads it and forks the workers, and HUP reloads it ([how](../guides/share-memory.md)).",
    )

    refork = Setting(
        kind=RisingNumbers(metavar="REQUESTS"),
        default=(),
        default_shown="off",
        own=True,
        help="Fork workers from one that has served so many requests, whose memory is warm.",
        doc="With `preload_app = mold` and the classes `sync` and `gthread`. `refork = 1000, 5000`: the first worker "
        "that has served 1000 requests drains and becomes the mold; the others are replaced by forks of it, one after "
        "another; and once more after 5000 ([how](../guides/refork.md)).",
    )

    warmup: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=WarmupTargets(),
        default=(),
        own=True,
        help="A path that the application answers once before its workers serve, to fill caches.",
        doc="May be repeated, or a list. The application gets a GET request without a connection, and its answer is "
        "dropped; metrics and the access log do not count it. A URL such as `https://shop.example/login` sets the "
        "Host header and the scheme, which are otherwise `localhost` and http. With `preload_app = mold` the mold "
        "does it, and workers share what it has filled; else each worker does it before it is ready. An exception, or "
        "a status from 500 on, is a warning in the log, and the boot continues ([how](../guides/share-memory.md"
        "#warm-up)).",
    )

    sendfile = Setting(
        env_also=("SENDFILE",),
        kind=Boolean(),
        default=True,
        core=True,
        help="Copy files into responses instead of using sendfile(2).",
        doc="Applies to files that an application returns through wsgi.file_wrapper.",
    )

    reuse_port = Setting(
        kind=Boolean(),
        default=False,
        help="Give each worker its own listening socket (SO_REUSEPORT).",
        doc="The kernel then distributes connections among the sockets.",
    )

    chdir = Setting(
        kind=OptionalText(metavar="DIR"),
        default=None,
        default_shown="the directory in which the server is started",
        help="Change to this directory, and import modules from it.",
        doc="Relative paths in other settings start here. Configuration files are searched in the directory in which "
        "the server starts.",
    )

    daemon = Setting(
        flags=("-D", "--daemon"),
        kind=Boolean(),
        default=False,
        help="Run in the background, detached from the terminal.",
        doc="The server detaches from the controlling terminal.",
    )

    raw_env = Setting(
        flags=("-e", "--env"),
        action=Action.APPEND,
        kind=EnvAssignments(),
        default=(),
        help="An environment variable for the application, KEY=VALUE.",
        doc="Set before the application is loaded. --print-config shows only the names.",
    )

    pidfile = Setting(
        flags=("-p", "--pid"),
        kind=OptionalText(metavar="FILE"),
        default=None,
        help="Write the server's process id to this file.",
        doc="Without it none is written.",
    )

    worker_tmp_dir = Setting(
        kind=OptionalText(metavar="DIR"),
        default=None,
        part_of=fixed("tmp_upload_dir", None),
        help="A directory for large request bodies if the system's temporary directory is not writable.",
        doc="gunicorn keeps its workers' heartbeat files there; tricorn uses shared memory. In a container with a "
        "read-only root, request bodies too large for memory go to this directory, otherwise to `/dev/shm`. See "
        "`tmp_upload_dir`.",
    )

    user = Setting(
        flags=("-u", "--user"),
        kind=User(),
        default=own_user(),
        default_shown="the user who starts the server",
        help="Run workers as this user (name or number).",
        doc="A user's number or name.",
    )

    group = Setting(
        flags=("-g", "--group"),
        kind=Group(),
        default=own_group(),
        default_shown="the group of the user who starts the server",
        help="Run workers as this group (name or number).",
        doc="A group's number or name.",
    )

    umask = Setting(
        flags=("-m", "--umask"),
        kind=Umask(),
        default=0,
        help="Permissions to remove from files that the server creates (umask(2)).",
        doc="Applies to Unix sockets, log files and the pidfile, so it decides who may connect and read. Without it "
        "log files use the umask of the process. A value starting with 0 is octal.",
    )

    initgroups = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Give workers all groups of their user.",
        doc="Has an effect only with `user`.",
    )

    tmp_upload_dir = Setting(
        flags=(),
        kind=ExistingPath("DIR"),
        default=None,
        help="Directory for request bodies too large for memory.",
        doc="Request bodies larger than `body_buffer_size` are stored here in unnamed files, as are responses that "
        "slow clients have not read (`response_buffering`). The default is the system's temporary directory or, if "
        "that is not writable, `worker_tmp_dir` or `/dev/shm`.",
    )

    pythonpath = Setting(
        kind=TextList(metavar="STRING"),
        default=(),
        help="Comma-separated directories to search for modules first.",
        doc="The last one is searched first.",
    )

    control_socket = Setting(
        kind=Text(metavar="PATH"),
        default="auto",
        help="Path of the control socket for `tricorn ctl`; `auto` selects a directory.",
        doc="With `auto` the path is PID.ctl in the first usable directory: `$RUNTIME_DIRECTORY` (where the name is "
        "`control`), `$XDG_RUNTIME_DIR/tricorn`, for root `/run/tricorn`, `$TMPDIR/tricorn-UID`. Directories that "
        "others can write to are skipped. If none is usable there is no control socket. A change takes effect at the "
        "next start.",
    )

    control_socket_mode = Setting(
        kind=Umask(metavar="MODE"),
        default=0o600,
        default_shown="0o600",
        rare=True,
        help="Permissions of the control socket.",
        doc="A user with write permission can control the server. A value starting with 0 is octal.",
    )

    control_socket_disable = Setting(
        flags=("--no-control-socket",),
        kind=Boolean(),
        default=False,
        help="Do not create a control socket; `tricorn ctl` then cannot find the server.",
        doc="The server is then controlled by signals only.",
    )

    control_read_only = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Allow users other than root and the server's own to query only.",
        doc="Has an effect only if `control_socket_mode` lets other users connect.",
    )


class Naming(Section):
    SECTION = "Process Naming"

    proc_name = Setting(
        flags=("-n", "--name"),
        kind=OptionalText(),
        default=None,
        default_shown="default_proc_name",
        help="Name shown in process titles instead of the application's.",
        doc="With the package setproctitle (`tricorn[setproctitle]`) processes are titled `tricorn: master [NAME]` "
        "and `tricorn: worker [NAME]`.",
    )

    default_proc_name = Setting(
        flags=(),
        kind=Text(),
        default="tricorn",
        default_shown="the application's name",
        help="Name shown in process titles if proc_name is not set.",
    )

    title_prefix = Setting(
        kind=Text(),
        default="tricorn",
        rare=True,
        help="Prefix of process titles.",
        doc="Use `gunicorn` for monitoring that searches for processes of that name, such as the Datadog Agent; it is "
        "the default under `tricorn exec`. Has an effect only if the package setproctitle is installed.",
        own=True,
    )
