"""What to do about each event: a reducer. Pure; no clock, no process, no log, no file.

    events     what happens                    state      what is known
    commands   what can be done                decide     (state, event, now) -> (state, commands)

`decide` hands each event to the file that knows about it, and then makes ends meet:

    signals    what each signal means          reloading  generations: trial, commit, rollback
    leaving    TERM, QUIT, KILL; stopping      retiring   replacing workers that still serve
    endings    workers that are gone           booting    workers that are not there yet
    notices    what workers have to say, and all say alike
    operator   what clients of the control socket ask for; `pending`: what they are answered later

The phases of a worker stand in `worker`. Rule: nothing outside of this package decides what comes next.
"""

from __future__ import annotations
