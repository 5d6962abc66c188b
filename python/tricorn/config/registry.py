"""All settings, in the order in which help shows them."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.settings import (
    admin,
    application,
    debugging,
    event_loops,
    hooks,
    logging,
    mechanics,
    processes,
    queueing,
    responses,
    security,
    slow_clients,
    socket,
)

_SECTIONS = (
    application,
    socket,
    admin,
    processes,
    event_loops,
    queueing,
    mechanics,
    slow_clients,
    security,
    responses,
    logging,
    debugging,
    hooks,
)

SETTINGS: tuple[Setting[object], ...] = tuple(
    record for section in _SECTIONS for record in vars(section).values() if isinstance(record, Setting)
)
"""Every record of the files above, in the order in which it stands there."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
