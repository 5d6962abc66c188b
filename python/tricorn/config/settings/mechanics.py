"""Settings of the processes as the operating system sees them."""

from __future__ import annotations

from tricorn.config.lookups import ExistingPath, Group, User, own_group, own_user
from tricorn.config.setting import Action, Section, Setting, fixed
from tricorn.config.validators import (
    Boolean,
    EnvAssignments,
    OptionalText,
    Text,
    TextList,
    Umask,
)


class Mechanics(Section):
    SECTION = "Server Mechanics"

    preload_app = Setting(
        flags=("--preload",),
        kind=Boolean(),
        default=False,
        help="Load the application once, before workers are forked: they share its memory.",
        doc="Saves memory, since workers share the pages; costs reloading code with HUP.",
    )

    sendfile = Setting(
        env_also=("SENDFILE",),
        kind=Boolean(),
        default=True,
        core=True,
        help="Copy files into responses instead of calling sendfile(2).",
        doc="Files that an application returns through wsgi.file_wrapper then go through memory.",
    )

    reuse_port = Setting(
        kind=Boolean(),
        default=False,
        help="Give each worker a listening socket of its own (SO_REUSEPORT).",
        doc="The kernel then spreads connections over the sockets.",
    )

    chdir = Setting(
        kind=OptionalText(metavar="DIR"),
        default=None,
        default_shown="the directory in which the server is started",
        help="The directory to work in; modules are looked for there.",
        doc="Relative paths of other settings begin here. Configuration files themselves are looked for in the "
        "directory in which the server is started.",
    )

    daemon = Setting(
        flags=("-D", "--daemon"),
        kind=Boolean(),
        default=False,
        help="Go on in the background, without a terminal.",
        doc="Detaches the server from the controlling terminal and enters the background.",
    )

    raw_env = Setting(
        flags=("-e", "--env"),
        action=Action.APPEND,
        kind=EnvAssignments(),
        default=(),
        help="A variable for the environment of the application, KEY=VALUE.",
        doc="Set before the application is loaded. --print-config shows the names without the values.",
    )

    pidfile = Setting(
        flags=("-p", "--pid"),
        kind=OptionalText(metavar="FILE"),
        default=None,
        help="A file to write the process id of the server into.",
        doc="Without it none is written.",
    )

    worker_tmp_dir = Setting(
        kind=OptionalText(metavar="DIR"),
        default=None,
        part_of=fixed("tmp_upload_dir", None),
        help="A directory for large request bodies where the system's own cannot be written.",
        doc="gunicorn keeps the heartbeat of its workers there, which is in shared memory here. Where no file can be "
        "made in the system's directory for temporary files (a container with a read-only root), request bodies that "
        "are too large for memory are kept in this one, else in `/dev/shm`. See `tmp_upload_dir`.",
    )

    user = Setting(
        flags=("-u", "--user"),
        kind=User(),
        default=own_user(),
        default_shown="the user who starts the server",
        help="The user as which workers run: a name or a number.",
        doc="A user's number or name.",
    )

    group = Setting(
        flags=("-g", "--group"),
        kind=Group(),
        default=own_group(),
        default_shown="the group of the user who starts the server",
        help="The group as which workers run: a name or a number.",
        doc="A group's number or name.",
    )

    umask = Setting(
        flags=("-m", "--umask"),
        kind=Umask(),
        default=0,
        help="Permissions that files made by the server do not get, as umask(2) has them.",
        doc="Unix sockets, log files and the pidfile: it decides who may connect and read. Log files have the "
        "process's own umask unless this is set. A text that begins with 0 is octal.",
    )

    initgroups = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Give worker processes all groups of which their user is a member.",
        doc="Of effect only with `user`.",
    )

    tmp_upload_dir = Setting(
        flags=(),
        kind=ExistingPath("DIR"),
        default=None,
        help="The directory of request bodies that are too large for memory.",
        doc="Request bodies that are larger than `body_buffer_size` are kept here, in files without a name, and what "
        "slow clients have not taken of responses (`response_buffering`). Without it the system's directory for "
        "temporary files is used, and where that cannot be written `worker_tmp_dir` or `/dev/shm`.",
    )

    pythonpath = Setting(
        kind=TextList(metavar="STRING"),
        default=(),
        help="Directories, with commas between them, in which modules are looked for first.",
        doc="The last is searched first.",
    )

    control_socket = Setting(
        kind=Text(metavar="PATH"),
        default="auto",
        help="The path of the control socket, for `tricorn ctl`; `auto` finds a place.",
        doc="With `auto` it is PID.ctl in the first of these directories that can be used: `$RUNTIME_DIRECTORY` (there "
        "it is called `control`), `$XDG_RUNTIME_DIR/tricorn`, for root `/run/tricorn`, `$TMPDIR/tricorn-UID`. None of "
        "them may be written by others. Where none works there is no control socket. A change takes effect when the "
        "server starts again.",
    )

    control_socket_mode = Setting(
        kind=Umask(metavar="MODE"),
        default=0o600,
        default_shown="0o600",
        rare=True,
        help="The permissions of the control socket's file.",
        doc="A user who may write to it may control the server. A text that begins with 0 is octal.",
    )

    control_socket_disable = Setting(
        flags=("--no-control-socket",),
        kind=Boolean(),
        default=False,
        help="Open no control socket; `tricorn ctl` then finds no server.",
        doc="The server is then controlled by signals alone.",
    )

    control_read_only = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Lets users other than root and the server's own only look.",
        doc="Of effect if `control_socket_mode` lets in others at all.",
    )


class Naming(Section):
    SECTION = "Process Naming"

    proc_name = Setting(
        flags=("-n", "--name"),
        kind=OptionalText(),
        default=None,
        default_shown="default_proc_name",
        help="The name in the titles of processes, in place of the application's.",
        doc="Processes are called `tricorn: master [NAME]` and `tricorn: worker [NAME]` when the package setproctitle "
        "is installed, as by `tricorn[setproctitle]`.",
    )

    default_proc_name = Setting(
        flags=(),
        kind=Text(),
        default="tricorn",
        default_shown="the application's name",
        help="The name in the titles of processes if proc_name is not set.",
    )

    title_prefix = Setting(
        kind=Text(),
        default="tricorn",
        rare=True,
        help="What the titles of processes begin with.",
        doc="`gunicorn` for monitoring that looks for processes called so, as the Datadog Agent does; it is the "
        "default under `tricorn exec`. Of effect only when the package setproctitle is installed.",
        own=True,
    )
