from __future__ import annotations

import pytest
from tricorn_bench.tune import explain

NATIVE = {"file": "[libc]", "line": 0, "function": "poll"}
LIBRARY = {"file": "/venv/lib/python3.11/site-packages/psycopg2/extensions.py", "line": 3, "function": "wait"}
STANDARD = {"file": "/usr/lib/python3.11/socket.py", "line": 700, "function": "readinto"}
OURS = {"file": "/srv/shop/views.py", "line": 12, "function": "cart"}


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ([NATIVE, LIBRARY, OURS], "psycopg2: poll"),
        ([NATIVE, STANDARD, OURS], "cart (views.py:12): poll"),
        ([OURS], "cart (views.py:12)"),
        ([NATIVE], "poll"),
        ([], "the server"),
    ],
)
def test_tune_names_the_function_of_a_stack(frames: list[dict[str, object]], name: str) -> None:
    assert explain.name_of(frames) == name


def test_stacks_of_requests_are_summed_by_place() -> None:
    request = {
        "of": "request",
        "stacks": [
            {"seconds": 6.0, "frames": [NATIVE, LIBRARY, OURS]},
            {"seconds": 3.0, "frames": [NATIVE, LIBRARY]},
            {"seconds": 0.9, "frames": [OURS]},
            {"seconds": 0.1, "frames": [STANDARD]},
        ],
    }
    idle = {"of": "loop", "stacks": [{"seconds": 90.0, "frames": [NATIVE]}]}
    found = explain.from_profile({"owners": [request, idle]})
    assert [(place.name, round(place.share, 2)) for place in found] == [
        ("psycopg2: poll", 0.9),
        ("cart (views.py:12)", 0.09),
    ]


def test_without_requests_there_is_nothing_to_name() -> None:
    assert explain.from_profile({"owners": []}) == []
