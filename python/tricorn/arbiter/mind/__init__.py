"""The arbiter's mind: what to do about each event. Pure; no clock, no process, no log, no file.

    events     what happens                    state      what is known
    commands   what can be done                decide     (state, event, now) -> (state, commands)

`decide` hands each event to the file that knows about it, and then makes ends meet:

    signals    what each signal means          reloading  generations: trial, commit, rollback
    leaving    TERM, QUIT, KILL; stopping      retiring   replacing workers that still serve
    endings    workers that are gone           booting    workers that are not there yet
    notices    what workers have to say, and all say alike

A worker:

    booting --ready--> serving --wish, its turn--> retiring --successor is ready--> leaving --exit--> gone
       |                  +---------told to leave--------------------------------------^
       +--fails, or boot_timeout--> gone

Rule: nothing outside of this package decides what comes next.
"""

from __future__ import annotations
