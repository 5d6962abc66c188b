"""What faulthandler has written of a worker's threads."""

from __future__ import annotations

import json

from tricorn.arbiter.control.stacks import SERVER, threads, waiting

TEXT = f"""\
Thread 0x00007f4deeffc6c0 [pool-1] (most recent call first):
  File "/srv/shop/views.py", line 3 in report
  File "/srv/shop/wsgi.py", line 9 in application
  {SERVER}/base.py", line 300 in run
  File "/usr/lib/python3.14/threading.py", line 982 in run

Thread 0x00007f4deeffd6c0 (most recent call first):
  {SERVER}/gthread.py", line 20 in _serve
  File "/usr/lib/python3.14/threading.py", line 982 in run

Current thread 0x00007f4defa6bb80 (most recent call first):
  File "/srv/shop/jobs.py", line 5 in tick
"""


MAIN = 0x7F4DEEFFC6C0


def test_a_thread_is_shown_as_far_as_it_is_in_the_application() -> None:
    """And the main one is known by its identity: the current one is whichever the signal came to."""
    assert threads(TEXT, MAIN) == [
        {
            "thread": "0x00007f4deeffc6c0",
            "main": True,
            "name": "pool-1",
            "stack": ['File "/srv/shop/views.py", line 3 in report', 'File "/srv/shop/wsgi.py", line 9 in application'],
        },
        {
            "thread": "0x00007f4defa6bb80",
            "main": False,
            "name": None,
            "stack": ['File "/srv/shop/jobs.py", line 5 in tick'],
        },
    ]


def test_what_is_cut_off_or_no_stack_is_left_out() -> None:
    assert threads("", MAIN) == []
    assert threads("rubbish\nThread here\nThread 0x", MAIN) == []
    assert len(threads(TEXT[:150], MAIN)) == 1


def told(**more: object) -> bytes:
    one = {"of": "task", "name": "Task-1", "place": 2, "start": 77, "running": False, "stack": ["File x", "File y"]}
    return json.dumps({"stacks": [{**one, **more}], "left": 0}).encode()


def test_what_waits_is_told_as_python_has_written_it() -> None:
    (one,) = waiting(told(), 10_000) or ()
    assert (one["of"], one["place"], one["start"], one["stack"]) == ("task", 2, 77, ["File x", "File y"])
    (one,) = waiting(told(place=None, start=None), 10_000) or ()
    assert one["place"] is None


def test_python_that_has_not_come_and_rubbish_are_nothing() -> None:
    for data in (b"", b"{", b"[]", b'{"stacks": 7}', b'{"stacks": [7]}', b"\xff", told(stack="x"), told(place="x")):
        assert waiting(data, 10_000) is None, data
    assert waiting(b'{"stacks": []}', 10_000) == []


def test_an_answer_has_an_end() -> None:
    many = json.dumps({"stacks": json.loads(told())["stacks"] * 1000}).encode()
    found = waiting(many, 5000)
    assert found is not None
    assert 0 < len(json.dumps(found)) <= 5000
