"""All settings, in the order in which help shows them."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.settings.admin import Admin
from tricorn.config.settings.application import Application
from tricorn.config.settings.debugging import Debugging
from tricorn.config.settings.event_loops import EventLoops
from tricorn.config.settings.hooks import Hooks
from tricorn.config.settings.logging import Logging
from tricorn.config.settings.mechanics import Mechanics, Naming
from tricorn.config.settings.processes import Processes
from tricorn.config.settings.queueing import Queueing
from tricorn.config.settings.responses import Responses
from tricorn.config.settings.security import FrontEnds, Leniency, Limits
from tricorn.config.settings.slow_clients import SlowClients
from tricorn.config.settings.socket import Socket


class Settings(
    Application,
    Socket,
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
    Logging,
    Debugging,
    Hooks,
):
    """Every section, in the order of the documents."""


SETTINGS: tuple[Setting[object], ...] = tuple(
    record for section in Settings.__bases__ for record in vars(section).values() if isinstance(record, Setting)
)
"""Every record of the sections, in the order in which it stands there."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
