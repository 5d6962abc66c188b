"""What is true of every record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.config.addresses import parse
from tricorn.config.command_line import read_arguments
from tricorn.config.config import Config
from tricorn.config.lookups import Group, User
from tricorn.config.registry import BY_NAME, SETTINGS, Settings
from tricorn.config.resolve import resolve
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


PARTS = {setting.name: setting for setting in SETTINGS if setting.part_of is not None}


@with_each("setting", PARTS)
def test_a_part_of_a_default_is_the_default(setting: Setting[object]) -> None:
    assert setting.part_of is not None
    whole = BY_NAME[setting.part_of.whole]
    assert whole.part_of is None
    assert setting.part_of.derive(whole.default) == setting.default
    assert not setting.rare, "a part is in no help at all"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--memory-budget 7M", {"head_buffer_total": 1 << 20, "tls_pending_handshakes": 16}),
        ("--memory-budget 14M --body-buffer-total 1M", {"head_buffer_total": 2 << 20, "body_buffer_total": 1 << 20}),
        ("--disk-budget 10G", {"body_disk_total": 8 << 30, "response_disk_size": 256 << 20}),
        ("--doctor-level quiet", {"doctor_threshold": 1.0, "profile_after": 0.0, "doctor_deep": False}),
        ("--doctor-level thorough --profile-after 0", {"profile_after": 0, "doctor_deep": True}),
        ("--trusted-proxies 10.0.0.1", {"forwarded_allow_ips": "10.0.0.1", "proxy_allow_ips": "10.0.0.1"}),
        ("--trusted-proxies * --proxy-allow-from ::1", {"forwarded_allow_ips": "*", "proxy_allow_ips": "::1"}),
        ("--leniency casefold_http_method", {"casefold_http_method": True, "strip_header_spaces": False}),
        ("--drain-delay 9 --doctor off", {"drain_quiet": 3, "cures": ()}),
    ],
)  # fmt: skip
def test_a_part_that_is_not_given_follows_its_whole(given: str, expected: Mapping[str, object]) -> None:
    config = resolve([read_arguments([*given.split(), "app"])])
    assert {name: config.value(name) for name in expected} == expected


def test_a_part_says_from_which_setting_it_has_its_value() -> None:
    config = resolve([read_arguments(["--memory-budget", "7M", "--body-buffer-size", "9", "--doctor", "off", "app"])])
    origins = {
        name: config.origin(name) for name in ("head_buffer_total", "body_buffer_size", "cures", "body_disk_total")
    }
    assert origins == {
        "head_buffer_total": "--memory-budget",
        "body_buffer_size": "--body-buffer-size",
        "cures": "default",
        "body_disk_total": "default",
    }


@pytest.mark.parametrize(
    ("weaker", "stronger", "expected"),
    [
        ("--forwarded-allow-ips *", "--trusted-proxies 10.0.0.1", {"forwarded_allow_ips": "10.0.0.1"}),
        ("--trusted-proxies 10.0.0.1", "--forwarded-allow-ips *", {"forwarded_allow_ips": "*"}),
        ("--body-buffer-total 1M", "--memory-budget 14M", {"body_buffer_total": 4 << 20}),
        ("--cure pyodbc --drain-quiet 7", "--doctor heal --drain-delay 9", {"cures": ("pyodbc",), "drain_quiet": 7}),
    ],
)
def test_the_stronger_source_has_the_last_word(weaker: str, stronger: str, expected: Mapping[str, object]) -> None:
    config = resolve([read_arguments([*weaker.split(), "app"]), read_arguments([*stronger.split(), "app"])])
    assert {name: config.value(name) for name in expected} == expected


def test_most_settings_are_seldom_set() -> None:
    wholes = [setting for setting in SETTINGS if setting.part_of is None]
    assert len(wholes) <= 193
    assert len([setting for setting in wholes if setting.is_common]) <= 110
