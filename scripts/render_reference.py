"""Renders the pages of docs/reference that say what records, classes and functions say.

python scripts/render_reference.py           writes them
python scripts/render_reference.py --check   fails if they are not what the sources say
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tricorn
from tricorn import cli, extensions
from tricorn.arbiter.policy import signals
from tricorn.config.lookups import Hook
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Setting
from tricorn.errors import ExitCode
from tricorn.metrics.scoreboard import metric_families

from scripts import render_settings, rendered

MARK = "<!-- Rendered by scripts/render_reference.py: change that, or the records it reads. -->\n"

COMMANDS = {
    "": ("tricorn [OPTIONS] [MODULE:APPLICATION]", "serves an application", "#flags"),
    "ctl": ("tricorn ctl [WORD …]", "asks and tells a running server", "../diagnose/ctl.md"),
    "top": ("tricorn top", "shows a running server, live", "../diagnose/top.md"),
    "doctor": (
        "tricorn doctor [check | slow | --pid PID]",
        "says what holds up a server, or would",
        "../diagnose/doctor.md",
    ),
    "bench": ("tricorn bench MODULE:APPLICATION", "measures an application under several servers", "bench.md"),
    "tune": ("tricorn tune MODULE:APPLICATION", "finds worker class, workers and threads by measurement", "tune.md"),
    "load": ("tricorn load URL", "sends load and reports how it was served", "load.md"),
    "dev-cert": ("tricorn dev-cert [NAME …]", "makes a certificate for development", "../guides/tls.md#try-it"),
    "exec": (
        "tricorn exec COMMAND …",
        "runs a program in which gunicorn is tricorn",
        "../guides/tricorn-exec.md#programs-that-start-gunicorn",
    ),
    "init": (
        "tricorn init KIND [MODULE:APPLICATION]",
        "prints files for systemd, Docker, nginx and others",
        "init.md",
    ),
}
"""By the first argument: usage, purpose, and the page that tells more."""

HOOKS = (
    ("on_starting", "arbiter", "the configuration is read; nothing is bound"),
    ("ssl_context", "arbiter", "certificates are read: at the start, and at each reload"),
    ("when_ready", "arbiter", "the addresses are bound; no worker is forked yet"),
    ("nworkers_changed", "arbiter", "the number of workers is known, or another one"),
    ("mold_ready", "mold", "with a [mold](../guides/share-memory.md): it has loaded the application"),
    ("pre_fork", "arbiter", "before each fork of a worker"),
    ("post_fork", "worker", "after the fork, as the user that started the server, before the application is loaded"),
    ("post_worker_init", "worker", "the application is loaded; requests come next"),
    ("pre_request", "worker", "before each call of the application"),
    ("post_request", "worker", "after each call of the application"),
    ("on_reload", "arbiter", "HUP: the new configuration is in force; new workers are not forked yet"),
    (
        "canary_judge",
        "arbiter",
        "once a second while [canaries](../guides/canary.md) are compared with the old workers",
    ),
    ("on_rollback", "arbiter", "a reload was rolled back; the old configuration is in force again"),
    ("worker_int", "worker", "INT or QUIT came"),
    ("worker_abort", "worker", "ABRT came: the worker hangs, and is about to end"),
    ("worker_exit", "worker", "the worker is about to exit normally"),
    (
        "before_refork",
        "worker",
        "with [`refork`](../guides/refork.md): after `worker_exit`, before the process becomes the mold",
    ),
    ("child_exit", "arbiter", "a worker has ended"),
    ("pre_exec", "child", "USR2: before the successor's program is executed"),
    ("on_exit", "arbiter", "the server is about to end"),
)
"""In the order in which they are called: the process, and the moment."""

SIGNALS = (
    ("TERM", "finish requests and end (`graceful_timeout`; `drain_delay` first)", "finish requests and end"),
    ("INT", "end now; twice: kill the workers", "hook `worker_int`, end now"),
    ("QUIT", "the same as INT", "the same as INT"),
    ("HUP", "reload: configuration and code; the old workers go when all new ones serve", "nothing"),
    ("TTIN", "one worker more", "nothing"),
    ("TTOU", "one worker fewer: a booting one first, then the oldest", "nothing"),
    ("USR1", "open the log files anew, in all processes", "open the log files anew"),
    ("USR2", "start a second server with the same listeners (upgrade)", "nothing"),
    ("WINCH", "with `daemon`: let the workers go, keep the arbiter", "nothing"),
    ("ABRT", "not handled", "hook `worker_abort`, end"),
)

STATUSES = {
    ExitCode.OK: "The server shut down as requested.",
    ExitCode.CONFIG: "A setting, an address, a path or a pidfile cannot be used.",
    ExitCode.USAGE: "A flag does not exist, or its value has the wrong form.",
    ExitCode.WORKER_BOOT: "No worker could boot: the application failed while it was loaded, or took longer "
    "than `boot_timeout`.",
    ExitCode.APP_LOAD: "The application cannot be found: the module has no such attribute, or it cannot be called.",
}


COMPLETIONS = """\
## Completions

`tricorn --completions SHELL` prints completions of commands, flags and values:

```sh
tricorn --completions bash > ~/.local/share/bash-completion/completions/tricorn
tricorn --completions zsh > "${fpath[1]}/_tricorn"
tricorn --completions fish > ~/.config/fish/completions/tricorn.fish
```

A shell that is opened then has them; in this one bash takes them from the command itself:

```console
$ source <(tricorn --completions bash) && complete -p tricorn
complete …_tricorn tricorn
```
"""


def main() -> int:
    pages = {
        "command-line.md": command_line(),
        "environment.md": environment(),
        "hooks.md": hooks(),
        "signals.md": signal_page(),
        "exit-statuses.md": exit_statuses(),
        "python-api.md": python_api(),
        "metrics.md": metrics(),
    }
    files = {f"docs/reference/{name}": text for name, text in pages.items()}
    return rendered.whole("scripts/render_reference.py", files)


def _page(title: str, *parts: str) -> str:
    return "\n".join((f"# {title}\n", MARK, *parts))


def _table(head: str, rows: Iterator[str]) -> str:
    columns = head.count("|") - 1
    return "\n".join((head, "|" + "---|" * columns, *rows)) + "\n"


def _setting(name: str) -> str:
    return f"[`{name}`](settings.md#{name})"


def command_line() -> str:
    known = sorted((*cli.COMMANDS, *extensions.OWN[extensions.COMMANDS]))
    commands = (f"| `{COMMANDS[name][0]}` | [{COMMANDS[name][1]}]({COMMANDS[name][2]}) |" for name in ("", *known))
    parts = [
        "A first argument with one of these names is a command, unless a module of that name can be imported.\n",
        _table("| Command | |", commands),
        COMPLETIONS,
        "## Flags\n",
        "A flag sets a setting, whose page has its values, default and meaning. Flags of uvicorn, hypercorn and "
        "granian are\n"
        "[aliases](../migrate/flags.md). `--name VALUE` and `--name=VALUE` are the same.\n"
        "[Parts](settings.md#parts-of-other-settings) of settings have flags, too, by their names. `-h` shows "
        "twelve\n"
        "of these flags, `--help` those that people set, `--help-all` all.\n",
    ]
    for section, settings in groupby(SETTINGS, key=lambda setting: setting.section):
        with_flags = [setting for setting in settings if setting.flags and setting.part_of is None]
        if with_flags:
            rows = (
                f"| {_flags(setting)} | {render_settings.as_code(setting.help)} | {_setting(setting.name)} |"
                for setting in with_flags
            )
            parts += [f"### {section}\n", _table("| Flag | | Setting |", rows)]
    return _page("Command line", *parts)


def _flags(setting: Setting[object]) -> str:
    return ", ".join(f"`{flag}{render_settings.operand(setting)}`" for flag in setting.flags)


def environment() -> str:
    rows = (
        f"| {', '.join(f'`{name}`' for name in (setting.env, *setting.env_also))} | {_setting(setting.name)} |"
        for setting in SETTINGS
    )
    others = (
        ("TRICORN_CMD_ARGS, GUNICORN_CMD_ARGS", "flags, as on the command line; the first takes precedence"),
        ("UVICORN_…, GRANIAN_…", "[flags of these servers](../migrate/flags.md#variables)"),
        ("TRICORN_WORKER", "set in a worker: the number of its slot, from 1 on"),
        (
            "PROMETHEUS_MULTIPROC_DIR",
            "the directory of the application's own metrics ([`metrics_app`](../guides/metrics.md))",
        ),
        ("NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS", "systemd's: readiness, watchdog, sockets"),
        ("RUNTIME_DIRECTORY, XDG_RUNTIME_DIR, TMPDIR", "where the [control socket](control-socket.md#path) is"),
    )
    return _page(
        "Environment variables",
        "Each setting has a variable: `TRICORN_` and the setting's name in capitals. A second name is one that\n"
        "platforms set; all other sources take precedence over it ([the order](settings.md)). Empty variables are\n"
        "ignored. "
        "`tricorn --print-config` shows the origin of each value.\n",
        "## Other variables\n",
        _table(
            "| Variable | |",
            (f"| {', '.join(f'`{n}`' for n in names.split(', '))} | {text} |" for names, text in others),
        ),
        "## Variables of settings\n",
        _table("| Variable | Setting |", rows),
    )


def hooks() -> str:
    found = {setting.name: setting for setting in SETTINGS if isinstance(setting.kind, Hook)}
    told = {name for name, _, _ in HOOKS}
    if missing := sorted(set(found) - told):
        raise SystemExit(f"scripts/render_reference.py: HOOKS says nothing of {', '.join(missing)}")
    rows = (
        f"| {number} | [`{name}`](settings.md#{name})`({_arguments(found[name])})` | {process} | {moment} |"
        for number, (name, process, moment) in enumerate(HOOKS, 1)
    )
    return _page(
        "Hooks",
        "A hook is a function in the configuration file. Its name and arguments are gunicorn's. This is the "
        "order in which\n"
        "hooks are called in the life of a server, and the process in which each runs. [A configuration that "
        "prints this\n"
        "order](../guides/hooks.md) can be tried out.\n",
        _table("| | Hook | Process | Moment |", rows),
        "An exception in a hook of the arbiter before a worker has served ends the start with status 1 or 3. "
        "Later it is\n"
        "logged, and the server keeps running.\n",
        "With `preload_app`, true or `mold`, the order and the processes are the same; at `post_fork` the application "
        "is loaded.\n"
        "With a mold, attributes that `pre_fork` sets on `worker` are there in the worker if pickle can take them. "
        "What it\n"
        "changes besides, such as `os.environ`, stays in the arbiter.\n",
        "## Arguments of hooks\n",
        "`server` is the arbiter:\n",
        _table(
            "| Attribute | |",
            iter(
                (
                    "| `cfg`, `log`, `pid`, `address` | configuration, log, pid, addresses |",
                    "| `num_workers` | how many workers are wanted; may be set |",
                    "| `WORKERS` | workers by pid; one that is being replaced has `alive = False` |",
                    "| `reload()`, `stop(graceful)`, `kill_workers(signal)` | as HUP, TERM or QUIT, and a "
                    "signal to each |",
                )
            ),
        ),
        "`worker` is a worker:\n",
        _table(
            "| Attribute | |",
            iter(
                (
                    "| `pid`, `ppid`, `age`, `cfg`, `log`, `alive` | as with gunicorn |",
                    "| `slot` | the lowest number from 1 on that no other process of the server has |",
                    "| `nr` | how many requests it has served |",
                )
            ),
        ),
        "`req` has `method`, `uri`, `path`, `query`, `headers`, `version` and `remote_addr`; `resp` has `status`,\n"
        "`status_code`, `headers` and `sent`. `environ` is the WSGI environ, or for ASGI what an access log "
        "needs of it.\n"
        "[More about the number of a worker](../guides/hooks.md#number-the-workers).\n",
    )


def _arguments(setting: Setting[object]) -> str:
    return setting.kind.arguments if isinstance(setting.kind, Hook) else ""


def signal_page() -> str:
    handled = {signal.name.removeprefix("SIG") for signal in signals._HANDLERS}
    if handled != {name for name, _, _ in SIGNALS} - {"ABRT"}:
        raise SystemExit("scripts/render_reference.py: SIGNALS are not those of tricorn.arbiter.policy.signals")
    return _page(
        "Signals",
        "`kill -HUP PID`, with the pid of the arbiter: the log has it behind *Listening at*, and `pidfile` "
        "writes it to a file.\n"
        "[`tricorn ctl`](../diagnose/ctl.md) does the same and says how it ended.\n",
        _table("| Signal | To the arbiter | To a worker |", (f"| `{a}` | {b} | {c} |" for a, b, c in SIGNALS)),
        "Other signals do what they do to any process. Signals that come in a burst are handled one after another.\n",
    )


def exit_statuses() -> str:
    rows = (f"| {int(code)} | `{code.name}` | {STATUSES[code]} |" for code in ExitCode)
    return _page(
        "Exit statuses",
        "Supervisors and deployment scripts know these statuses from gunicorn.\n",
        _table("| Status | Name | Meaning |", rows),
        "130 is a start that Ctrl-C ended before the server listened to signals. `tricorn ctl` has\n"
        "[statuses of its own](../diagnose/ctl.md#exit-status). A worker that crashed has a status in the log, and the "
        "server keeps running.\n",
    )


def python_api() -> str:
    parts = [
        "What an application or a program may import from `tricorn`. Everything else is internal, but for the "
        "modules below.\n"
    ]
    for name in tricorn.__all__:
        found = getattr(tricorn, name)
        if name == "__version__":
            parts.append("## `tricorn.__version__`\n\nThe version, a str.\n")
            continue
        signature = "" if inspect.isclass(found) else str(inspect.signature(found)).replace("'", "")
        text = inspect.getdoc(found) or ""
        parts.append(f"## `tricorn.{name}`\n\n```python\ntricorn.{name}{signature}\n```\n\n{text}\n")
    others = (
        (
            "tricorn.testing",
            "a server for tests of an application, and a plugin for pytest: [testing](../guides/testing.md)",
        ),
        ("tricorn.control.client", "the control socket from Python: [the protocol](control-socket.md#protocol)"),
        (
            "tricorn.contrib.django",
            "`manage.py runserver` and a live server for tests: [Django](../frameworks/django.md)",
        ),
        ("tricorn.contrib.flask", "`flask tricorn`: [Flask](../frameworks/flask.md)"),
        (
            "tricorn.compat",
            "`install(programs=True)`: gunicorn's names in a program: "
            "[programs](../guides/tricorn-exec.md#programs-that-start-gunicorn)",
        ),
        ("tricorn.errors", "`BodyError`, `ClientDisconnected`: what the server raises into an application"),
    )
    parts += ["## Modules\n", _table("| Module | |", (f"| `{name}` | {text} |" for name, text in others))]
    return _page("Python API", *parts)


def metrics() -> str:
    return _page(
        "Metrics",
        "What `/metrics` on the [admin listener](../guides/metrics.md) has, for all workers together. Label "
        "`worker` is a\n"
        "slot, from 1 on. A metric that has nothing to say yet is not there.\n",
        _table("| Metric | Kind | Label | |", (_metric_row(*family) for family in metric_families())),
    )


def _metric_row(name: str, kind: str, label: str, text: str) -> str:
    suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
    full = "_".join(filter(None, ("tricorn", name))) + suffix
    return f"| `{full}` | {kind} | {f'`{label}`' if label else ''} | {text} |"


if __name__ == "__main__":
    sys.exit(main())
