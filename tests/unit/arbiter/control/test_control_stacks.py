"""What faulthandler has written of a worker's threads."""

from __future__ import annotations

from tricorn.arbiter.control.stacks import SERVER, threads

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


def test_a_thread_is_shown_as_far_as_it_is_in_the_application() -> None:
    assert threads(TEXT) == [
        {
            "thread": "0x00007f4deeffc6c0",
            "main": False,
            "name": "pool-1",
            "stack": ['File "/srv/shop/views.py", line 3 in report', 'File "/srv/shop/wsgi.py", line 9 in application'],
        },
        {
            "thread": "0x00007f4defa6bb80",
            "main": True,
            "name": None,
            "stack": ['File "/srv/shop/jobs.py", line 5 in tick'],
        },
    ]


def test_what_is_cut_off_or_no_stack_is_left_out() -> None:
    assert threads("") == []
    assert threads("rubbish\nThread here\nThread 0x") == []
    assert len(threads(TEXT[:150])) == 1
