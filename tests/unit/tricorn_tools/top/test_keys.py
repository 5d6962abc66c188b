"""What a key means: nothing is changed that was not asked first, and nothing at all in read-only mode."""

from __future__ import annotations

import pytest
from tricorn.record import replace
from tricorn_tools.top import keys
from tricorn_tools.top.keys import Ask, Desk, Mark, Quit, Rows, press
from tricorn_tools.top.look import Request, Worker
from tricorn_tools.top.table import Running

from tests.unit.tricorn_tools.top.made import entry, page, route

REQUEST = Request(5, 77, 3.2, "GET /slow")
WORKERS = [Worker(entry(number), page(), None) for number in (1, 2)]
ROWS = Rows(WORKERS, [Running(WORKERS[1], REQUEST)])
AT_WORKER, AT_REQUEST = Desk(mark=Mark(2)), Desk(mark=Mark(2, 5, 77))

ACTIONS = [
    (AT_WORKER, "R", "reload", {}),
    (AT_WORKER, "+", "scale", {"workers": "+1"}),
    (AT_WORKER, "-", "scale", {"workers": "-1"}),
    (AT_WORKER, "d", "drain", {"slot": 2}),
    (AT_REQUEST, "d", "drain", {"slot": 2}),
    (AT_REQUEST, "k", "cancel", {"slot": 2, "place": 5, "start": 77}),
]


@pytest.mark.parametrize(("desk", "key", "word", "arguments"), ACTIONS)
def test_what_changes_the_server_is_asked_first(desk: Desk, key: str, word: str, arguments: dict[str, object]) -> None:
    asking, action = press(desk, key, ROWS)
    assert action is None
    assert asking.question is not None
    assert asking.question.question.endswith(("?", "."))
    answered, action = press(asking, "y", ROWS)
    assert isinstance(action, Ask)
    assert (action.word, dict(action.arguments), answered.question) == (word, arguments, None)
    for other in ("n", "enter", "q", key, "escape"):
        answered, action = press(asking, other, ROWS)
        assert (action, answered.question, answered.message) == (None, None, "not done"), other


@pytest.mark.parametrize(("desk", "key", "word", "arguments"), ACTIONS)
def test_in_read_only_mode_nothing_is_even_asked(desk: Desk, key: str, word: str, arguments: dict[str, object]) -> None:
    refused, action = press(replace(desk, is_read_only=True), key, ROWS)
    assert (refused.question, action, refused.message) == (None, None, keys.READ_ONLY)


def test_stacks_are_looked_at_without_a_question_also_in_read_only_mode() -> None:
    for desk in (AT_WORKER, AT_REQUEST):
        _, action = press(replace(desk, is_read_only=True), "enter", ROWS)
        assert isinstance(action, Ask)
        assert (action.word, dict(action.arguments), action.question) == ("stacks", {"slot": 2}, "")


def test_what_is_not_chosen_is_not_acted_on() -> None:
    gone = Mark(9)
    for mark in (None, gone, Mark(2, 5, 78)):
        for key in ("k",):
            desk, action = press(Desk(mark=mark), key, ROWS)
            assert (desk.question, action, desk.is_bad) == (None, None, True), mark
    for mark in (None, gone):
        for key in ("d", "enter"):
            desk, action = press(Desk(mark=mark), key, ROWS)
            assert (desk.question, action, desk.is_bad) == (None, None, True), (mark, key)


def test_arrows_go_through_workers_and_requests() -> None:
    desk, seen = Desk(), []
    for key in ("down", "down", "down", "down", "up", "page up"):
        desk, _ = press(desk, key, ROWS)
        seen.append(desk.mark)
    request = Mark(2, 5, 77)
    assert seen == [Mark(1), Mark(2), request, request, Mark(2), Mark(1)]
    assert press(Desk(), "down", Rows((), ()))[0].mark is None


def test_a_worker_that_is_gone_is_no_longer_chosen() -> None:
    desk, _ = press(Desk(mark=Mark(7)), "down", ROWS)
    assert desk.mark == Mark(1)


def test_sorts_and_views_take_turns() -> None:
    desk, seen = Desk(), []
    for _ in range(6):
        desk, _ = press(desk, "s", ROWS)
        seen.append(desk.sort)
    assert seen == ["busy", "req/s", "p99", "cpu", "rss", "number"]
    shown, _ = press(desk, "r", ROWS)
    assert (shown.shows_all, press(shown, "r", ROWS)[0].shows_all) == (True, False)


def test_routes_take_the_place_of_the_workers_and_have_an_order_of_their_own() -> None:
    rows = replace(ROWS, routes=[route(f"/{number}", 1, 1.0) for number in range(30)])
    desk, action = press(AT_REQUEST, "l", rows)
    assert (desk.shows_routes, action) == (True, None)
    seen = []
    for _ in range(5):
        desk, _ = press(desk, "s", rows)
        seen.append(desk.route_sort)
    assert seen == ["req/s", "p95", "5xx", "time", "load"]
    assert desk.sort == "number"
    for key, at in (("page down", 10), ("page down", 20), ("page down", 29), ("down", 29), ("up", 28)):
        desk, _ = press(desk, key, rows)
        assert (desk.scroll, desk.mark) == (at, AT_REQUEST.mark), key
    for key in ("enter", "d", "k"):  # what is chosen is not on the screen
        refused, action = press(desk, key, rows)
        assert (refused.question, action, refused.is_bad) == (None, None, True), key
    asking, _ = press(desk, "R", rows)
    assert asking.question is not None
    help_, _ = press(desk, "?", rows)
    back, _ = press(help_, "escape", rows)
    assert (back.pane, back.shows_routes) == ((), True)
    for key in ("l", "escape"):
        left, action = press(back, key, rows)
        assert (left.shows_routes, left.scroll, action) == (False, 0, None)


def test_a_pane_is_scrolled_and_left() -> None:
    desk, _ = press(Desk(), "?", ROWS)
    assert desk.pane == keys.HELP
    desk, _ = press(desk, "page down", ROWS)
    assert desk.scroll == 10
    for _ in range(30):
        desk, _ = press(desk, "down", ROWS)
    assert desk.scroll == len(keys.HELP) - 1
    for key in ("escape", "?", "enter"):
        left, action = press(desk, key, ROWS)
        assert (left.pane, left.scroll, action) == ((), 0, None)


def test_the_end_and_keys_that_mean_nothing() -> None:
    assert press(Desk(), "q", ROWS)[1] == Quit()
    for key in ("x", "resize", "KEY_F(1)", "\x03"):
        assert press(AT_WORKER, key, ROWS) == (AT_WORKER, None)
