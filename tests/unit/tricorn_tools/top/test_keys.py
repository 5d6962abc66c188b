"""What a key means: nothing is changed that was not asked first, and nothing at all in read-only mode."""

from __future__ import annotations

import pytest
from tricorn.record import replace
from tricorn_tools.top import keys
from tricorn_tools.top.keys import Ask, Mark, Quit, Rows, View, press
from tricorn_tools.top.look import Request, Worker
from tricorn_tools.top.table import Running

from tests.unit.tricorn_tools.top.made import entry, page, route

REQUEST = Request(5, 77, 3.2, "GET /slow")
WORKERS = [Worker(entry(number), page(), None) for number in (1, 2)]
ROWS = Rows(WORKERS, [Running(WORKERS[1], REQUEST)])
AT_WORKER, AT_REQUEST = View(mark=Mark(2)), View(mark=Mark(2, 5, 77))

ACTIONS = [
    (AT_WORKER, "R", "reload", {}),
    (AT_WORKER, "+", "scale", {"workers": "+1"}),
    (AT_WORKER, "-", "scale", {"workers": "-1"}),
    (AT_WORKER, "d", "drain", {"slot": 2}),
    (AT_REQUEST, "d", "drain", {"slot": 2}),
    (AT_REQUEST, "k", "cancel", {"slot": 2, "place": 5, "start": 77}),
]


@pytest.mark.parametrize(("view", "key", "word", "arguments"), ACTIONS)
def test_what_changes_the_server_is_asked_first(view: View, key: str, word: str, arguments: dict[str, object]) -> None:
    asking, action = press(view, key, ROWS)
    assert action is None
    assert asking.question is not None
    assert asking.question.question.endswith(("?", "."))
    answered, action = press(asking, "y", ROWS)
    assert isinstance(action, Ask)
    assert (action.word, dict(action.arguments), answered.question) == (word, arguments, None)
    for other in ("n", "enter", "q", key, "escape"):
        answered, action = press(asking, other, ROWS)
        assert (action, answered.question, answered.message) == (None, None, "nothing changed"), other


@pytest.mark.parametrize(("view", "key", "word", "arguments"), ACTIONS)
def test_in_read_only_mode_nothing_is_even_asked(view: View, key: str, word: str, arguments: dict[str, object]) -> None:
    refused, action = press(replace(view, is_read_only=True), key, ROWS)
    assert (refused.question, action, refused.message) == (None, None, keys.READ_ONLY)


def test_stacks_are_looked_at_without_a_question_also_in_read_only_mode() -> None:
    for view in (AT_WORKER, AT_REQUEST):
        _, action = press(replace(view, is_read_only=True), "enter", ROWS)
        assert isinstance(action, Ask)
        assert (action.word, dict(action.arguments), action.question) == ("stacks", {"slot": 2}, "")


def test_what_is_not_chosen_is_not_acted_on() -> None:
    gone = Mark(9)
    for mark in (None, gone, Mark(2, 5, 78)):
        for key in ("k",):
            view, action = press(View(mark=mark), key, ROWS)
            assert (view.question, action, view.is_bad) == (None, None, True), mark
    for mark in (None, gone):
        for key in ("d", "enter"):
            view, action = press(View(mark=mark), key, ROWS)
            assert (view.question, action, view.is_bad) == (None, None, True), (mark, key)


def test_arrows_go_through_workers_and_requests() -> None:
    view, seen = View(), []
    for key in ("down", "down", "down", "down", "up", "page up"):
        view, _ = press(view, key, ROWS)
        seen.append(view.mark)
    request = Mark(2, 5, 77)
    assert seen == [Mark(1), Mark(2), request, request, Mark(2), Mark(1)]
    assert press(View(), "down", Rows((), ()))[0].mark is None


def test_a_worker_that_is_gone_is_no_longer_chosen() -> None:
    view, _ = press(View(mark=Mark(7)), "down", ROWS)
    assert view.mark == Mark(1)


def test_sorts_and_views_take_turns() -> None:
    view, seen = View(), []
    for _ in range(6):
        view, _ = press(view, "s", ROWS)
        seen.append(view.sort)
    assert seen == ["busy", "req/s", "p99", "cpu", "rss", "number"]
    shown, _ = press(view, "r", ROWS)
    assert (shown.shows_all, press(shown, "r", ROWS)[0].shows_all) == (True, False)


def test_routes_take_the_place_of_the_workers_and_have_an_order_of_their_own() -> None:
    rows = replace(ROWS, routes=[route(f"/{number}", 1, 1.0) for number in range(30)])
    view, action = press(AT_REQUEST, "l", rows)
    assert (view.shows_routes, action) == (True, None)
    seen = []
    for _ in range(5):
        view, _ = press(view, "s", rows)
        seen.append(view.route_sort)
    assert seen == ["req/s", "p95", "5xx", "time", "load"]
    assert view.sort == "number"
    for key, at in (("page down", 10), ("page down", 20), ("page down", 29), ("down", 29), ("up", 28)):
        view, _ = press(view, key, rows)
        assert (view.scroll, view.mark) == (at, AT_REQUEST.mark), key
    for key in ("enter", "d", "k"):  # what is chosen is not on the screen
        refused, action = press(view, key, rows)
        assert (refused.question, action, refused.is_bad) == (None, None, True), key
    asking, _ = press(view, "R", rows)
    assert asking.question is not None
    help_, _ = press(view, "?", rows)
    back, _ = press(help_, "escape", rows)
    assert (back.pane, back.shows_routes) == ((), True)
    for key in ("l", "escape"):
        left, action = press(back, key, rows)
        assert (left.shows_routes, left.scroll, action) == (False, 0, None)


def test_a_pane_is_scrolled_and_left() -> None:
    view, _ = press(View(), "?", ROWS)
    assert view.pane == keys.HELP
    view, _ = press(view, "page down", ROWS)
    assert view.scroll == 10
    for _ in range(30):
        view, _ = press(view, "down", ROWS)
    assert view.scroll == len(keys.HELP) - 1
    for key in ("escape", "?", "enter"):
        left, action = press(view, key, ROWS)
        assert (left.pane, left.scroll, action) == ((), 0, None)


def test_the_end_and_keys_that_mean_nothing() -> None:
    assert press(View(), "q", ROWS)[1] == Quit()
    for key in ("x", "resize", "KEY_F(1)", "\x03"):
        assert press(AT_WORKER, key, ROWS) == (AT_WORKER, None)
