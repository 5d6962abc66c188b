"""The command line, rendered from the records."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tricorn.config import addresses, borrowed_environment
from tricorn.config.borrowed import BORROWED, Nothing, NotUnderstood, Ours, Refused, Sets
from tricorn.config.registry import BY_NAME, SETTINGS
from tricorn.config.resolve import Layer, Raw
from tricorn.config.setting import Action, Setting
from tricorn.config.unavailable import UNAVAILABLE, Asked, Takes, Unavailable
from tricorn.config.validators import Boolean, Invalid, Malformed, Preloading
from tricorn.spelling import hint
from tricorn.version import __version__

SHELLS = ("bash", "zsh", "fish")
COMPLETIONS = os.path.join(os.path.dirname(__file__), "completions")
"""The completion scripts `tricorn.SHELL`, which scripts/render_completions.py renders."""

COMMAND_LINE = "command line"
ENVIRONMENT_ARGUMENTS = ("GUNICORN_CMD_ARGS", "TRICORN_CMD_ARGS")


def read_arguments(argv: Sequence[str], source: str = COMMAND_LINE) -> Layer:
    """The layer of one list of arguments. Exits with 2 on arguments that cannot be read, as argparse does."""
    parser = build_parser(source)
    _add_borrowed(parser, {word.partition("=")[0] for word in argv})
    return _read(parser, argv)


def _read(parser: _Parser, argv: Sequence[str]) -> Layer:
    source = parser.source
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(_unrecognized(unknown, vars(namespace).get("wsgi_app")))
    given = vars(namespace)
    app = given.pop("wsgi_app", None)
    asked, flags = given.pop(ASKED, []), given.pop(FLAGS, {})
    _compose_bind(given, flags)
    values = {name: Raw(value, _origin(name, source, flags)) for name, value in given.items()}
    if app is not None:
        values["wsgi_app"] = Raw(app, source)
    return Layer(values, asked=tuple(asked))


def read_environment_arguments(environ: Mapping[str, str]) -> list[Layer]:
    """The layers of GUNICORN_CMD_ARGS and, above it, TRICORN_CMD_ARGS."""
    return [_read_variable(name, environ[name]) for name in ENVIRONMENT_ARGUMENTS if environ.get(name)]


def read_borrowed_environment(environ: Mapping[str, str]) -> Layer:
    """The layer of uvicorn's and granian's variables."""
    given = list(borrowed_environment.arguments(environ))
    values: dict[str, Raw] = {}
    asked: list[Asked] = []
    if given:
        parser = build_parser()
        _add_borrowed(parser, {word.partition("=")[0] for _, argv in given for word in argv})
        for parser.source, argv in given:
            layer = _read(parser, argv)
            values.update({name: Raw(raw.value, parser.source) for name, raw in layer.values.items()})
            asked.extend(layer.asked)
    return Layer(values, asked=tuple(asked))


def _read_variable(name: str, text: str) -> Layer:
    try:
        words = shlex.split(text)
    except ValueError as error:
        build_parser(name).error(f"{error}: {text}")
    return read_arguments(words, name)


def _compose_bind(given: dict[str, Any], flags: dict[str, str]) -> None:
    """Makes an address of `--host` and `--port`, one of which may be missing."""
    host, port = given.pop("host", None), given.pop("port", None)
    if host is None and port is None:
        return
    flags["bind"] = "--port" if host is None else "--host"
    given.setdefault("bind", []).append(addresses.join(host, port))


def build_parser(source: str = COMMAND_LINE, *, shows_rare: bool = False) -> _Parser:
    """Makes the parser of all flags. Its help shows those that people set, with `shows_rare` the others, too."""
    parser = _Parser(
        prog="tricorn",
        usage="%(prog)s [OPTIONS] [APP_MODULE]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=_HelpFormatter,
        argument_default=argparse.SUPPRESS,
        add_help=False,
    )
    parser.source = source
    # Since Python 3.14 argparse colours its help; ours is the same text everywhere.
    vars(parser)["color"] = False
    parser.add_argument("-h", action=_PrintShortHelp, nargs=0, help="Show the most common flags and exit.")
    parser.add_argument("--help", action="help", help="Show all but the rare flags and exit.")
    parser.add_argument("--help-all", action=_PrintWholeHelp, nargs=0, help="Show all flags and exit.")
    parser.add_argument(
        "-v",
        "--version",
        action="version",
        version=f"tricorn (version {__version__})",
        help="Show the version and exit.",
    )
    parser.add_argument(
        "--completions",
        action=_PrintCompletions,
        choices=SHELLS,
        metavar="SHELL",
        help=f"Print a shell completion script and exit: {', '.join(SHELLS)}.",
    )
    parser.add_argument("wsgi_app", nargs="?", metavar="APP_MODULE", help=argparse.SUPPRESS)
    groups: dict[str, Any] = {}
    for setting in SETTINGS:
        if setting.flags:
            if setting.section not in groups:
                groups[setting.section] = parser.add_argument_group(setting.section)
            shown = setting.is_common or (shows_rare and setting.part_of is None)
            _add_flag(groups[setting.section], setting, shown=shown)
    for record in UNAVAILABLE:
        if not record.flags:
            continue
        nargs = NARGS[record.takes]
        parser.add_argument(*record.flags, action=_leaving_out(record), nargs=nargs, help=argparse.SUPPRESS)
    return parser


def _add_flag(group: Any, setting: Setting[object], *, shown: bool) -> None:
    options: dict[str, Any] = {"dest": setting.name, "action": setting.action.value}
    options["help"] = _help(setting) if shown else argparse.SUPPRESS
    if setting.action in (Action.STORE, Action.APPEND):
        options["metavar"] = setting.kind.metavar
    if setting.action is Action.STORE:
        options["type"] = _reader(setting)
        if setting.bare is not None:
            options.update(nargs="?", const=setting.bare)
    if setting.meanings:
        options.update(action=_switching(setting.meanings), nargs=0)
    group.add_argument(*setting.flags, **options)


def _reader(setting: Setting[object]) -> Callable[[str], str]:
    """Lets a text through unless it is no such value at all: what a value may be is decided by `resolve`."""

    def read(text: str) -> str:
        try:
            setting.kind.parse(text)
        except Malformed as error:
            raise argparse.ArgumentTypeError(f"{error}, got {text!r}") from None
        except Invalid:
            pass  # understood; `resolve` refuses it, and knows from which layer it came
        return text

    return read


def _help(setting: Setting[object]) -> str:
    """Returns the help of a flag: its effect, its variables, its default."""
    notes = [f"env: {', '.join((setting.env, *setting.env_also))}"]
    if shown := _shown_default(setting):
        notes.append(f"default: {shown}")
    return f"{setting.help} [{'; '.join(notes)}]".replace("%", "%%")


def _shown_default(setting: Setting[object]) -> str:
    if isinstance(setting.kind, Boolean | Preloading) or setting.action is Action.UNSET:
        return ""
    default = setting.default if setting.default_shown is None else setting.default_shown
    shown = ",".join(str(part) for part in default) if isinstance(default, tuple) else default
    return "" if shown is None else str(shown)


def short_help() -> str:
    """The page of `-h`."""
    from textwrap import wrap

    settings = [BY_NAME[name] for name in OFTEN]
    width = max(len(_invocation(setting)) for setting in settings)
    rows = []
    for setting in settings:
        shown = _shown_default(setting)
        text = f"{setting.help} [{shown}]" if shown else setting.help
        first = f"  {_invocation(setting):{width}}  "
        rows += wrap(text, SHORT_WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
    usage = "usage: tricorn [OPTIONS] [APP_MODULE], as in: tricorn -w 4 -b :8000 main:app"
    return "\n".join([usage, "", *wrap(DESCRIPTION, SHORT_WIDTH), "", *rows, "", EPILOG, ALL, ""])


def _invocation(setting: Setting[object]) -> str:
    value = f" {setting.kind.metavar}" if setting.action in (Action.STORE, Action.APPEND) else ""
    return f"{', '.join(setting.flags)}{value}"


OFTEN = (
    *("bind", "workers", "worker_class", "threads", "timeout", "preload_app"),
    *("config", "factory", "reload", "accesslog", "loglevel", "check_config"),
)
"""The settings that `-h` shows."""
DESCRIPTION = "An application server for Python web applications. APP_MODULE is MODULE:ATTRIBUTE, MODULE or a file."
SHORT_WIDTH = 80
ALL = "All flags, with their variables and defaults: tricorn --help, --help-all"
EPILOG = "Commands: tricorn bench, ctl, dev-cert, doctor, exec, init, load, top, tune."


def _origin(name: str, source: str, flags: Mapping[str, str]) -> str:
    flag = flags.get(name) or next(setting.flags[-1] for setting in SETTINGS if setting.name == name)
    return flag if source == COMMAND_LINE else f"{flag} in {source}"


NARGS: Mapping[Takes, int | str | None] = {Takes.NOTHING: 0, Takes.VALUE: None, Takes.MAYBE: "?"}
ASKED, FLAGS = " asked", " flags"
"""Names in a namespace beside the settings: unsupported ones, and which of several flags set a setting."""


def _leaving_out(record: Unavailable) -> type[argparse.Action]:
    class Ask(argparse.Action):
        def __call__(self, parser: Any, namespace: Any, values: Any, _: Any = None) -> None:
            off = record.takes is not Takes.NOTHING and values is not None and record.asks_for_nothing(values)
            if not (record.switch or record.inert or off):
                place = parser.placed(f"argument {'/'.join(self.option_strings)}")
                _ask(namespace, record.asked(place, parser.refuse))

    return Ask


def _ask(namespace: object, asked: Asked) -> None:
    vars(namespace).setdefault(ASKED, []).append(asked)


def _add_borrowed(parser: argparse.ArgumentParser, words: set[str]) -> None:
    """Adds the flags of other servers that are among the words. Help shows none of them."""
    for row in BORROWED:
        if not isinstance(row.becomes, Ours):
            nargs = NARGS[row.becomes.takes]
            for flag in words.intersection(row.flags.split()):
                parser.add_argument(
                    flag, action=_borrowing(row.becomes), dest=f" {flag}", nargs=nargs, help=argparse.SUPPRESS
                )


def _borrowing(becomes: Sets | Nothing | Refused) -> type[argparse.Action]:
    class Borrow(_Borrow):
        def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
            if isinstance(becomes, Refused):
                sentence = parser.placed(f"argument {option}: {becomes.sentence}")
                _ask(namespace, Asked(option, sentence, parser.refuse))
            elif isinstance(becomes, Sets):
                try:
                    for name, raw in becomes.values(values).items():
                        _set(namespace, name, raw, option)
                except (NotUnderstood, Malformed) as error:
                    parser.error(f"argument {option}: {error}")

    return Borrow


class _Borrow(argparse.Action):
    """Action of other servers' flags: sets the counterpart here."""


def _switching(meanings: Mapping[str, object]) -> type[argparse.Action]:
    """The action of switches that set a setting to different values."""

    class Switch(argparse.Action):
        def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
            _set(namespace, self.dest, meanings.get(option, True), option)

    return Switch


def _set(namespace: argparse.Namespace, name: str, raw: object, flag: str) -> None:
    setting = BY_NAME.get(name)  # host and port are halves of one
    if setting is not None:
        try:
            setting.kind.parse(raw)
        except Malformed:
            raise
        except Invalid:
            pass  # `resolve` refuses it
    given = vars(namespace)
    given.setdefault(FLAGS, {})[name] = flag
    if setting is not None and setting.action is Action.APPEND:
        given.setdefault(name, []).append(raw)
    else:
        given[name] = raw


def _unrecognized(arguments: Sequence[str], app: str | None) -> str:
    """argparse's words, and the flag that was probably meant."""
    flags = [word.partition("=")[0] for word in arguments if word.startswith("-")]
    if not flags and app in COMMANDS_OF_OTHERS:
        return f"there is no command {app!r}: `tricorn {arguments[0]}` serves"
    if not flags and app == "-":
        return "'-' is not an application. To log to stdout use --access-logfile -"
    if not flags:
        return f"unrecognized arguments: {' '.join(arguments)}; expected one application, and flags"
    # What follows an unknown flag is not told: its value may have been taken for the application.
    # What is refused is no advice.
    borrowed = [row.flags.split() for row in BORROWED if isinstance(row.becomes, Sets)]
    known = [flag for some in (*(setting.flags for setting in SETTINGS), *borrowed) for flag in some]
    long = [flag for flag in known if flag.startswith("--")]
    meant = hint(flags[0], long, "{}", otherwise="")
    return f"unrecognized arguments: {' '.join(flags)}{_of_uwsgi(flags, meant) or meant or '; see tricorn --help'}"


def _of_uwsgi(flags: Sequence[str], meant: str) -> str:
    """Returns what these are here if they are uWSGI's. One that looks like a flag of ours may be that, misspelled."""
    from tricorn.config import uwsgi

    ours = {setting.name: setting.flags[-1] for setting in SETTINGS if setting.flags}
    found = [(flag, uwsgi.find(flag, by_beginning=not meant)) for flag in flags]
    told = [f"{flag} of uWSGI: {uwsgi.counterpart(row, ours)}" for flag, row in found if row is not None]
    return f"\n{chr(10).join(told)}\nsee {uwsgi.PAGE}" if told else ""


COMMANDS_OF_OTHERS = ("run", "serve", "start", "runserver")
"""Commands that start other servers."""


class _PrintShortHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(short_help())
        parser.exit()


class _PrintWholeHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        build_parser(shows_rare=True).print_help()
        parser.exit()


class _PrintCompletions(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: Any, __: object = None) -> NoReturn:
        with open(os.path.join(COMPLETIONS, f"tricorn.{shell}"), encoding="utf-8") as script:
            sys.stdout.write(script.read())
        parser.exit()


class _Parser(argparse.ArgumentParser):
    source = COMMAND_LINE

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """A prefix that is enough for gunicorn is enough here, although tricorn has flags of its own."""
        found: list[Any] = super()._get_option_tuples(option_string)
        ours = [match for match in found if not isinstance(match[0], _Borrow)]
        gunicorns = [match for match in ours if match[0].dest not in _OWN]
        return gunicorns or ours

    def error(self, message: str) -> NoReturn:
        self.refuse(self.placed(message))

    def placed(self, message: str) -> str:
        """The message, with the variable in which the arguments were."""
        return message if self.source == COMMAND_LINE else f"in the environment variable {self.source}: {message}"

    def refuse(self, message: str) -> NoReturn:
        super().error(message)


_OWN = frozenset(("completions", "help_all", *(setting.name for setting in SETTINGS if setting.own)))


class _HelpFormatter(argparse.HelpFormatter):
    """Every Python renders the same page: `-b, --bind ADDRESS`, at a width of 100."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        metavar = action.metavar if isinstance(action.metavar, str) and action.nargs != 0 else ""
        return f"{', '.join(action.option_strings)} {metavar}".rstrip()
