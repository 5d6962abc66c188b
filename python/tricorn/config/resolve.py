"""From layers to a configuration: each setting takes its value from the strongest layer that has one.

    default < environment < config file < GUNICORN_CMD_ARGS < TRICORN_CMD_ARGS < command line

Low and high are apart: a layer is raw values as they were written, and making one touches nothing; `resolve`
turns what won into values, once, and each keeps its origin so that a complaint can name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tricorn.config.config import Config, Resolved
from tricorn.config.registry import BY_NAME, SETTINGS
from tricorn.config.setting import Setting
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.config.validators import Invalid
from tricorn.errors import ConfigError, nearest


@dataclass(frozen=True, slots=True)
class Raw:
    """A value as it was written, and where."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says: raw values by the name of the setting."""

    values: Mapping[str, Raw]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    values: dict[str, Raw] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def resolve(layers: Iterable[Layer]) -> Config:
    """The configuration that `layers`, weakest first, amount to. Raises ConfigError."""
    written: dict[str, Raw] = {}
    for layer in layers:
        written.update(layer.values)
    return Config({setting.name: _resolve_one(setting, written.get(setting.name)) for setting in SETTINGS})


def read_environment(environ: Mapping[str, str]) -> Layer:
    """The layer of TRICORN_<NAME>, and below it of the variables platforms set (PORT, WEB_CONCURRENCY …)."""
    reading = _Reading()
    for setting in SETTINGS:
        for variable in (*setting.env_also, setting.env):
            text = environ.get(variable)
            if text is None:
                continue
            if not text.strip():
                # `WEB_CONCURRENCY=` is how compose files and dashboards write "not set".
                reading.warnings.append(f"The environment variable {variable} is empty and was ignored.")
                continue
            value = f"0.0.0.0:{text.strip()}" if variable == "PORT" else text
            reading.values[setting.name] = Raw(value, variable)
    reading.warnings.extend(_strangers(environ))
    return Layer(reading.values, tuple(reading.warnings))


def _resolve_one(setting: Setting[object], raw: Raw | None) -> Resolved:
    if raw is None:
        return Resolved(setting.default, "default")
    try:
        return Resolved(setting.kind.parse(raw.value), raw.origin)
    except Invalid as error:
        shown = raw.value if isinstance(raw.value, str) else repr(raw.value)
        end = "" if str(error).endswith("?") else "."
        where = f"Invalid value for {setting.name}: {shown} (from {raw.origin})"
        raise ConfigError(f"{where}: {error}{end}") from None


def _strangers(environ: Mapping[str, str]) -> Iterable[str]:
    """Variables that look like ours and are not.

    Only a likely misspelling is worth a warning: Kubernetes injects TRICORN_SERVICE_HOST and the like into
    every pod beside a service of that name.
    """
    known = {setting.env for setting in SETTINGS}
    unavailable = {f"TRICORN_{record.name.upper()}": record for record in UNAVAILABLE}
    for variable in sorted(environ):
        if not variable.startswith("TRICORN_") or variable in known or variable == "TRICORN_CMD_ARGS":
            continue
        if variable in unavailable:
            raise ConfigError(f"{variable}: {unavailable[variable].sentence}")
        meant = nearest(variable.removeprefix("TRICORN_").lower(), tuple(BY_NAME))
        if meant is not None:
            yield f"The environment variable {variable} is not known; did you mean {BY_NAME[meant].env}?"
