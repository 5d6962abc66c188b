"""Records: frozen dataclasses, but for how they are made."""

from __future__ import annotations

from typing import ClassVar

import pytest
from tricorn.record import Record, replace


class Point(Record):
    """With a constant of the class that is no field."""

    x: int
    y: int = 2
    unit: ClassVar[str] = "mm"

    @property
    def sum(self) -> int:
        return self.x + self.y


class Named(Point):
    name: str = "P"


def test_fields_by_place_and_by_name() -> None:
    assert (Point(1).x, Point(1).y, Point(1).sum) == (1, 2, 3)
    assert Point(1, 3) == Point(y=3, x=1)
    assert Named(1, 2, "Q").name == "Q"
    assert repr(Named(1)) == "Named(x=1, y=2, name='P')"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_every_field_once(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_equal_ones_are_one_in_a_set() -> None:
    assert len({Point(1), Point(1), Point(2), Named(1)}) == 3
    assert Point(1) != Named(1)
    assert Point(1) != (1, 2)


def test_records_are_immutable() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x


def test_records_match_by_position() -> None:
    match Named(1, 5, "Q"):
        case Point(x, y):
            assert (x, y) == (1, 5)
        case _:
            pytest.fail("no match")


def test_record_with_other_values() -> None:
    changed = replace(Named(1, 2, "Q"), y=5)
    assert (changed, type(changed)) == (Named(1, 5, "Q"), Named)
    with pytest.raises(TypeError):
        replace(Point(1), z=5)
