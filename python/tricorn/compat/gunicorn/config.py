"""The configuration that programs fill; and by its name the one that hooks get."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from abc import ABCMeta
from collections.abc import Iterable
from sys import platform as PLATFORM
from typing import Any

from tricorn.compat.absent import refuse
from tricorn.config import command_line, config, foreign
from tricorn.config.load import Loaded, working_directory
from tricorn.config.registry import BY_NAME
from tricorn.config.resolve import Layer, Raw, read_environment, read_platform, resolve
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME, Asked, judge
from tricorn.config.validators import Invalid

__all__ = ["PLATFORM", "Config", "Setting", "get_default_config_file", "make_settings"]

PROGRAM = "the program"
"""The origin of what a program has set."""


class Setting:
    """`cfg.settings["bind"]`: its value in gunicorn's types, and what is known of it."""

    def __init__(self, config: Config, name: str) -> None:
        record = BY_NAME.get(name)
        self._config = config
        self._refused = None if record is not None else UNAVAILABLE_BY_NAME[name]
        known = record or UNAVAILABLE_BY_NAME[name]
        self.name = name
        self.section = record.section if record is not None else ""
        self.short = self.desc = record.help if record is not None else ""
        self.cli = list(known.flags)
        self.default = foreign.as_gunicorn(name, known.default)

    @property
    def value(self) -> Any:
        return self.default if self._refused is not None else self._config.value(self.name)

    def get(self) -> Any:
        return self.value

    def set(self, value: Any) -> None:
        """Raises ValueError if it is no such value."""
        if self._refused is None:
            self._config.give(self.name, value)
        elif not self._refused.asks_for_nothing(value):
            self._config.ask(self._refused.asked(PROGRAM))


def make_settings(ignore: Iterable[str] = ()) -> dict[str, Setting]:
    return {name: setting for name, setting in Config().settings.items() if name not in (ignore or ())}


class Config(metaclass=ABCMeta):  # noqa: B024  # instances are others, too
    """Settings that a program makes by `set`, over those that `Application` has read from flags and files."""

    def __init__(self, usage: str | None = None, prog: str | None = None) -> None:
        names = dict.fromkeys((*BY_NAME, *UNAVAILABLE_BY_NAME))
        self.settings = {name: Setting(self, name) for name in names}
        self.usage = usage
        self.prog = prog or os.path.basename(sys.argv[0])
        self.env_orig = os.environ.copy()
        self._read: Loaded | None = None
        self._given: dict[str, Raw] = {}
        self._asked: dict[str, Asked] = {}
        self._known: config.Config | None = None
        self.directory = working_directory()
        """Base of relative paths: the directory in which the program was started, also at a reload."""

    def set(self, name: str, value: Any) -> None:
        if name not in self.settings:
            raise AttributeError(f"No configuration setting for: {name}")
        self.settings[name].set(value)

    def give(self, name: str, value: Any) -> None:
        """The value of a setting that there is."""
        try:
            BY_NAME[name].kind.parse(value)
        except Invalid as error:
            if value is not None:
                raise ValueError(f"Invalid value for {name}: {value!r} ({error})") from None
            self._given.pop(name, None)
        else:
            self._given[name] = Raw(value, PROGRAM)
        self._known = None

    def ask(self, asked: Asked) -> None:
        """Raises the error for a name that is missing here."""
        self._asked[asked.name] = asked

    def take_given(self) -> dict[str, Raw]:
        """Takes away and returns the values set so far. Files and flags override them."""
        given, self._given, self._known = self._given, {}, None
        return given

    def take(self, read: Loaded) -> None:
        """From now on what was read is below what is set."""
        self._read, self._known = read, None

    def loaded(self) -> Loaded:
        """Returns the configuration for the server."""
        layers = (*self._layers(),)
        warnings = self._read.warnings if self._read is not None else tuple(w for each in layers for w in each.warnings)
        resolved = resolve(layers, self.directory)
        left_out = judge(self._asked.values(), resolved.unavailable)
        if self._read is None:
            return Loaded(resolved, (*warnings, *left_out), layers=layers)
        return Loaded(resolved, (*warnings, *left_out), self._read.file, layers, project=self._read.project)

    def _layers(self) -> Iterable[Layer]:
        given = Layer(self._given)
        if self._read is not None:
            return (*self._read.layers, given)
        return read_platform(self.env_orig), given, read_environment(self.env_orig)

    def value(self, name: str) -> Any:
        return foreign.as_gunicorn(name, self._now().value(name))

    def _now(self) -> config.Config:
        if self._known is None:
            self._known = resolve(self._layers(), self.directory)
        return self._known

    def validate(self) -> None:
        """Refuses what does not go together; values were checked when they were set."""
        judge(self._asked.values(), self._now().unavailable)

    def parser(self) -> argparse.ArgumentParser:
        parser = command_line.build_parser()
        parser.prog = self.prog
        parser.usage = self.usage
        return parser

    def get_cmd_args_from_env(self) -> list[str]:
        return shlex.split(self.env_orig.get("GUNICORN_CMD_ARGS", ""))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "settings":
            raise AttributeError(name)
        return getattr(self._now(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "settings" and name in self.__dict__.get("settings", ()):
            raise AttributeError("Invalid access!")
        super().__setattr__(name, value)

    def __str__(self) -> str:
        width = max(map(len, self.settings))
        return "\n".join(f"{name:{width}} = {self.settings[name].value}" for name in sorted(self.settings))


Config.register(config.Config)


def get_default_config_file() -> str | None:
    path = os.path.join(os.path.abspath(os.getcwd()), "gunicorn.conf.py")
    return path if os.path.exists(path) else None


__getattr__ = refuse(__name__)
