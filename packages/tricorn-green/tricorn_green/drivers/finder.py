"""Treatments of known drivers, hooked on their imports (`import_hooks`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType

from tricorn import import_hooks
from tricorn_green.cures import asked
from tricorn_green.cures.replace import holders
from tricorn_green.drivers.records import Apply, Blocks, Check, Cure, Driver, Ground, Hook, blocks, cures
from tricorn_green.drivers.table import DRIVERS


def install(ground: Ground, drivers: Sequence[Driver] = DRIVERS) -> None:
    """Treats known drivers when they are imported, and those that are imported already at once."""
    found: dict[str, list[Apply]] = {}
    for name, apply in (*treatments(drivers, ground), *asked_for(ground)):
        found.setdefault(name, []).append(apply)
    import_hooks.after("green", {name: partial(_treat, name, applied, ground) for name, applied in found.items()})


def _treat(name: str, treatments: Sequence[Apply], ground: Ground, module: ModuleType) -> None:
    """Never fails: that an application starts is worth more than that it waits well."""
    for apply in treatments:
        try:
            apply(module, ground)
        except Exception as error:
            version = getattr(module, "__version__", "of an unknown version")
            ground.say(
                "warning",
                f"{name} {version} could not be made cooperative ({type(error).__name__}: {error}): "
                "while it waits it may block the whole worker.",
            )


def treatments(drivers: Sequence[Driver], ground: Ground) -> list[tuple[str, Apply]]:
    """Returns the treatments by the name of the module."""
    found: list[tuple[str, Apply]] = []
    for driver in drivers:
        names = driver.imports
        apply: Apply | None = None
        match driver.under(ground.alias):
            case Hook(hook) | Check(hook):
                apply = hook
            case Blocks(cure=Cure() as cure) if ground.care.heals(driver.title):
                names = cure.imports or names
                apply = _cure_or_why_not(driver, cure, names)
            case Blocks() as treatment:
                apply = blocks(driver, treatment)
        found += [(name, apply) for name in names if apply is not None]
    return found


def _cure_or_why_not(driver: Driver, cure: Cure, names: Sequence[str]) -> Apply:
    """The cure, or the line that it comes too late, if the library has been imported by now."""
    early = [module for name in (*names, *driver.imports) if (module := sys.modules.get(name)) is not None]
    if not early:
        return cures(driver, cure)
    package = driver.imports[0].partition(".")[0]
    taken: list[object] = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    taken += [value for module in early for value in vars(module).values() if isinstance(value, type)]
    text = NOT_APPLIED.format(title=driver.title, places="; ".join(holders(taken, package)[:MOST_PLACES]) or NO_PLACE)

    def say(_: ModuleType, ground: Ground) -> None:
        ground.say("warning", text)

    return say


def asked_for(ground: Ground) -> list[tuple[str, Apply]]:
    """Returns treatments for functions that the setting `offload` names."""
    found = []
    for target in map(asked.parse, ground.care.offload):
        module = sys.modules.get(target.module)
        problem = asked.not_applied(target, module) if module is not None else None
        if problem:
            ground.say("warning", problem)
        found.append((target.module, asked.treatment(target)))
    return found


MOST_PLACES = 3
NO_PLACE = "by the configuration file, or a module that it imports"
NOT_APPLIED = (
    "{title} is not healed: it was imported before (by {places}), and what has taken its names keeps the "
    "originals. Import it in the application, and not in or through the configuration file."
)
