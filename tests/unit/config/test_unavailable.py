"""What this version does not have, and who is content with that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tricorn.config import config_file, program, pyproject
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import read_environment, resolve
from tricorn.config.unavailable import UNAVAILABLE, Asked, Takes, judge, refuse
from tricorn.errors import ConfigError

BY_NAME = {record.name: record for record in UNAVAILABLE}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dirty_apps", []),
        ("dirty_workers", 0),
        ("dirty_timeout", 300),
        ("dirty_workers", 1),
        ("on_dirty_starting", lambda arbiter: None),
    ],
)
def test_gunicorns_default_asks_for_nothing_nor_does_what_needs_another_setting(name: str, value: object) -> None:
    assert BY_NAME[name].asks_for_nothing(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dirty_apps", ["shop.jobs:Thumbnails"]),
    ],
)
def test_anything_else_asks_for_something(name: str, value: object) -> None:
    assert not BY_NAME[name].asks_for_nothing(value)


def test_a_switch_is_one_of_the_records_and_has_none_itself() -> None:
    for record in UNAVAILABLE:
        if record.switch:
            assert not BY_NAME[record.switch].switch


def test_what_is_asked_for_is_refused_or_left_out_with_a_warning() -> None:
    asked = [Asked("dirty_apps", "conf.py:1: no dirty apps.", refuse), Asked("dirty_apps", "--dirty-app: no.", refuse)]
    with pytest.raises(ConfigError, match=r"^conf.py:1: no dirty apps\.$"):
        judge(asked, "refuse")
    assert judge(asked, "warn") == ("conf.py:1: no dirty apps. It was ignored (unavailable = warn).",)
    assert judge([], "refuse") == ()


INERT = {
    record.name: value
    for record, value in zip(
        [record for record in UNAVAILABLE if record.inert], ("python", 2, False, True, 65536), strict=True
    )
}


@pytest.mark.parametrize("name", INERT)
def test_what_has_no_effect_is_accepted_wherever_settings_are(name: str, tmp_path: Path) -> None:
    record, value = BY_NAME[name], INERT[name]
    file = tmp_path / "conf.py"
    file.write_text(f"{name} = {value!r}\n")
    (tmp_path / "pyproject.toml").write_text(f"[tool.tricorn]\n{name} = {json.dumps(value)}\n")
    flag = [*record.flags] if record.takes is Takes.NOTHING else [*record.flags, str(value)]
    layers = [
        read_arguments([*flag, "app"]),
        read_environment({f"TRICORN_{name.upper()}": str(value)}),
        config_file.read(config_file.Location.parse(f"file:{file}"), str(tmp_path)),
        program.read({name: value}),
        *([pyproject.read(str(tmp_path))] if sys.version_info >= (3, 11) else []),
    ]
    assert [(layer.asked, layer.warnings) for layer in layers] == [((), ())] * len(layers)
    assert getattr(resolve(layers), name) == record.default, "code that was written for gunicorn reads gunicorn's"


def test_options_of_ssl_are_gunicorns() -> None:
    options = resolve([]).ssl_options
    assert options["ssl_version"] is None
    assert (options["suppress_ragged_eofs"], options["do_handshake_on_connect"]) == (True, False)
