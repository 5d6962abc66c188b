"""Applications that configure and start the server: programs derive from these classes and call `run()`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tricorn.compat.absent import refuse
from tricorn.config import command_line
from tricorn.config.load import Sources, load
from tricorn.config.registry import BY_NAME
from tricorn.config.resolve import Layer, Raw

from ..arbiter import Arbiter
from ..config import PROGRAM, Config


class BaseApplication:
    """A program says its settings in `load_config`, and its application in `load`."""

    cfg: Config

    def __init__(self, usage: str | None = None, prog: str | None = None) -> None:
        self.usage = usage
        self.callable: Callable[..., Any] | None = None
        self.prog = prog
        self.logger: Any = None
        self.do_load_config()

    def do_load_config(self) -> None:
        """Prints what is wrong, and exits."""
        try:
            self.load_default_config()
            self.cfg.directory = self._directory = getattr(self, "_directory", self.cfg.directory)
            self.load_config()
            self.cfg.validate()
        except Exception as error:
            _end(f"\nError: {error}")

    def load_default_config(self) -> None:
        self.cfg = Config(self.usage, prog=self.prog)

    def init(self, parser: argparse.ArgumentParser, opts: argparse.Namespace, args: Sequence[str]) -> Any:
        raise NotImplementedError

    def load(self) -> Any:
        raise NotImplementedError

    def load_config(self) -> None:
        raise NotImplementedError

    def reload(self) -> None:
        self.do_load_config()

    def wsgi(self) -> Any:
        if self.callable is None:
            self.callable = self.load()
        return self.callable

    def run(self) -> None:
        try:
            Arbiter(self).run()
        except RuntimeError as error:
            _end(f"\nError: {error}\n")


class Application(BaseApplication):
    """A program that reads the command line, the environment and a configuration file besides."""

    def chdir(self) -> None:
        os.chdir(self.cfg.chdir)
        if self.cfg.chdir not in sys.path:
            sys.path.insert(0, self.cfg.chdir)

    def load_config(self) -> None:
        """Loads all settings. A configuration file overrides what `init` returns, as in gunicorn."""
        words, argv = _apart(sys.argv[1:])
        written = {name: raw.value for name, raw in command_line.read_arguments(argv).values.items()}
        options = argparse.Namespace(**dict.fromkeys(BY_NAME, None) | written)
        given = self.init(self.cfg.parser(), options, words) or {}
        program = self.cfg.take_given() | {name.lower(): Raw(value, PROGRAM) for name, value in given.items()}
        sources = Sources(tuple(argv), dict(os.environ), self.cfg.directory)
        self.cfg.take(load(sources, Layer(program), needs_application=False))
        self.chdir()

    def load_config_from_file(self, filename: str) -> None:
        self.load_config_from_module_name_or_filename(filename)

    def load_config_from_module_name_or_filename(self, location: str) -> None:
        from tricorn.config import config_file

        where = config_file.Location.parse(location)
        for name, raw in config_file.read(where, os.getcwd()).values.items():
            self.cfg.set(name, raw.value)

    def run(self) -> None:
        if self.cfg.print_config:
            sys.stdout.write(f"{self.cfg}\n")
        if self.cfg.print_config or self.cfg.check_config:
            try:
                self.load()
            except Exception:
                sys.stderr.write("\nError while loading the application:\n\n")
                traceback.print_exc()
                sys.exit(1)
            sys.exit(0)
        super().run()


def _apart(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separates arguments that only the program understands from flags and their values."""
    namespace, others = command_line.build_parser().parse_known_args(argv)
    first = getattr(namespace, "wsgi_app", None)
    words = [first] if first is not None else []
    words += [word for word in others if not word.startswith("-")]
    flags = list(reversed(argv))
    for word in reversed(words):  # a flag's value may be the same word, and then stands before
        flags.remove(word)
    return words, flags[::-1]


def _end(text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    sys.exit(1)


__getattr__ = refuse(__name__)
