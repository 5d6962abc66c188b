"""Keys of session tickets: which there are when."""

from __future__ import annotations

from tricorn.tls.tickets import SIZE, Keys, Tickets

LIFETIME = 100


def test_the_next_becomes_the_current_and_that_the_previous_one() -> None:
    first = Keys.fresh(1000)
    assert len({first.current, first.next, first.previous}) == 3
    assert {len(key) for key in first.in_order} == {SIZE}
    assert first.at(1049, LIFETIME) is first
    second = first.at(1050, LIFETIME)
    assert (second.current, second.previous, second.since) == (first.next, first.current, 1050)
    assert second.next not in (*first.in_order, *second.in_order[:2])


def test_what_was_sealed_is_opened_for_half_of_the_lifetime_at_least() -> None:
    first = Keys.fresh(0)
    assert first.in_order[0] == first.current
    assert first.current in first.at(99, LIFETIME).in_order  # sealed at 49
    assert first.current not in first.at(100, LIFETIME).in_order


def test_a_machine_that_slept_has_new_ones() -> None:
    first = Keys.fresh(0)
    assert first.at(120, LIFETIME).previous == first.next
    assert not set(first.at(1_000_000, LIFETIME).in_order) & set(first.in_order)


def test_a_successor_has_the_same_and_changes_them_at_the_same_time() -> None:
    tickets = Tickets()
    assert tickets.as_bytes() == b""
    keys = tickets.at(10.5, LIFETIME)
    heir = Tickets.from_bytes(tickets.as_bytes())
    assert heir.at(11, LIFETIME) == keys
    assert heir.at(61, LIFETIME).current == tickets.at(61, LIFETIME).current == keys.next


def test_what_a_predecessor_did_not_write_is_none() -> None:
    assert Tickets.from_bytes(b"").as_bytes() == b""
    assert Tickets.from_bytes(b"x" * 40).as_bytes() == b""
