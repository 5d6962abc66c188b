"""The screen at 80 and at 200 columns, that of the routes at 100, and that no content makes them wider.

The three screens are those of docs/diagnose/top.md, which has a picture besides, for light and dark. To update them:
`python -m tests.unit.tricorn_tools.top.test_screen`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tricorn.record import replace
from tricorn_tools.top import change, keys, screen, table
from tricorn_tools.top.change import Changes
from tricorn_tools.top.keys import Mark, View
from tricorn_tools.top.look import Memory, Request, Worker, harmless
from tricorn_tools.top.screen import Scene

from tests.unit.tricorn_tools.top.made import MIB, busy_shop, counted, entry, look, page, route, shop_of_routes
from tests.unit.tricorn_tools.top.picture import svg

SIZES = {80: 20, 200: 14}
ROUTES = Path(__file__).parent / "routes_100.txt"
DOCS = Path(__file__).resolve().parents[4] / "docs"
DOCUMENT, PICTURE = DOCS / "diagnose/top.md", DOCS / "images/top.svg"
PICTURED = (130, 14)


def golden(width: int) -> Path:
    return Path(__file__).parent / f"screen_{width}.txt"


def scene(**view: object) -> Scene:
    before, now = busy_shop()
    return Scene(now, change.between(before, now), replace(View(mark=Mark(3)), **view))


def routes(**view: object) -> Scene:
    before, now = shop_of_routes()
    return Scene(now, change.between(before, now), replace(View(shows_routes=True), **view))


def text(made: Scene, width: int, height: int) -> str:
    lines = ["".join(span.text for span in line).rstrip() for line in screen.render(made, width, height)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("width", SIZES)
def test_the_screen_is_as_recorded_and_as_documented(width: int) -> None:
    recorded = golden(width).read_text()
    assert text(scene(), width, SIZES[width]) == recorded
    assert f"```text\n{recorded}```" in DOCUMENT.read_text()


def test_the_routes_are_as_recorded_and_as_documented() -> None:
    recorded = ROUTES.read_text()
    assert text(routes(), 100, 13) == recorded
    assert f"```text\n{recorded}```" in DOCUMENT.read_text()


def test_the_picture_is_of_this_screen() -> None:
    assert picture() == PICTURE.read_text()
    assert f"(../images/{PICTURE.name})" in DOCUMENT.read_text()


def picture() -> str:
    return svg(screen.render(scene(), *PICTURED), PICTURED[0])


def test_no_line_is_wider_than_the_screen_and_there_are_as_many_as_it_has() -> None:
    for width in (1, 39, 40, 41, *range(50, 130, 7), 260):
        for height in (1, 11, 12, 40):
            for made in (scene(shows_all=True), routes(), routes(scroll=2)):
                lines = screen.render(made, width, height)
                assert all(sum(len(span.text) for span in line) <= width for line in lines), (width, height)
                assert len(lines) == (height if width >= 40 and height >= 12 else 1), (width, height)


def test_columns_are_left_out_from_the_right() -> None:
    known = table.columns(scene().look, scene().changes)
    kept = [[column.title for column in screen.fitting(known, width)[0]] for width in (40, 80, 100, 200)]
    titles = [column.title for column in known]
    assert all(titles[: len(shown)] == shown for shown in kept)
    assert [shown[-1] for shown in kept] == ["STATE", "RSS", "USS", "USS"]
    assert [screen.fitting(known, width)[1] for width in (80, 98, 120)] == [0, 0, 19]


def test_how_long_loops_were_blocked_has_a_column_where_it_is_known() -> None:
    def worker(blocked: int) -> Worker:
        return Worker(entry(1), page(counted(**{change.LOOP_WORK: 1, change.BLOCKED: blocked})), None)

    first = look(1.0, worker(0), totals=counted())
    second = look(2.0, worker(970_000_000), totals=counted())
    made = Scene(second, change.between(first, second), View())
    shown = text(made, 100, 12)
    assert "BLOCK" in shown
    assert "blocked 97 %" in shown
    assert "BLOCK" not in text(scene(), 200, 14)


def test_sessions_have_a_column_where_there_are_any() -> None:
    def made(*counts: int | None) -> Scene:
        workers = [Worker(entry(number), page(), None, count) for number, count in enumerate(counts, 1)]
        shown = look(1.0, *workers, totals=counted())
        return Scene(shown, change.between(shown, shown), View())

    head, first, second = text(made(12_345, None), 120, 12).splitlines()[2:5]
    column = slice(head.index(" SESS"), head.index(" SESS") + 5)
    assert (first[column].strip(), second[column].strip()) == ("12k", "-")
    for counts in ((0, 0), (None, None)):
        assert "SESS" not in text(made(*counts), 200, 12)


def test_the_mold_has_a_line_below_the_workers_and_is_in_the_sum_of_memory() -> None:
    mold = Worker(entry(0, slot=0, pid=4700, kind="mold", page=None), None, Memory(90 * MIB, 20 * MIB, 5 * MIB))
    worker = Worker(entry(1), page(), Memory(100 * MIB, 30 * MIB, 10 * MIB))
    shown = look(1.0, worker, mold=mold)
    made = Scene(shown, change.between(shown, shown), View())
    for lines in (text(made, 200, 12).splitlines(), screen.plain(made, None)):
        assert "memory 50M PSS" in "\n".join(lines)
        at = next(index for index, line in enumerate(lines) if line.startswith("  1 "))
        assert lines[at + 1].split() == [
            *("-", "4700", "mold", "3", "serving", "-", "-", "-", "-", "-", "-", "90M", "20M", "-", "3d", "5.0M"),
        ]
    assert "1 of 4 workers" in text(made, 200, 12)
    assert screen.rows_of(made).workers == [worker]


def test_what_is_chosen_is_one_whole_line() -> None:
    for mark, beginning in ((Mark(2), "  2 "), (Mark(3, 2, 62_000_000_000), "  3.2 ")):
        lines = screen.render(scene(mark=mark), 80, 20)
        chosen = [line for line in lines if any(span.style == "chosen" for span in line)]
        assert len(chosen) == 1
        assert len(chosen[0]) == 1
        assert chosen[0][0].text.startswith(beginning)


def test_what_is_bad_is_marked() -> None:
    marked = {(span.text.strip(), span.style) for line in screen.render(scene(), 200, 14) for span in line}
    assert {("queue 3, p99 0.42 ms", "warn"), ("2 of 4 workers", "warn"), ("booting", "warn")} <= marked
    before, now = busy_shop()
    failing = replace(now, totals=replace(now.totals, statuses=(0, 800, 0, 0, 91)))
    lines = screen.render(Scene(failing, change.between(before, failing), View()), 200, 14)
    assert ("5xx 10.2 %", "bad") in {(span.text, span.style) for line in lines for span in line}


def test_a_question_a_message_and_a_pane_have_their_places() -> None:
    asked = keys.Ask("reload", {}, "reload configuration and code?")
    assert "reload configuration and code? (y/n)\n" in text(scene(question=asked), 80, 20)
    assert text(scene(message="scale: from 1 to 2 workers"), 80, 20).splitlines()[-2] == "scale: from 1 to 2 workers"
    long = text(scene(message="word " * 100), 80, 20).splitlines()[-5:]
    assert [len(line) for line in long[:4]] == [79] * 4
    assert long[4].startswith("? help")
    shown = text(scene(pane=keys.HELP), 80, 24)
    assert "d        drain the selected worker" in shown
    assert "  1    4712" not in shown
    assert text(scene(pane=tuple(map(str, range(100))), scroll=50), 80, 24).splitlines()[5] == "49"


def test_many_workers_leave_room_for_requests_and_the_chosen_one_is_shown() -> None:
    slow = tuple(Request(slot, slot, 10.0 + slot, f"GET /{slot}", "call") for slot in range(50))
    workers = [Worker(entry(number), page(counted(), requests=slow), None) for number in range(1, 65)]
    now = look(1.0, *workers, totals=counted())
    for chosen in (1, 30, 64):
        shown = text(Scene(now, change.between(None, now), View(mark=Mark(chosen))), 80, 24)
        assert f"\n{chosen:3}   {4711 + chosen:5} gthread" in shown
        assert "requests over 1 s:\n" in shown
        assert " more\n" in shown
    last = Mark(1, 0, 0)
    assert ".0       10.0 s  call      GET /0\n" in text(Scene(now, change.between(None, now), View(mark=last)), 80, 24)


def names_of_routes(made: Scene, width: int, height: int) -> list[str]:
    lines = text(made, width, height).splitlines()
    start = next(index for index, line in enumerate(lines) if line.endswith("ROUTE"))
    return [line.split()[-1] for line in lines[start + 1 : -2] if line]


def test_routes_are_in_the_order_that_is_chosen_and_can_be_scrolled() -> None:
    deep = "/catalogue/{category}/{subcategory}/products/{product_id}/reviews/{review_id}/answers"
    assert names_of_routes(routes(), 200, 20) == ["/report", "/", deep, "/new", "/quiet"]
    assert names_of_routes(routes(route_sort="req/s"), 200, 20) == ["/", deep, "/report", "/new", "/quiet"]
    assert names_of_routes(routes(route_sort="p95"), 200, 20) == ["/report", "/new", deep, "/", "/quiet"]
    assert names_of_routes(routes(route_sort="5xx"), 200, 20)[0] == "/report"
    assert names_of_routes(routes(route_sort="time"), 200, 20)[-2:] == ["/quiet", "/new"]
    assert names_of_routes(routes(scroll=3), 200, 20) == ["/new", "/quiet"]
    many = tuple(route(f"/{number}", 1, 100.0 - number) for number in range(65))
    made = replace(routes(), look=replace(routes().look, routes=many))
    shown = text(made, 200, 20)
    assert "/0\n" in shown
    assert " more\n" in shown
    assert "/64\n" in text(replace(made, view=View(shows_routes=True, scroll=64)), 200, 20)


def test_routes_that_there_are_not_say_why() -> None:
    nothing = replace(routes(), look=replace(routes().look, routes=()))
    assert "No requests." in text(nothing, 80, 20)
    sentence = "Route metrics are disabled (route_metrics = 0)"
    off = replace(routes(), look=replace(routes().look, routes=None, missing=(sentence,)))
    assert sentence in text(off, 80, 20)
    assert sentence in screen.plain(off, None)


def test_plain_output_has_routes_in_place_of_the_workers() -> None:
    lines = screen.plain(routes(), None)
    assert lines[2].split() == ["REQ/S", "5XX", "P50", "P95", "LOAD", "SHARE", "CPU", "BLOCK", "TOTAL", "TIME", "ROUTE"]
    assert [line.split()[-1] for line in lines[3:5]] == ["/report", "/"]
    assert not any("gthread" in line or line.startswith("requests") for line in lines)


def test_no_escape_sequence_of_a_request_reaches_the_terminal() -> None:
    assert harmless("GET /\x1b]0;title\x07\x9b31m\r\n\u202e日") == "GET /?]0;title??31m????"
    assert len(harmless("x" * 10_000)) == 200


def test_plain_output_has_every_column_when_nobody_limits_it() -> None:
    lines = screen.plain(scene(mark=None), None)
    assert lines[2].split()[:3] == ["#", "PID", "CLASS"]
    assert lines[2].endswith("AGE   USS NOTE")
    assert lines[5].endswith("3d   48M 1 stuck; successor boots")
    assert lines[-1].endswith("and-in-the-other-one-as-well")
    assert all(len(line) <= 60 for line in screen.plain(scene(mark=None), 60))


def test_numbers_of_any_size_are_shown_somehow() -> None:
    """Pages of random words."""
    draw = random.Random(7)
    for _ in range(50):
        words = {name: draw.getrandbits(draw.choice((3, 20, 64))) for name in ("in_flight", "queued", "connections")}
        counts = [
            counted(
                draw.getrandbits(64),
                statuses=tuple(draw.getrandbits(64) for _ in range(5)),  # type: ignore[arg-type]
                total={1_000: draw.getrandbits(64)},
                **words,
            )
            for _ in range(2)
        ]
        looks = [
            look(at, Worker(entry(1), page(each, threads=draw.getrandbits(64), **words), None), totals=each)
            for at, each in zip((1.0, 2.0), counts, strict=True)
        ]
        changes: Changes = change.between(looks[0], looks[1])
        lines = screen.render(Scene(looks[1], changes, View()), 80, 12)
        assert all(sum(len(span.text) for span in line) <= 80 for line in lines)
        screen.plain(Scene(looks[1], changes, View()), None)


if __name__ == "__main__":
    documented = DOCUMENT.read_text()
    for width, height in SIZES.items():
        before, now = golden(width).read_text(), text(scene(), width, height)
        documented = documented.replace(before, now)
        golden(width).write_text(now)
    before, now = ROUTES.read_text() if ROUTES.exists() else "ROUTES\n", text(routes(), 100, 13)
    documented = documented.replace(before, now)
    ROUTES.write_text(now)
    DOCUMENT.write_text(documented)
    PICTURE.write_text(picture())
