"""The generations there are: how the next one is prepared, and what goes with the one that is given up."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress

from tricorn import log as logs
from tricorn.arbiter.environment import Environment
from tricorn.arbiter.generation import Generation, adapted, bind, check, discard, prepare
from tricorn.arbiter.listeners import sockets
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.arbiter.policy.commands import Level
from tricorn.config.addresses import Address
from tricorn.config.config import Config
from tricorn.config.load import Loaded, Sources
from tricorn.errors import ConfigError
from tricorn.log import Logger
from tricorn.tls.certificates import Certificates
from tricorn.tls.tickets import Tickets
from tricorn.unpatched import time
from tricorn.workers.application import Application

MakeApplication = Callable[[Config], Application]
"""Makes the application of a generation with this configuration."""


class Generations:
    """The generation that serves, and the one on trial."""

    def __init__(
        self, sources: Sources, environment: Environment, first: Generation, make_application: MakeApplication
    ) -> None:
        self._sources = sources
        self._make_application = make_application
        self._environment = environment
        self._all = {1: first}
        self._last = 1
        self.current = first
        """The newest generation that was not rolled back."""
        self.inherits = False
        """The listeners came from outside, and `bind` is not used."""
        self.tickets = Tickets()

    def __getitem__(self, number: int) -> Generation:
        return self._all[number]

    def others(self, generation: Generation) -> list[Listener]:
        """The listeners that only other generations than this one have."""
        return sockets.beyond(self.all_listeners(), generation.all_listeners())

    def all_listeners(self) -> list[Listener]:
        """Lists the listeners of all generations."""
        return [each for generation in self._all.values() for each in generation.all_listeners()]

    def certificates(self) -> dict[Certificates, Logger]:
        """Returns the certificates of all generations, each once, with the log for them."""
        found = {each.certificates: each.log for each in self._all.values()}
        return {each: log for each, log in found.items() if each is not None}

    def release_memory(self) -> None:
        """Closes the descriptors of the pages, which a worker does not share. Called in a worker."""
        for generation in self._all.values():
            if generation.pages is not None:
                generation.pages.memory.release()

    def prepare(self, *, configuration: bool) -> tuple[int, tuple[str, ...]]:
        """The number of the new generation, and what there is to warn about.

        Raises whatever a configuration can; then all is as it was.
        """
        old = self.current
        if configuration:
            loaded = self._sources.load()
            new, warnings = self._from(loaded, old), loaded.warnings
        else:
            new, warnings = copy.copy(old), ()
            new.app, new.began = self._application(old.config, old), time.monotonic()
        self._last += 1
        self._all[self._last] = new
        self.current = new
        return self._last, warnings

    def change_log_level(self, level: Level) -> None:
        """Holds for all generations there are; a later one has the level of its configuration."""
        for generation in self._all.values():
            generation.log_level = level
        self.current.log.change_level(level)

    def log_level(self, number: int) -> Level | None:
        """Returns the level that was set for this generation, if any."""
        return self._all[number].log_level if number in self._all else None

    def commit(self, number: int) -> None:
        """Releases what only earlier generations needed."""
        generation = self._all[number]
        for other in [other for other in self._all if other != number]:
            self._abandon(self._all.pop(other), kept=generation)

    def roll_back(self, number: int) -> None:
        failed = self._all.pop(number)
        self.current = self._all[max(self._all)]
        self._restore(self.current, failed)

    def _from(self, loaded: Loaded, old: Generation) -> Generation:
        config = loaded.config
        check(config)
        if config.molds and old.config.preloads:
            raise ConfigError(
                "The arbiter has loaded the application (preload_app = true), so its forks would have the old code. "
                "Send USR2 or restart the server to change to preload_app = mold."
            )
        try:
            self._environment.enter(config)
            loaded = adapted(loaded)
            config = loaded.config
            new = prepare(loaded, logs.make(config), self._application(config, old))
            new.open_certificates(self.tickets)
            self._listen(new, old)
        except BaseException:
            self._environment.enter(old.config)
            _restore_log(old)
            raise
        self._share_pages(new, old)
        new.prepare_forks()
        return new

    def _listen(self, new: Generation, old: Generation) -> None:
        config = new.config
        if self.inherits:
            new.listeners = sockets.with_doors(
                old.listeners, config.doors, tls=config.has_certificate, protocol=config.spoken
            )
        else:
            kept = _by_address(old.listeners)
            if config.reuse_port != old.config.reuse_port:
                kept = {}
            new.listeners = bind(config, config.doors, patient=False, log=new.log, kept=kept)
            if config.backlog != old.config.backlog and not config.reuse_port:
                for listener in kept.values():
                    listener.socket.listen(config.backlog)
        try:
            kept = _by_address(old.admin)
            new.admin = bind(config, config.admin_doors, patient=False, log=new.log, admin=True, kept=kept)
        except BaseException:
            discard(sockets.beyond(new.listeners, old.listeners))
            raise

    def _application(self, config: Config, old: Generation) -> Application:
        app = self._make_application(config)
        if config.preloads and old.app.app_uri == app.app_uri:
            app.callable = old.app.callable
        return app

    def _share_pages(self, new: Generation, old: Generation) -> None:
        if old.pages is not None and old.pages.holds(new.page_bytes(), new.page_count()):
            new.pages = old.pages
        else:
            new.open_pages()

    def _restore(self, old: Generation, failed: Generation) -> None:
        self._abandon(failed, kept=old)
        if failed.config is old.config:
            return
        with suppress(ConfigError):  # it was entered before; if its directory is gone meanwhile, so be it
            self._environment.enter(old.config)
        _restore_log(old)

    def _abandon(self, generation: Generation, *, kept: Generation) -> None:
        discard(sockets.beyond(generation.all_listeners(), kept.all_listeners()))


def _restore_log(generation: Generation) -> None:
    """The log as this generation had it. A logger class that fails now, though it did not before, changes nothing."""
    try:
        generation.log = logs.make(generation.config)
        if generation.log_level is not None:
            generation.log.change_level(generation.log_level)
    except Exception as error:
        generation.log.error("Could not restore the previous log: %s", error)


def _by_address(listeners: list[Listener]) -> dict[Address, Listener]:
    return {listener.door.address: listener for listener in listeners if listener.door is not None}
