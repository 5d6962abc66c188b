"""Starting a successor with the same sockets: the signal USR2.

    predecessor   plan (at its start) … start: fork, hook, exec ──> successor   inherited, serves, is promoted

The successor is what the operator's command line gives today: new code, new interpreter, new configuration. It
gets the environment and the directory that the predecessor was started with, and as inherited descriptors the
listening sockets and what it must know to resume sessions of TLS; the variables below say which ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn.unpatched import os, signal

# Not near the name of any setting: TRICORN_PID would be, and may be a misspelt TRICORN_PIDFILE.
PID = "TRICORN_UPGRADE_PID"
"""The predecessor's pid."""
FDS = "TRICORN_UPGRADE_FDS"
"""The numbers of the listening sockets, with commas; absent when they are systemd's (LISTEN_FDS)."""
SECRETS = "TRICORN_UPGRADE_SECRETS"
"""The number of a memfd with the keys of session tickets, which stand in no file and no variable; absent without."""

FIRST_SYSTEMD_FD = 3
FAILED = 1
MOST_SECRETS = 4096
"""Bytes."""


class Command(Record):
    """A program to execute."""

    executable: str
    args: tuple[str, ...]
    """The arguments, with the name of the program as the first one."""
    cwd: str
    environ: Mapping[str, str]
    repeatable: bool = True
    """False if the program was read from the standard input, where it will not be found again."""


class Handover(Record):
    """The inheritance of a successor."""

    pid: int
    """The predecessor's."""
    listeners: list[int]
    """The listening sockets; empty when they are systemd's, for which LISTEN_FDS speaks."""
    secrets: bytes = b""


def plan(
    executable: str, argv: Sequence[str], orig_argv: Sequence[str], cwd: str, environ: Mapping[str, str]
) -> Command:
    """The command that starts this program again: of sys.executable, sys.argv and sys.orig_argv.

    The interpreter's own command line is repeated and not sys.argv, in which `python -m tricorn` has become the
    path of a script: run as such, it has tricorn's directory in sys.path in place of the application's.
    Interpreter options such as -X and -W are kept that way, too.

    `cwd` and `environ` are those at the start, before any setting changed them.
    """
    # An embedding program may leave it empty.
    rest = orig_argv[1:] if orig_argv else argv
    program = executable or next(iter(orig_argv), "python3")
    own = {key: environ[key] for key in environ if key not in _HANDOVER}
    return Command(program, (program, *rest), cwd, own, repeatable=list(argv[:1]) not in ([""], ["-"]))


def start(
    command: Command,
    listeners: Sequence[int],
    *,
    secrets: bytes = b"",
    systemd: bool,
    signals: Iterable[signal.Signals],
    before_exec: Callable[[], object],
    failed: Callable[[BaseException], object],
) -> int:
    """Starts `command` as a child with the listening sockets, and returns its pid. OSError when that fails.

    `systemd`: the sockets came from there, and are handed over in the same manner. `signals` are those that the
    caller has handlers for. Both callables run in the child: `before_exec` is the hook pre_exec; `failed` reports
    an exception of it, or that the program cannot be executed, after which the child exits with status 1.
    """
    parent = os.getpid()
    signals = tuple(signals)
    memory = _in_memory(secrets)
    # Held back, because until the child is rid of them the handlers write to the pipe of the parent.
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        pid = os.fork()
        if pid == 0:
            _become(command, listeners, memory, systemd, parent, _Before(signals, previous, before_exec, failed))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        if memory is not None:
            os.close(memory)
    return pid


def inherited(environ: MutableMapping[str, str]) -> Handover | None:
    """Reads what a successor has got. None: this process has no predecessor.

    The variables are removed: they are for this process and no child. ConfigError when they are not what `start`
    writes.
    """
    pid, fds, secrets = environ.pop(PID, None), environ.pop(FDS, ""), environ.pop(SECRETS, "")
    if pid is None:
        return None
    try:
        return Handover(int(pid), [int(fd) for fd in fds.split(",") if fd], _read_memory(secrets))
    except ValueError:
        raise ConfigError(
            f"{PID}={pid} and {FDS}={fds} are invalid: expected the numbers that tricorn sets for its successor. "
            "Remove them from the environment."
        ) from None


def _in_memory(secrets: bytes) -> int | None:
    """A memfd that holds them; None if there are none, or no memfd_create(2): a successor then makes its own."""
    if not secrets or not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("tricorn-upgrade", os.MFD_CLOEXEC)
    except OSError:
        return None
    os.write(descriptor, secrets)
    return descriptor


def _read_memory(number: str) -> bytes:
    """Reads what `_in_memory` has written, and closes it. ValueError if that is no number."""
    if not number:
        return b""
    descriptor = int(number)
    try:
        found = os.pread(descriptor, MOST_SECRETS, 0)
    except OSError:  # closed on the way, by a program that starts the server: sessions begin anew
        return b""
    os.close(descriptor)
    return found


class _Before(Record):
    """Steps of the child before it is another program."""

    signals: Sequence[signal.Signals]
    mask: Iterable[int]
    hook: Callable[[], object]
    failed: Callable[[BaseException], object]


def _become(
    command: Command, listeners: Sequence[int], memory: int | None, systemd: bool, parent: int, before: _Before
) -> None:
    """Never returns: the child is the successor, or is no more."""
    try:
        try:
            signal.set_wakeup_fd(-1)
            for number in before.signals:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)  # a mask outlives exec
            if not command.repeatable:
                raise ConfigError("the program was read from standard input and cannot be read again")
            before.hook()
            os.chdir(command.cwd)
            environ = _environ(command, listeners, systemd, parent)
            if memory is not None:
                environ[SECRETS] = str(_out_of_the_way(memory, listeners))
            if systemd:
                _move(listeners, FIRST_SYSTEMD_FD)
            else:
                for fd in listeners:
                    os.set_inheritable(fd, True)
            os.execvpe(command.executable, command.args, environ)
        except BaseException as error:
            before.failed(error)
    finally:
        os._exit(FAILED)


def _out_of_the_way(descriptor: int, listeners: Sequence[int]) -> int:
    """A copy that is inherited, beyond the numbers that `_move` gives and takes."""
    import fcntl

    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_SYSTEMD_FD + 2 * len(listeners))
    os.set_inheritable(copy, True)
    return copy


def _environ(command: Command, listeners: Sequence[int], systemd: bool, parent: int) -> dict[str, str]:
    child = str(os.getpid())
    environ = {**command.environ, PID: str(parent)}
    if systemd:
        environ |= {"LISTEN_PID": child, "LISTEN_FDS": str(len(listeners))}
    else:
        environ[FDS] = ",".join(map(str, listeners))
    if "WATCHDOG_PID" in environ:
        environ["WATCHDOG_PID"] = child  # it will be the one that systemd watches
    return environ


def _move(fds: Sequence[int], first: int) -> None:
    """Gives `fds` the numbers from `first` on, inheritable: sd_listen_fds(3) knows no others."""
    import fcntl

    if list(fds) != list(range(first, first + len(fds))):
        # Out of the way first: one's place may be taken by another one.
        aside = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, first + len(fds)) for fd in fds]
        for number, fd in enumerate(aside, first):
            os.dup2(fd, number)
    for number in range(first, first + len(fds)):
        os.set_inheritable(number, True)


_HANDOVER = frozenset((PID, FDS, SECRETS, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"))
