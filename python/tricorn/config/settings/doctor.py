"""What is done about code that blocks a worker whose requests share a thread."""

from __future__ import annotations

from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Seconds


class Doctor(Section):
    SECTION = "Doctor"

    doctor_threshold = Setting(
        kind=Seconds(),
        default=0.1,
        core=True,
        own=True,
        help="Seconds that one call may hold up all others of a worker before the log says which; 0 switches it off.",
        doc="For classes whose requests share a thread (`gevent`, `eventlet`, `asgi`, `tornado`, `aiohttp`): the log names the line "
        "of the application, the system call and its peer, the C library, how long it took and how many requests waited "
        "([how](DOCTOR.md#stalls)). Each line is told at once, and then at most every ten seconds. It begins with a "
        "worker's second request, since the first one may import much.",
    )
