"""Giving up root: in children, since there is no way back."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from tricorn.errors import ConfigError
from tricorn.workers import privileges

from tests.harness.child import in_child

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
UNPRIVILEGED = 65534
NAMELESS = 54321


def ids() -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
    return os.getresuid(), os.getresgid(), sorted(os.getgroups())


def complaint(function: Callable[[], object]) -> str:
    try:
        function()
    except ConfigError as error:
        return str(error)
    return ""


def drop(uid: int, gid: int, groups: list[int] | None = None, *, initgroups: bool = False) -> object:
    def child() -> object:
        if groups is not None:
            os.setgroups(groups)
        privileges.check(uid, gid, initgroups=initgroups)
        privileges.drop(uid, gid, initgroups=initgroups)
        return ids()

    return in_child(child)


def test_who_is_already_that_user_needs_no_right_to_become_it() -> None:
    before = ids()
    privileges.check(os.geteuid(), os.getegid(), initgroups=True)
    privileges.drop(os.geteuid(), os.getegid(), initgroups=True)
    assert ids() == before


@as_root
class TestRoot:
    def test_user_and_group_are_given_up_for_good(self) -> None:
        def child() -> tuple[object, bool]:
            privileges.drop(UNPRIVILEGED, UNPRIVILEGED, initgroups=False)
            try:
                os.setuid(0)
            except PermissionError:
                return ids(), True
            return ids(), False

        assert in_child(child) == (((UNPRIVILEGED,) * 3, (UNPRIVILEGED,) * 3, []), True)

    def test_numbers_need_no_name(self) -> None:
        assert drop(NAMELESS, NAMELESS, []) == ((NAMELESS,) * 3, (NAMELESS,) * 3, [])

    def test_a_group_alone(self) -> None:
        assert drop(0, UNPRIVILEGED, [0, 7]) == ((0,) * 3, (UNPRIVILEGED,) * 3, [0, 7])

    def test_groups_that_were_given_stay_but_roots_own(self) -> None:
        assert drop(NAMELESS, NAMELESS, [0, 7, 1234]) == ((NAMELESS,) * 3, (NAMELESS,) * 3, [7, 1234])

    def test_initgroups_takes_the_users(self) -> None:
        name = pwd.getpwuid(UNPRIVILEGED).pw_name
        groups = sorted({*os.getgrouplist(name, UNPRIVILEGED), UNPRIVILEGED})
        ids = (UNPRIVILEGED,) * 3
        assert drop(UNPRIVILEGED, UNPRIVILEGED, [0, 7], initgroups=True) == (ids, ids, groups)

    def test_initgroups_needs_a_name(self) -> None:
        for function in privileges.check, privileges.drop:
            text = in_child(lambda f=function: complaint(lambda: f(NAMELESS, NAMELESS, initgroups=True)))  # type: ignore[misc]
            assert text == (
                f"initgroups requires a user with a name, but uid {NAMELESS} has none. Add the user, or remove "
                "initgroups."
            )

    @pytest.mark.parametrize("function", [privileges.check, privileges.drop])
    def test_somebody_else_cannot_become_a_third(self, function: Callable[..., None]) -> None:
        def child() -> tuple[str, str]:
            os.setgid(UNPRIVILEGED)
            os.setuid(UNPRIVILEGED)
            return (
                complaint(lambda: function(NAMELESS, UNPRIVILEGED, initgroups=False)),
                complaint(lambda: function(UNPRIVILEGED, NAMELESS, initgroups=False)),
            )

        user, group = in_child(child)
        assert user == (
            f"The workers' user cannot be {NAMELESS}: only root can run workers as another user than its own; "
            "leave --user out, or start as root."
        )
        assert group.startswith(f"The workers' group cannot be {NAMELESS}: only root can run workers as another group")

    def test_chown_of_log_files(self, tmp_path: Path) -> None:
        file = tmp_path / "a.sock"
        file.touch()
        privileges.chown(str(file), NAMELESS, UNPRIVILEGED)
        assert (file.stat().st_uid, file.stat().st_gid) == (NAMELESS, UNPRIVILEGED)


def test_chown_to_whom_it_belongs_needs_no_right(tmp_path: Path) -> None:
    privileges.chown(str(tmp_path), tmp_path.stat().st_uid, tmp_path.stat().st_gid)


def test_chown_says_why_not(tmp_path: Path) -> None:
    path = str(tmp_path / "missing")
    assert complaint(lambda: privileges.chown(path, 1, 2)) == (
        f"Cannot change the owner of {path!r} to uid 1, gid 2: No such file or directory."
    )


@as_root
def test_a_hook_that_has_given_up_root_is_left_alone() -> None:
    def child() -> object:
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
        privileges.drop(0, 0, initgroups=False)
        return os.geteuid(), os.getegid()

    assert in_child(child) == (UNPRIVILEGED, UNPRIVILEGED)
