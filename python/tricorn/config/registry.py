"""All settings, in the order in which help shows them."""

from __future__ import annotations

from collections.abc import Iterator

from tricorn.config.setting import Setting
from tricorn.config.settings.admin import Admin
from tricorn.config.settings.application import Application
from tricorn.config.settings.collectors import Collectors
from tricorn.config.settings.compression import Compression
from tricorn.config.settings.debugging import Debugging
from tricorn.config.settings.doctor import Doctor
from tricorn.config.settings.event_loops import EventLoops
from tricorn.config.settings.hooks import Hooks
from tricorn.config.settings.http2 import Http2
from tricorn.config.settings.logging import Logging
from tricorn.config.settings.mechanics import Mechanics, Naming
from tricorn.config.settings.processes import Processes
from tricorn.config.settings.queueing import Queueing
from tricorn.config.settings.responses import Responses
from tricorn.config.settings.security import FrontEnds, Leniency, Limits
from tricorn.config.settings.slow_clients import SlowClients
from tricorn.config.settings.socket import Socket
from tricorn.config.settings.static_files import StaticFiles
from tricorn.config.settings.tls import Tls
from tricorn.spelling import near


class Settings(
    Application,
    Socket,
    Tls,
    Http2,
    Admin,
    Processes,
    EventLoops,
    Queueing,
    Mechanics,
    Naming,
    SlowClients,
    Limits,
    FrontEnds,
    Leniency,
    Responses,
    Compression,
    StaticFiles,
    Logging,
    Collectors,
    Doctor,
    Debugging,
    Hooks,
):
    """Every section, in the order of the documents."""


SETTINGS: tuple[Setting[object], ...] = tuple(
    record for section in Settings.__bases__ for record in vars(section).values() if isinstance(record, Setting)
)
"""Every record of the sections, in the order in which it stands there."""

BY_NAME = {setting.name: setting for setting in SETTINGS}


def meant_by(name: str) -> Iterator[Setting[object]]:
    """The settings that `name`, which is none, is a slip of: of their names, or of their flags."""
    # Short ones, `env` or `name`, are what anybody calls a variable.
    flags = {flag.lstrip("-"): setting for setting in SETTINGS for flag in setting.flags if len(flag.lstrip("-")) > 4}
    spellings = {**flags, **BY_NAME}
    return (spellings[each] for each in near(name, spellings))
