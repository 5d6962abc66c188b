"""Looking before leaping."""

from __future__ import annotations

from tricorn.config.setting import Action, Setting
from tricorn.config.validators import Boolean

SECTION = "Debugging"

CHECK_CONFIG = Setting(
    name="check_config",
    flags=("--check-config",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Check the configuration and the application and exit: 0 if they can be used, 1 if not.",
)

SETTINGS = (CHECK_CONFIG,)
