"""All that the workers of one generation are started with, and how the next generation's is prepared."""

from __future__ import annotations

import gc
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tricorn import log as logs
from tricorn import workers
from tricorn.arbiter import reuse_port, sockets
from tricorn.arbiter.environment import Environment
from tricorn.arbiter.mind.state import Policy
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.sockets import Listener
from tricorn.config import importers, load
from tricorn.config.config import Config
from tricorn.config.load import Loaded, Sources
from tricorn.errors import AppImportError, BootError, ConfigError
from tricorn.gateway import interfaces
from tricorn.green import patching
from tricorn.log import Logger
from tricorn.workers import privileges, title
from tricorn.workers.application import Application

SPARE_PAGES = 64


@dataclass(slots=True)
class Site:
    config: Config
    worker_class: str
    """The alias; `auto` if the application is not loaded here."""
    log: Logger
    app: Application
    reason: str = ""
    """Why it is that class, if it was chosen by `auto`."""
    listeners: list[Listener] = field(default_factory=list)
    admin: list[Listener] = field(default_factory=list)
    pages: Pages | None = None

    @property
    def policy(self) -> Policy:
        config = self.config
        return Policy(
            graceful_timeout=config.graceful_timeout,
            timeout=config.timeout,
            boot_timeout=config.boot_timeout,
            drain_delay=config.drain_delay,
            max_memory=config.max_worker_memory,
            max_lifetime=config.max_worker_lifetime,
            lifetime_jitter=config.max_worker_lifetime_jitter,
            stand_in=config.reload,
            daemon=config.daemon,
            reuse_port=config.reuse_port,
            most=_most_workers(config),
        )

    def all_listeners(self) -> list[Listener]:
        return [*self.listeners, *self.admin]


def check(config: Config) -> None:
    """What only the arbiter, the workers and the core can judge. Raises ConfigError; touches nothing."""
    for name in ("bind", "admin_bind"):
        for address in config.bind if name == "bind" else config.admin_bind:
            try:
                sockets.parse_address(address)
            except ConfigError as error:
                raise ConfigError(f"Invalid value for {name} (from {config.origin(name)}): {error}") from None
    alias = workers.choose(config.worker_class, config.threads)
    if alias in workers.LOOPS:
        workers.loop_of(alias, config)
    privileges.check(config.uid, config.gid, initgroups=config.initgroups)
    if config.reload:
        from tricorn.workers import reloader

        reloader.check(config.reload_engine)
    from tricorn.workers import native

    native.check(config)


def prepare(config: Config, log: Logger, app: Application | None = None) -> Site:
    """Everything but the listeners, which are bound after the hook `on_starting`."""
    site = Site(config, workers.choose(config.worker_class, config.threads), log, app or Application(config))
    _import_class(site)
    if config.preload_app and site.app.callable is None:
        _preload(site)
    if site.worker_class == workers.AUTO and site.app.callable is not None:
        chosen, site.reason = interfaces.class_for(site.app.callable, site.app.app_uri)
        site.worker_class = workers.choose(chosen, config.threads)
        _import_class(site)
    return site


def _import_class(site: Site) -> None:
    """Before the fork, so that workers share the pages of the class."""
    config, alias = site.config, site.worker_class
    workers.load(alias)
    if alias in workers.GREEN:
        patching.prepare(alias)
    else:
        importers.stop()
    if alias in workers.LOOPS:
        from tricorn.workers import event_loop  # asyncio is for no other class

        event_loop.import_loop(workers.loop_of(alias, config))


def open_listeners(site: Site, inherited: list[Listener]) -> None:
    """Binds. Raises BindError or ConfigError and leaves nothing behind."""
    config = site.config
    admin = [listener for listener in inherited if listener.is_at(config.admin_bind)]
    public = [listener for listener in inherited if listener not in admin]
    # With reuse_port a predecessor hands over what cannot be bound twice, and the rest is bound here.
    kept = {name: each for name in config.bind for each in public if config.reuse_port and each.is_at([name])}
    if len(kept) < len(public):
        site.listeners = public
    else:
        site.listeners = _bind(config, config.bind, patient=True, log=site.log, kept=kept)
    try:
        site.admin = admin or _bind(config, config.admin_bind, patient=True, log=site.log, admin=True)
    except BaseException:
        _discard(site.listeners)
        raise


def set_title(site: Site, role: str) -> None:
    title.set_title(f"tricorn: {role} [{site.config.proc_name or site.app.app_uri}]")


def open_pages(site: Site) -> None:
    # For twice the workers there can be: those that leave still have theirs while their successors boot.
    site.pages = Pages(_page_bytes(site), 2 * _most_workers(site.config))


def settle_memory() -> None:
    """What exists now is no garbage: keeps the workers' collectors from writing to the pages it is on."""
    gc.collect()
    gc.freeze()


def close(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.close()


def remove_files(site: Site) -> None:
    for listener in site.all_listeners():
        listener.remove_file()


class Generations:
    """The site that serves, and the one that is being tried."""

    def __init__(self, sources: Sources, environment: Environment, first: Site) -> None:
        self._sources = sources
        self._environment = environment
        self._sites = {1: first}
        self._last = 1
        self.current = first
        """What is in force: of the newest generation that was not rolled back."""
        self.inherits = False
        """The listeners came from outside, and `bind` is not used."""

    def __getitem__(self, generation: int) -> Site:
        return self._sites[generation]

    def others(self, site: Site) -> list[Listener]:
        """The listeners that only other generations than this one have."""
        mine = site.all_listeners()
        return [each for other in self._sites.values() for each in other.all_listeners() if each not in mine]

    def prepare(self, *, configuration: bool) -> tuple[int, tuple[str, ...]]:
        """The number of the new generation, and what there is to warn about.

        Raises whatever a configuration can; then all is as it was.
        """
        old = self.current
        if configuration:
            loaded = load.load(self._sources)
            site, warnings = self._from(loaded, old), loaded.warnings
        else:
            site, warnings = replace(old, app=self._application(old.config, old)), ()
        self._last += 1
        self._sites[self._last] = site
        self.current = site
        return self._last, warnings

    def commit(self, generation: int) -> None:
        """Only this generation is needed from now on."""
        site = self._sites[generation]
        for number in [number for number in self._sites if number != generation]:
            self._abandon(self._sites.pop(number), kept=site)

    def roll_back(self, generation: int) -> None:
        failed = self._sites.pop(generation)
        self.current = self._sites[max(self._sites)]
        self._restore(self.current, failed)

    def _from(self, loaded: Loaded, old: Site) -> Site:
        config = loaded.config
        check(config)
        try:
            self._environment.enter(config)
            site = prepare(config, logs.make(config), self._application(config, old))
            self._listen(site, old)
        except BaseException:
            self._environment.enter(old.config)
            old.log = logs.make(old.config)
            raise
        self._share_pages(site, old)
        return site

    def _listen(self, site: Site, old: Site) -> None:
        config = site.config
        if self.inherits:
            site.listeners = old.listeners
        else:
            kept = {listener.name: listener for listener in old.listeners}
            if config.reuse_port != old.config.reuse_port:
                kept = {}
            site.listeners = _bind(config, config.bind, patient=False, log=site.log, kept=kept)
            if config.backlog != old.config.backlog and not config.reuse_port:
                for listener in kept.values():
                    listener.socket.listen(config.backlog)
        try:
            kept = {listener.name: listener for listener in old.admin}
            site.admin = _bind(config, config.admin_bind, patient=False, log=site.log, admin=True, kept=kept)
        except BaseException:
            _discard([listener for listener in site.listeners if listener not in old.listeners])
            raise

    def _application(self, config: Config, old: Site) -> Application:
        app = Application(config)
        if config.preload_app and old.app.app_uri == app.app_uri:
            app.callable = old.app.callable
        return app

    def _share_pages(self, site: Site, old: Site) -> None:
        enough = _most_workers(old.config) >= _most_workers(site.config)
        if enough and old.pages is not None and old.pages.size == _page_bytes(site):
            site.pages = old.pages
        else:
            open_pages(site)

    def _restore(self, site: Site, failed: Site) -> None:
        self._abandon(failed, kept=site)
        if failed.config is site.config:
            return
        with suppress(ConfigError):  # it was entered before; if its directory is gone meanwhile, so be it
            self._environment.enter(site.config)
        site.log = logs.make(site.config)

    def _abandon(self, site: Site, *, kept: Site) -> None:
        _discard([listener for listener in site.all_listeners() if listener not in kept.all_listeners()])


def _bind(
    config: Config,
    addresses: tuple[str, ...],
    *,
    patient: bool,
    log: Logger,
    admin: bool = False,
    kept: dict[str, Listener] | None = None,
) -> list[Listener]:
    """Listens on all addresses, or raises and leaves nothing behind; takes those that are open already."""
    kept = kept or {}
    open_all = reuse_port.reserve if config.reuse_port and not admin else sockets.listen
    fresh = open_all(
        [name for name in addresses if name not in kept],
        backlog=config.backlog,
        umask=config.umask,
        owner=(config.uid, config.gid),
        attempts=sockets.BIND_ATTEMPTS if patient else 1,
        log=log,
    )
    opened = kept | {listener.name: listener for listener in fresh}
    return [opened[name] for name in dict.fromkeys(addresses)]


def _discard(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.close()
        listener.remove_file()


def _preload(site: Site) -> None:
    if site.worker_class in workers.GREEN:
        patching.patch(site.worker_class, site.log)
        if site.config.green_drivers:
            from tricorn.green import drivers

            # Nothing is counted here: a connection that the arbiter makes is nobody's.
            drivers.install(site.worker_class, site.log, None)
    try:
        site.app.wsgi()
    except AppImportError:
        raise
    except Exception as error:
        site.log.exception("Exception while the application was loaded")
        raise BootError(f"Worker failed to boot. ({type(error).__name__}: {error})") from None
    finally:
        patching.take_signals_back()


def _page_bytes(site: Site) -> int:
    from tricorn.workers import native

    return native.scoreboard_bytes(native.entries(site.config, site.worker_class))


def _most_workers(config: Config) -> int:
    return config.workers + SPARE_PAGES
