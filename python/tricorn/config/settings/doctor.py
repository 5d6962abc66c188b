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
        help="How to handle libraries that block a greenlet worker: off, observe or heal.",
        doc="`observe` logs which imported libraries block, and how to fix it. With `heal` threads of the server make "
        "their blocking calls; the application stays unchanged ([supported libraries](../diagnose/patch-drivers.md)). "
        "`off` logs nothing, and no [stalls](../diagnose/stalls.md) either. Libraries with hooks for "
        "cooperative waiting (psycopg2, grpcio) are patched in any case (`green_drivers`).",
    )

    doctor_level = Setting(
        kind=Choice(("quiet", "normal", "thorough")),
        default="normal",
        own=True,
        help="How early and how closely the doctor looks: quiet, normal or thorough.",
        doc="Sets four parts. `doctor_threshold`: 1 s, 0.1 s or 0.05 s. `doctor_slow_request`: 30 s, 5 s or 1 s. "
        "`profile_after`: never, 0.05 s or 0.02 s. `doctor_deep`: only with `thorough`. Setting a part by its own "
        "name overrides the level.",
    )

    doctor_threshold = Setting(
        kind=Seconds(),
        default=0.1,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 1.0, "normal": 0.1, "thorough": 0.05}),
        help="Log calls that block all other requests of a worker for this many seconds; 0 disables it.",
        doc="For worker classes whose requests share a thread (`gevent`, `eventlet`, `asgi`, `tornado`, `aiohttp`). "
        "The log shows the application's line, the system call and its peer, the C library, the duration and the "
        "number of stalled requests ([how it works](../diagnose/stalls.md)). The same line is logged at once, "
        "then at most every ten seconds. Checking starts with a worker's second request, since the first may import a "
        "lot. For all classes it is also the threshold for [exhausted pools and saturated "
        "workers](../diagnose/waiting-requests.md).",
    )

    doctor_slow_request = Setting(
        kind=Seconds(),
        default=5.0,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 30.0, "normal": 5.0, "thorough": 1.0}),
        help="Log a sync or gthread request after this many seconds without progress; 0 disables it.",
        doc="While the request runs, the log shows the application's line, the system call and its peer, and the C "
        "library; when it ends, its duration ([how it "
        "works](../diagnose/waiting-requests.md#requests-that-take-long)). Progress is defined as for `timeout`: a "
        "piece of the response is sent, or a client reads some of it. The same line is logged at once, then at most "
        "once a minute. For other classes see `doctor_threshold` and `profile_after`.",
    )

    doctor_deep = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": False, "normal": False, "thorough": True}),
        help="Interrupt threads that compute in native code by a signal, to find the function they are in.",
        doc="For stalls of the kinds CPU_NATIVE and CPU_NATIVE_GIL: the kernel does not expose the registers of a "
        "running thread. The signal is SIGRTMIN+10. It is not used if the application uses it, and is not sent to "
        "waiting threads ([how it works](../diagnose/stalls.md#find-the-c-function-of-a-computing-thread)).",
    )

    profile_after = Setting(
        kind=Seconds(),
        default=0.05,
        core=True,
        own=True,
        part_of=by_level("doctor_level", {"quiet": 0.0, "normal": 0.05, "thorough": 0.02}),
        help="Sample a request's stack after this many seconds, for tricorn doctor slow; 0 disables it.",
        doc="From then on the Python frames of the request's thread, greenlet or task are sampled every 10 ms, later "
        "less often. `tricorn doctor slow` shows, by route, what slow requests did that normal ones did not ([how it "
        "works](../diagnose/doctor-slow.md)). Faster requests are not sampled. `doctor = off` disables "
        "sampling.",
    )

    cures: Setting[tuple[str, ...]] = Setting(
        flags=("--cure",),
        action=Action.APPEND,
        kind=TextList(metavar="LIBRARY"),
        default=(),
        own=True,
        part_of=fixed("doctor", ()),
        help="A library to patch with doctor = heal; by default all supported ones.",
        doc="The name in the [table](../how-it-works/greenlets.md#drivers), such as `confluent-kafka`. May be "
        "repeated.",
    )

    offload: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=OffloadTargets(),
        default=(),
        own=True,
        rare=True,
        help="A function or method that greenlet workers run in a thread: package.module:Class.method.",
        doc="For your own libraries that wait in C. May be repeated. Calls of one object run one after another. "
        "Append `@object` to run all calls of an object in the same thread, or `@process` to run all calls in one "
        "thread. Has no effect with `sync` and `gthread`. On an event loop the code must await: "
        "[tricorn.offload](../diagnose/offload.md).",
    )

    offload_threads = Setting(
        kind=Integer(min=1, max=10_000),
        default=20,
        own=True,
        rare=True,
        help="Maximum number of threads for offloaded calls in a greenlet worker.",
        doc="Further calls wait, in order; waits of more than a second are logged. Objects that need their own thread "
        "(sqlite3) may use as many again.",
    )
