"""Settings that are given as keyword arguments: those of `tricorn.run`, and uvicorn's `CONFIG_KWARGS`.

A name is a setting's, or a flag's without its dashes: `keepalive`, `keep_alive` and uvicorn's `timeout_keep_alive` are
the same. A switch of another server's is a flag without a value: `access_log=False` is `--no-access-log`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricorn.config import addresses
from tricorn.config.borrowed import BORROWED, Nothing, NotUnderstood, Ours, Refused, Sets, word
from tricorn.config.lookups import Whole
from tricorn.config.registry import BY_NAME, SETTINGS
from tricorn.config.resolve import Layer, Raw
from tricorn.config.setting import Action
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME, Asked, Takes, refuse
from tricorn.errors import ConfigError
from tricorn.spelling import hint

ORIGIN = "tricorn.run()"


def read(given: Mapping[str, object], origin: str = ORIGIN) -> Layer:
    """The layer of what `origin` gives. Raises TypeError for a name that is none, ConfigError for a value."""
    values: dict[str, object] = {}
    asked: list[Asked] = []
    for name, value in given.items():
        setting = BY_NAME.get(name) or _BY_FLAG.get(name)
        record = UNAVAILABLE_BY_NAME.get(name)
        if setting is not None:
            values.update(_of_setting(setting.name, value))
        elif record is not None:
            if not record.asks_for_nothing(value):
                asked.append(record.asked(origin))
        elif name in _BORROWED:
            _borrow(name, value, origin, values, asked)
        else:
            served = [each for each, becomes in _BORROWED.items() if isinstance(becomes, Sets)]
            known = (*BY_NAME, *_BY_FLAG, *served)
            raise TypeError(f"{origin} has no setting {name!r}{hint(name, known, otherwise='')}")
    host, port = values.pop("host", None), values.pop("port", None)
    if host is not None or port is not None:
        values["bind"] = addresses.join(_text(host), _text(port))
    return Layer({name: Raw(value, origin) for name, value in values.items()}, asked=tuple(asked))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _of_setting(name: str, value: object) -> Mapping[str, object]:
    if name == "logconfig" and isinstance(value, Mapping):
        return {"logconfig_dict": Whole(value)}  # uvicorn's `log_config` may be either
    return {name: value}


def _borrow(name: str, value: Any, origin: str, values: dict[str, object], asked: list[Asked]) -> None:
    if value is None:
        return  # uvicorn's word for what was not given
    becomes = _BORROWED[name]
    if becomes.takes is Takes.NOTHING and not value:
        negated = _BORROWED.get(f"no_{name}")
        if negated is None:
            return
        becomes = negated
    if isinstance(becomes, Refused):
        asked.append(Asked(name, f"{origin}: {name}: {becomes.sentence}", refuse))
    elif isinstance(becomes, Sets):
        try:
            values.update(becomes.values(str(value)))
        except NotUnderstood as error:
            raise ConfigError(f"Invalid value for {name} (from {origin}): {error}.") from None


_BY_FLAG = {
    word(flag): setting
    for setting in SETTINGS
    if setting.action is not Action.UNSET
    for flag in setting.flags
    if flag.startswith("--") and flag not in setting.meanings
}
_BORROWED: Mapping[str, Sets | Nothing | Refused] = {
    word(flag): row.becomes for row in BORROWED if not isinstance(row.becomes, Ours) for flag in row.flags.split()
}
