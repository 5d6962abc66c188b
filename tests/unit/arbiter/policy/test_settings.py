"""The settings that the policy takes of a configuration, by their names."""

from __future__ import annotations

from tricorn.arbiter.policy.settings import SPARE_WORKERS, Policy
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import resolve
from tricorn.config.sizing import Sizing

from tests.unit.arbiter.policy.support import quiet


def test_each_has_the_value_of_the_setting_of_its_name() -> None:
    config = resolve([read_arguments(["-w", "3", "--timeout", "7", "--max-worker-memory", "100M", "--reload"])])
    policy = Policy.of(config)
    for name in Policy.__match_args__:
        if name != "max_workers":
            assert getattr(policy, name) == getattr(config, name), name
    assert (policy.workers, policy.timeout, policy.reload) == (3, 7, True)
    assert policy.max_workers == 3 + SPARE_WORKERS


def test_auto_has_room_for_as_many_as_any_class_may_need() -> None:
    policy = Policy.of(resolve([read_arguments(["-w", "auto"])]))
    assert policy.sizing is not None
    assert policy.max_workers == policy.sizing.most + SPARE_WORKERS


def test_a_number_is_configured_again_if_it_is_the_same_number_or_auto() -> None:
    assert quiet(workers=3).configures_as_many_as(quiet(workers=3))
    assert not quiet(workers=4).configures_as_many_as(quiet(workers=3))
    before = quiet(workers=4, sizing=Sizing(2, kind="sync"))
    assert quiet(workers=2, sizing=Sizing(2)).configures_as_many_as(before)
    assert not quiet(workers=3, sizing=Sizing(3)).configures_as_many_as(before), "there are more processors"
