"""The finder on `sys.meta_path` that notices the import of a known driver, and what follows the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

from tricorn import after_import
from tricorn.green.drivers.records import Apply, Blocks, Check, Driver, Ground, Hook, blocks
from tricorn.green.drivers.table import DRIVERS


class Finder(after_import.Finder):
    def __init__(self, ground: Ground, drivers: Sequence[Driver] = DRIVERS) -> None:
        self.ground = ground
        self._treatments = treatments(drivers, ground.alias)
        super().__init__(self._treatments)

    def apply(self, module: ModuleType, name: str) -> None:
        """Never fails: that an application starts is worth more than that it waits well."""
        try:
            self._treatments[name](module, self.ground)
        except Exception as error:
            version = getattr(module, "__version__", "of an unknown version")
            self.ground.say(
                "warning",
                f"{name} {version} could not be made cooperative ({type(error).__name__}: {error}): "
                "while it waits it may block the whole worker.",
            )


def treatments(drivers: Sequence[Driver], alias: str) -> Mapping[str, Apply]:
    """What is to be done, by the name of the module."""
    found: dict[str, Apply] = {}
    for driver in drivers:
        match driver.under(alias):
            case Hook(apply) | Check(apply):
                found.update(dict.fromkeys(driver.imports, apply))
            case Blocks() as treatment:
                found.update(dict.fromkeys(driver.imports, blocks(driver, treatment)))
    return found
