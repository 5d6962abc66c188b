"""The configuration as code that was written for gunicorn reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tricorn.record import Record


class SettingView(Record):
    """gunicorn's Setting, as far as it is read: `cfg.settings["backlog"].value`."""

    name: str
    value: Any

    def get(self) -> Any:
        return self.value


class SettingViews(Mapping[str, SettingView]):
    """`cfg.settings`. Hooks ask for one of it for every request, so that none is made before it is asked for."""

    def __init__(self, names: Collection[str], value_of: Callable[[str], object]) -> None:
        self._names = names
        self._value_of = value_of

    def __getitem__(self, name: str) -> SettingView:
        if name not in self._names:
            raise KeyError(name)
        return SettingView(name, as_gunicorn(name, self._value_of(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_gunicorn(name: str, value: object) -> Any:
    """`value` of the setting `name` with the type gunicorn gives it."""
    convert = _CONVERSIONS.get(name)
    if convert is not None:
        return convert(value)
    return list(value) if isinstance(value, tuple) else value


def _comma_list(value: Any) -> list[str]:
    return [part for part in value.split(",") if part]


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "raw_paste_global_conf": lambda pairs: [f"{key}={value}" for key, value in pairs],
    "raw_env": lambda pairs: [f"{key}={value}" for key, value in pairs],
    "pythonpath": lambda paths: ",".join(paths) or None,
    "forwarded_allow_ips": _comma_list,
    "proxy_allow_ips": _comma_list,
    "uwsgi_allow_ips": _comma_list,
    "secure_scheme_headers": dict,
    "logconfig_dict": dict,
}
