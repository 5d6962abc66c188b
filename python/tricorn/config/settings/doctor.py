"""Settings of the doctor: diagnosis of code that blocks a worker."""

from __future__ import annotations

from tricorn.config.kinds import OffloadTargets
from tricorn.config.setting import Action, Section, Setting, by_level, fixed
from tricorn.config.validators import Boolean, Choice, Integer, Seconds, TextList


class Doctor(Section):
    SECTION = "Doctor"

    doctor = Setting(
        kind=Choice(("off", "observe", "heal")),
        default="observe",
        own=True,
        help="What is done about libraries that block a greenlet worker: off, observe or heal.",
        doc="`observe` says in the log which of the imported libraries do, and what to do. With `heal` threads of the "
        "server make their calls, and the application is as it was ([what is healed, and "
        "how](../diagnose/doctor.md#cures)). `off` says nothing, of [stalls](../diagnose/doctor.md#stalls) neither. "
        "Hooks that libraries have "
        "for it (psycopg2, grpcio) are used in any case (`green_drivers`).",
    )

    doctor_level = Setting(
        kind=Choice(("quiet", "normal", "thorough")),
        default="normal",
        own=True,
        help="How soon the doctor speaks and how closely it looks: quiet, normal or thorough.",
        doc="It sets four parts. `doctor_threshold`: 1 s, 0.1 s or 0.05 s. `doctor_slow_request`: 30 s, 5 s or 1 s. "
        "`profile_after`: never, 0.05 s or 0.02 s. `doctor_deep`: with `thorough` alone. A part that is set by its own "
        "name has that value.",
    )

    doctor_threshold = Setting(
        kind=Seconds(),
        default=0.1,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 1.0, "normal": 0.1, "thorough": 0.05}),
        help="Seconds that one call may hold up all others of a worker before the log says which; 0 switches it off.",
        doc="For classes whose requests share a thread (`gevent`, `eventlet`, `asgi`, `tornado`, `aiohttp`): the log "
        "names the line of the application, the system call and its peer, the C library, how long it took and how many "
        "requests were there ([how](../diagnose/doctor.md#stalls)). Each line is told at once, and then at most every "
        "ten seconds. "
        "It begins with a worker's second request, since the first one may import much. Of all classes: it is the "
        "measure of [pools without room and of workers that are saturated](../diagnose/doctor.md#requests-that-wait).",
    )

    doctor_slow_request = Setting(
        kind=Seconds(),
        default=5.0,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 30.0, "normal": 5.0, "thorough": 1.0}),
        help="Seconds without progress after which the log says what a request of sync or gthread is at; 0: never.",
        doc="The log names the line of the application, the system call and its peer, and the C library, while the "
        "request runs, and how long it took when it has ended ([how](../diagnose/doctor.md#requests-that-take-long)). "
        "Progress is "
        "as with `timeout`: a piece of the response that is sent, a client that takes some of it. Each line is told at "
        "once, and then at most once a minute. Other classes: `doctor_threshold`, `profile_after`.",
    )

    doctor_deep = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": False, "normal": False, "thorough": True}),
        help="Halt a thread that computes in native code for a moment by a signal, to tell which function it is in.",
        doc="For stalls that are CPU_NATIVE or CPU_NATIVE_GIL: the kernel tells no registers of a thread that runs. "
        "The signal is SIGRTMIN+10; it is not used if the application uses it, and is not sent to threads that wait "
        "([what it does](../diagnose/doctor.md#deep-stacks)).",
    )

    profile_after = Setting(
        kind=Seconds(),
        default=0.05,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 0.0, "normal": 0.05, "thorough": 0.02}),
        help="Seconds after which a request is looked at where it is, for tricorn doctor slow; 0 switches it off.",
        doc="While a request takes longer, its Python frames are noted every 10 ms, later less often: of its thread, "
        "greenlet or task. `tricorn doctor slow` tells for each route what the slow requests did that the usual ones "
        "did not ([how](../diagnose/doctor.md#slow-requests)). Requests that are faster are not looked at. With "
        "`doctor = off` "
        "none is.",
    )

    cures: Setting[tuple[str, ...]] = Setting(
        flags=("--cure",),
        action=Action.APPEND,
        kind=TextList(metavar="LIBRARY"),
        default=(),
        own=True,
        part_of=fixed("doctor", ()),
        help="A library that doctor = heal is for; all that can be healed if none is named.",
        doc="Its name is that of the [table](../how-it-works/greenlets.md#drivers): `confluent-kafka`. May be given "
        "several times.",
    )

    offload: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=OffloadTargets(),
        default=(),
        own=True,
        rare=True,
        help="A function or a method that greenlet workers have a thread call: package.module:Class.method.",
        doc="For libraries of your own that wait in C; may be given several times. Calls of one object are made one "
        "after another. `@object` behind it: always by the same thread for one object; `@process`: one thread makes "
        "all. Under `sync` and `gthread` it has no effect. Where an event loop runs, code that awaits is needed: "
        "[tricorn.offload](../diagnose/doctor.md#offload).",
    )

    offload_threads = Setting(
        kind=Integer(min=1, max=10_000),
        default=20,
        own=True,
        rare=True,
        help="The most threads of a greenlet worker that make offloaded calls.",
        doc="More calls wait, in order; a wait of more than a second is told in the log. Objects that need a thread of "
        "their own (sqlite3) have as many besides.",
    )
