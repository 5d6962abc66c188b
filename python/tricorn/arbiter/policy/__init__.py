"""Decides what to do about each event: a reducer. Pure; no clock, no process, no log, no file.

    events     what happens                    state      what is known; `worker`: the phases of one
    commands   what can be done                settings   what the configuration says
    decide     (state, event, now) -> (state, commands)

`decide` hands each event to the file that knows about it, and then makes ends meet:

    signals    what each signal means          reloading  generations: trial, commit, rollback
    leaving    TERM, QUIT, KILL; stopping      retiring   replacing workers that still serve
    exits      workers that are gone           booting    workers that are not there yet
    molding    processes that fork workers     reforking  those that were workers before
    canary     whether new code is worse than the old
    log_once   notices that every worker sends
    control_requests   one class for each word of the control socket; `arguments`: how they are read
    program_requests   what a program's own arbiter asks for

The phases of a worker stand in `worker`. Rule: nothing outside of this package decides what comes next.
"""

from __future__ import annotations
