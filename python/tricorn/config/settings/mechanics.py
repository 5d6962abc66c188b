"""What the processes are to the operating system."""

from __future__ import annotations

import os

from tricorn.config.lookups import Group, OptionalDirectory, User
from tricorn.config.setting import Action, Setting
from tricorn.config.validators import (
    Boolean,
    EnvAssignments,
    OptionalText,
    Text,
    TextList,
    Umask,
)

SECTION = "Server Mechanics"
NAMING_SECTION = "Process Naming"

PRELOAD_APP = Setting(
    name="preload_app",
    flags=("--preload",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Load application code before the worker processes are forked.",
    doc="Saves memory, since workers share the pages; costs reloading code with HUP.",
)

SENDFILE = Setting(
    name="sendfile",
    flags=("--no-sendfile",),
    action=Action.UNSET,
    env_also=("SENDFILE",),
    kind=Boolean(),
    default=True,
    core=True,
    section=SECTION,
    help="Disables the use of sendfile().",
    doc="Files that an application returns through wsgi.file_wrapper then go through memory.",
)

REUSE_PORT = Setting(
    name="reuse_port",
    flags=("--reuse-port",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Set the SO_REUSEPORT flag on the listening socket.",
    doc="Each worker then listens on a socket of its own, and the kernel spreads connections over them.",
)

CHDIR = Setting(
    name="chdir",
    flags=("--chdir",),
    kind=OptionalText(metavar="DIR"),
    default=None,
    default_shown="the directory in which the server is started",
    section=SECTION,
    help="Change directory to specified directory before loading apps.",
    doc="Relative paths of other settings begin here. Configuration files themselves are looked for in the directory "
    "in which the server is started.",
)

DAEMON = Setting(
    name="daemon",
    flags=("-D", "--daemon"),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Daemonize the server process.",
    doc="Detaches the server from the controlling terminal and enters the background.",
)

RAW_ENV = Setting(
    name="raw_env",
    flags=("-e", "--env"),
    action=Action.APPEND,
    kind=EnvAssignments(),
    default=(),
    section=SECTION,
    help="Set environment variables in the execution environment, as KEY=VALUE.",
    doc="Set before the application is loaded. --print-config shows the names without the values.",
)

PIDFILE = Setting(
    name="pidfile",
    flags=("-p", "--pid"),
    kind=OptionalText(metavar="FILE"),
    default=None,
    section=SECTION,
    help="A filename to use for the PID file.",
    doc="Without it none is written.",
)

WORKER_TMP_DIR = Setting(
    name="worker_tmp_dir",
    flags=("--worker-tmp-dir",),
    kind=OptionalText(metavar="DIR"),
    default=None,
    section=SECTION,
    help="A directory to use for the worker heartbeat temporary file.",
    doc="Accepted for gunicorn's sake, and of no effect: whether a worker lives is known from shared memory.",
)

USER = Setting(
    name="user",
    flags=("-u", "--user"),
    kind=User(),
    default=os.geteuid(),
    default_shown="the user who starts the server",
    section=SECTION,
    help="Switch worker processes to run as this user.",
    doc="A user's number or name.",
)

GROUP = Setting(
    name="group",
    flags=("-g", "--group"),
    kind=Group(),
    default=os.getegid(),
    default_shown="the group of the user who starts the server",
    section=SECTION,
    help="Switch worker process to run as this group.",
    doc="A group's number or name.",
)

UMASK = Setting(
    name="umask",
    flags=("-m", "--umask"),
    kind=Umask(),
    default=0,
    section=SECTION,
    help="A bit mask for the file mode on files written by the server.",
    doc="It also decides who may connect to a unix socket. A text that begins with 0 is octal.",
)

INITGROUPS = Setting(
    name="initgroups",
    flags=("--initgroups",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Give worker processes all groups of which their user is a member.",
    doc="Of effect only with `user`.",
)

TMP_UPLOAD_DIR = Setting(
    name="tmp_upload_dir",
    kind=OptionalDirectory(),
    default=None,
    section=SECTION,
    help="Directory to store temporary request data as they are read.",
    doc="Request bodies that are larger than `body_buffer_size` are kept here, in files without a name, and what slow "
    "clients have not taken of responses (`response_buffering`). Without it the system's directory for temporary "
    "files is used.",
)

PYTHONPATH = Setting(
    name="pythonpath",
    flags=("--pythonpath",),
    kind=TextList(metavar="STRING"),
    default=(),
    section=SECTION,
    help="A comma-separated list of directories to add to the Python path.",
    doc="The last is searched first.",
)

CONTROL_SOCKET_DISABLE = Setting(
    name="control_socket_disable",
    flags=("--no-control-socket",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Disable control socket.",
    doc="Accepted for gunicorn's sake: there is none.",
)

PROC_NAME = Setting(
    name="proc_name",
    flags=("-n", "--name"),
    kind=OptionalText(),
    default=None,
    default_shown="default_proc_name",
    section=NAMING_SECTION,
    help="A base to use with setproctitle for process naming.",
    doc="Processes are called `tricorn: master [NAME]` and `tricorn: worker [NAME]` when the package setproctitle is "
    "installed, as by `tricorn[setproctitle]`.",
)

DEFAULT_PROC_NAME = Setting(
    name="default_proc_name",
    kind=Text(),
    default="tricorn",
    default_shown="the application's name",
    section=NAMING_SECTION,
    help="Internal setting that is adjusted for each type of application.",
)

TITLE_PREFIX = Setting(
    name="title_prefix",
    flags=("--title-prefix",),
    kind=Text(),
    default="tricorn",
    section=NAMING_SECTION,
    help="What the titles of processes begin with.",
    doc="`gunicorn` for monitoring that looks for processes called so, as the Datadog Agent does; it is the default "
    "under `tricorn exec`. Of effect only when the package setproctitle is installed.",
    own=True,
)
