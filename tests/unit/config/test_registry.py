"""What is true of every record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.config.addresses import parse
from tricorn.config.config import Config
from tricorn.config.lookups import Group, User
from tricorn.config.registry import BY_NAME, SETTINGS, Settings
from tricorn.config.setting import Setting
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.config.validators import Bytes, Invalid, Refused

from tests.harness import with_each


def test_names_are_unique() -> None:
    names = [*(setting.name for setting in SETTINGS), *(record.name for record in UNAVAILABLE)]
    assert len(names) == len(set(names))


def test_flags_are_unique() -> None:
    records = [*(setting.flags for setting in SETTINGS), *(record.flags for record in UNAVAILABLE)]
    flags = [flag for some in records for flag in some]
    assert len(flags) == len(set(flags))


def test_each_has_the_name_of_its_attribute_and_the_heading_of_its_section() -> None:
    for section in Settings.__bases__:
        found = {name: value for name, value in vars(section).items() if isinstance(value, Setting)}
        assert found, section
        for name, setting in found.items():
            assert getattr(Config, name) is setting is BY_NAME[name]
            assert (setting.name, setting.section) == (name, section.SECTION)  # type: ignore[attr-defined]


@with_each("setting", BY_NAME)
def test_the_default_is_a_value_of_its_kind(setting: Setting[object]) -> None:
    assert setting.kind.parse(_as_written(setting.default)) == setting.default


@with_each("setting", BY_NAME)
def test_help_is_one_sentence(setting: Setting[object]) -> None:
    assert setting.help[0].isupper()
    assert setting.help.endswith(".")


def _as_written(default: object) -> object:
    return dict(default) if isinstance(default, Mapping) else default


HUGE = (1 << 31, 1 << 32, (1 << 32) - 1, 1 << 63, 1 << 64, 10**30)
LIMITS = {Bytes: 1 << 40, User: (1 << 32) - 2, Group: (1 << 32) - 2}
"""What kinds may hold that are no C int."""


@with_each("setting", BY_NAME)
def test_no_number_is_larger_than_what_the_kernel_takes(setting: Setting[object]) -> None:
    for number in HUGE:
        for raw in (number, str(number)):
            try:
                value = setting.kind.parse(raw)
            except Invalid:
                continue
            assert not isinstance(value, int) or value <= LIMITS[type(setting.kind)], (setting.name, raw)


@with_each("text", ["fd://" + "9" * 5000, "fd://\N{SUPERSCRIPT TWO}", "fd://2147483648", "127.0.0.1:" + "9" * 5000])
def test_no_address_has_a_number_that_is_none(text: str) -> None:
    with pytest.raises(Refused):
        parse(text)
