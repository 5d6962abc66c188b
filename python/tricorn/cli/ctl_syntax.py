"""Parser of `tricorn ctl`: turns a line into a request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tricorn.record import Record
from tricorn.spelling import hint


class Usage(Exception):
    """Usage error. The message is a sentence."""


class Asking(Record):
    """A request to the server."""

    word: str
    """Name of the command in the control protocol."""
    arguments: Mapping[str, Any] = {}

    @property
    def waits(self) -> bool:
        """Whether the answer comes only when a reload or a worker has finished."""
        return self.arguments.get("wait") is True

    @property
    def changes(self) -> bool:
        """Whether the command changes the server or its log."""
        return self.word in CHANGES


class Form(Record):
    usage: str
    help: str
    parse: Callable[[list[str]], Asking]


def parse(words: Sequence[str]) -> Asking:
    """Raises Usage."""
    given = list(words)
    for length in (2, 1):
        name = " ".join(given[:length])
        form = FORMS.get(name)
        if form is not None:
            rest = given[length:]
            try:
                return form.parse(rest)
            except Usage:
                raise Usage(f"Usage: {form.usage}") from None
    name = given[0]
    several = sorted(form.usage for known, form in FORMS.items() if known.startswith(f"{name} "))
    if several:
        raise Usage(f"Usage: {' | '.join(several)}")
    raise Usage(_unknown(name))


def asks_for_help(line: Sequence[str]) -> Sequence[str] | None:
    """Returns the command that help is requested for: `reload --help`, `help reload`. None: no help is requested."""
    if HELP.isdisjoint(line[1:]):
        return line[1:] if line[:1] == ["help"] else None
    return [word for word in line if word not in HELP]


def explanation(words: Sequence[str]) -> str:
    """Returns the usage and help of a command. Raises Usage."""
    for length in (2, 1):
        name = " ".join(words[:length])
        known = [form for key, form in EXPLAINED.items() if key == name] or [
            form for key, form in EXPLAINED.items() if key.startswith(f"{name} ")
        ]
        if known:
            return "\n\n".join(f"usage: tricorn ctl {form.usage}\n\n{form.help}" for form in known)
    raise Usage(_unknown(words[0]))


def _unknown(name: str) -> str:
    return f"Unknown command {name!r}{hint(name, FORMS, otherwise='; `help` lists the commands.')}"


def _plain(word: str) -> Callable[[list[str]], Asking]:
    def parse(rest: list[str]) -> Asking:
        _end(rest)
        return Asking(word)

    return parse


def _switch(word: str, flag: str, name: str) -> Callable[[list[str]], Asking]:
    def parse(rest: list[str]) -> Asking:
        is_given = _take(rest, flag)
        _end(rest)
        return Asking(word, {name: True} if is_given else {})

    return parse


def _reload(rest: list[str]) -> Asking:
    arguments: dict[str, object] = {"wait": True} if _take(rest, "--wait") else {}
    rest = [part for word in rest for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if "--for" in rest:
        place = rest.index("--for")
        try:
            arguments["for"] = float(rest[place + 1].removesuffix("s"))
        except (IndexError, ValueError):
            raise Usage from None
        del rest[place : place + 2]
    if rest[:1] == ["--canary"]:
        size = _one(rest[1:] or ["1"])
        if not (size.removesuffix("%").isascii() and size.removesuffix("%").isdigit()):
            raise Usage
        arguments["canary"] = size
    elif rest:
        raise Usage
    return Asking("reload", arguments)


def _requests(rest: list[str]) -> Asking:
    if not rest:
        return Asking("requests")
    if len(rest) == 1 and rest[0].startswith("--older="):
        rest = rest[0].split("=", 1)
    if len(rest) != 2 or rest[0] != "--older":
        raise Usage
    try:
        return Asking("requests", {"older": float(rest[1].removesuffix("s"))})
    except ValueError:
        raise Usage from None


def _scale(rest: list[str]) -> Asking:
    value = _one(rest)
    if value != "auto" and not value.lstrip("+-").isdigit():
        raise Usage
    return Asking("scale", {"workers": value})


def _scale_by(sign: str) -> Callable[[list[str]], Asking]:
    def parse(rest: list[str]) -> Asking:
        return Asking("scale", {"workers": f"{sign}{_number(rest or ['1'])}"})

    return parse


def _drain(rest: list[str]) -> Asking:
    wait = {"wait": True} if _take(rest, "--wait") else {}
    return Asking("drain", {"slot": _number(rest), **wait})


def _stacks(rest: list[str]) -> Asking:
    return Asking("stacks", {"slot": _number(rest)} if rest else {})


def _cancel(rest: list[str]) -> Asking:
    worker, _, call = _one(rest).partition(".")
    place, _, start = call.partition("@")
    return Asking("cancel", {"slot": _number([worker]), "place": _number([place]), "start": _number([start])})


def _stalls(rest: list[str]) -> Asking:
    arguments: dict[str, object] = {"records": True} if _take(rest, "--records") else {}
    if rest:
        flag, value = rest if len(rest) == 2 else _one(rest).split("=", 1) if "=" in rest[0] else ("", "")
        if flag != "--since" or value not in ("start", "minute"):
            raise Usage
        arguments["since"] = value
    return Asking("stalls", arguments)


def _kill(rest: list[str]) -> Asking:
    return Asking("kill", {"pid": _number(rest)})


def _ready(rest: list[str]) -> Asking:
    value = _one(rest)
    if value not in ("on", "off"):
        raise Usage
    return Asking("ready", {"on": value == "on"})


def _log_level(rest: list[str]) -> Asking:
    return Asking("log-level", {"level": _one(rest).lower()})


def _shutdown(rest: list[str]) -> Asking:
    how = _one(rest or ["graceful"])
    if how not in ("graceful", "quick"):
        raise Usage
    return Asking("shutdown", {"quick": True} if how == "quick" else {})


def _take(rest: list[str], flag: str) -> bool:
    if flag not in rest:
        return False
    rest.remove(flag)
    return True


def _end(rest: list[str]) -> None:
    if rest:
        raise Usage


def _one(rest: list[str]) -> str:
    if len(rest) != 1:
        raise Usage
    return rest[0]


def _number(rest: list[str]) -> int:
    value = _one(rest)
    if not (value.isascii() and value.isdigit()):
        raise Usage
    return int(value)


FORMS: dict[str, Form] = {
    "status": Form("status", "Show the state of the server.", _plain("status")),
    "workers": Form("workers", "List the workers: slot, pid, state.", _plain("workers")),
    "memory": Form("memory", "Show the memory of each process: PSS, its own, shared.", _plain("memory")),
    "requests": Form("requests [--older SECONDS]", "List running requests, oldest first.", _requests),
    "routes": Form("routes", "Show the cost of each route, most expensive first.", _plain("routes")),
    "sessions": Form("sessions", "Count the sessions of each worker.", _plain("sessions")),
    "stacks": Form("stacks [WORKER]", "Show the Python stacks of the application's threads.", _stacks),
    "listeners": Form("listeners", "List the listeners.", _plain("listeners")),
    "stats": Form("stats", "Show the counters of all workers.", _plain("stats")),
    "config": Form(
        "config [--changed]",
        "Show the settings with their values and origins.",
        _switch("config", "--changed", "changed"),
    ),
    "health": Form("health", "Exit with 0 if the server is ready, otherwise 1.", _plain("health")),
    "stalls": Form(
        "stalls [--since start|minute] [--records]", "List stalls of event loops, most expensive first.", _stalls
    ),
    "events": Form("events", "Follow events, one per line.", _plain("events")),
    "reload": Form(
        "reload [--wait] [--canary [N|N%]] [--for SECONDS]",
        "Reload, like HUP. --wait: exit with 0 when the new workers are ready, otherwise 1 and the reason. --canary: "
        "begin with N workers (1), compared with the old ones --for SECONDS.",
        _reload,
    ),
    "scale": Form("scale N|+N|-N|auto", "Set the number of workers; auto: as configured.", _scale),
    "cancel": Form("cancel WORKER.SLOT@START", "Cancel a request; `requests` shows the identifier.", _cancel),
    "drain": Form("drain WORKER [--wait]", "Replace the worker in this slot, starting its successor first.", _drain),
    "worker add": Form("worker add [N]", "Same as `scale +N`.", _scale_by("+")),
    "worker remove": Form("worker remove [N]", "Same as `scale -N`.", _scale_by("-")),
    "worker kill": Form("worker kill PID", "Stop a worker with TERM; a new one replaces it.", _kill),
    "ready": Form("ready on|off", "Set the result of the readiness probe; requests are still served.", _ready),
    "log-level": Form("log-level LEVEL", "Set the log level of all processes until the next reload.", _log_level),
    "reopen": Form("reopen", "Reopen the log files, like USR1.", _plain("reopen")),
    "upgrade": Form("upgrade", "Start a successor of the server, like USR2.", _plain("upgrade")),
    "shutdown": Form("shutdown [graceful|quick]", "Shut down the server, like TERM or INT.", _shutdown),
    "show all": Form("show all", "Same as `workers`.", _plain("workers")),
    "show workers": Form("show workers", "Same as `workers`.", _plain("workers")),
    "show config": Form("show config", "Same as `config`.", _plain("config")),
    "show stats": Form("show stats", "Same as `stats`.", _plain("stats")),
    "show listeners": Form("show listeners", "Same as `listeners`.", _plain("listeners")),
}

LS = Form("ls", "List running servers; remove sockets of servers that are gone.", _plain("ls"))
"""Needs no server: `ctl_command` handles it."""

EXPLAINED = {**FORMS, "ls": LS}

CHANGES = frozenset(
    ("reload", "scale", "cancel", "drain", "kill", "ready", "log-level", "reopen", "upgrade", "shutdown")
)
"""Commands that change the server."""

HELP = frozenset(("-h", "--help"))
