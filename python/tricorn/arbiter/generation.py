"""All that the workers of one generation are started with."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence

from tricorn import import_hooks
from tricorn import log as logs
from tricorn.arbiter import hooks
from tricorn.arbiter.listeners import reuse_port, sockets
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.commands import Level
from tricorn.arbiter.policy.settings import Policy
from tricorn.config.addresses import Address, parse
from tricorn.config.config import Config
from tricorn.config.doors import Door
from tricorn.config.load import Loaded
from tricorn.errors import AppImportError, BootError, ConfigError, shown
from tricorn.gateway import interfaces
from tricorn.log import Logger
from tricorn.record import replace
from tricorn.tls import certificates, from_settings
from tricorn.tls.certificates import Certificates
from tricorn.tls.tickets import Tickets
from tricorn.unpatched import os, time
from tricorn.workers import boot_failure, native, privileges, registry, title
from tricorn.workers.application import Application
from tricorn.workers.base import Worker
from tricorn.workers.registry import AUTO


class Generation:
    """One load of the configuration and the application."""

    def __init__(
        self, config: Config, worker_class: type[Worker], log: Logger, app: Application, files: tuple[str, ...] = ()
    ) -> None:
        self.config = config
        self.worker_class = worker_class
        """The class of `auto` if the application is not loaded here."""
        self.log = log
        self.app = app
        self.reason = ""
        """Why it is that class, if it was chosen by `auto`."""
        self.files = files
        """The files that settings were read from, the weakest first."""
        self.began = time.monotonic()
        """When its preparation did."""
        self.listeners: list[Listener] = []
        self.admin: list[Listener] = []
        self.pages: Pages | None = None
        self.certificates: Certificates | None = None
        """Absent if nothing speaks TLS."""
        self.log_level: Level | None = None
        """Set over the control socket, for the workers of this generation."""

    @property
    def policy(self) -> Policy:
        return Policy.of(self.config)

    def all_listeners(self) -> list[Listener]:
        return [*self.listeners, *self.admin]

    def open_listeners(self, inherited: list[Listener]) -> None:
        """Binds. Raises BindError or ConfigError and leaves nothing behind."""
        config, doors = self.config, self.config.doors
        admin = [listener for listener in inherited if listener.is_at(map(parse, config.admin_bind))]
        public = [listener for listener in inherited if listener not in admin]
        # With reuse_port a predecessor hands over what cannot be bound twice, and the rest is bound here.
        addresses = [door.address for door in doors if config.reuse_port]
        kept = {address: each for address in addresses for each in public if each.is_at([address])}
        if len(kept) < len(public):
            self.listeners = sockets.with_doors(public, doors, tls=config.has_certificate, protocol=config.spoken)
        else:
            self.listeners = bind(config, doors, patient=True, log=self.log, kept=kept)
        try:
            self.admin = admin or bind(config, config.admin_doors, patient=True, log=self.log, admin=True)
        except BaseException:
            discard(self.listeners)
            raise

    def open_certificates(self, tickets: Tickets) -> None:
        """Raises ConfigError if those of the configuration cannot be used."""
        self.certificates = certificates.make(self.config, tickets, self.log)

    def open_pages(self) -> None:
        self.pages = Pages.roomy(self.page_bytes(), self.page_count())

    def load_application(self) -> None:
        """Loads the application in this process. Raises whatever its modules raise."""
        try:
            self.worker_class.patch_library(self.log)
            self.worker_class.patch_drivers(self.log, self.config)
            self.app.wsgi()
        finally:
            hooks.take_signals_back()
            logs.enable(self.log)

    def choose_class(self) -> bool:
        """Finds the class of `auto` by the application, if that is loaded here. Returns whether it did."""
        if self.worker_class.alias != AUTO or self.app.callable is None:
            return False
        chosen, self.reason = interfaces.class_for(self.app.callable, self.app.name)
        self.worker_class = registry.load(registry.choose(chosen, self.config.threads))
        _import_class(self.worker_class, self.config, self.log)
        return True

    def prepare_forks(self) -> None:
        """Last of all, when hooks and the configuration have imported what they want: workers inherit what is here."""
        if self.app.callable is None:
            self.worker_class.import_for_application(self.config)
        self.worker_class.survey()
        _freeze()

    def page_count(self) -> int:
        """Returns pages for twice the workers: those that leave still have theirs while their successors boot."""
        return 2 * self.policy.max_workers

    def page_bytes(self) -> int:
        return native.scoreboard_bytes(self.worker_class.at_once(self.config))

    def set_title(self, role: str) -> None:
        title.set_title(f"{self.config.title_prefix}: {role} [{self.config.proc_name or self.app.app_uri}]")

    def describe(self, workers: int, kind: str = "") -> str:
        """Makes the line of the log when all of its workers serve; `kind` is the class that `auto` became in them."""
        alias = kind if self.worker_class.alias == AUTO else self.worker_class.alias
        alias += " " if alias else ""
        noun, verb = ("worker", "serves") if workers == 1 else ("workers", "serve")
        where = " ".join(str(listener) for listener in self.listeners)
        took = f"{time.monotonic() - self.began:.1f} s"
        named = [file for file in self.files if not file.startswith(OWN_MODULES)]
        configured = f", configured by {' and '.join(named)}" if named else ""
        return f"Ready: {workers} {alias}{noun} {verb} {self.app.name} at {where} ({took}{configured})"

    def close(self) -> None:
        close(self.all_listeners())

    def remove_files(self) -> None:
        for listener in self.all_listeners():
            listener.remove_file()


OWN_MODULES = "python:tricorn."
"""Prefix of configurations that belong to tricorn itself."""


def check(config: Config) -> None:
    """Checks what only the arbiter, the workers and the core can judge. Raises ConfigError; touches nothing."""
    if not registry.is_foreign(config.worker_class):  # else it is imported in the environment of the configuration
        registry.loop_of(registry.choose(config.worker_class, config.threads), config)
    from_settings.check(config)
    privileges.check(config.uid, config.gid, initgroups=config.initgroups)
    if config.reload:
        from tricorn.workers import reloader

        reloader.check(config.reload_engine)
    if config.refork:
        _check_refork(config)
    native.check(config)


def _check_refork(config: Config) -> None:
    alias = registry.choose(config.worker_class, config.threads)
    if not config.molds:
        raise ConfigError("refork needs a mold: set preload_app = mold, and do not use it with reload.")
    if alias not in (*registry.REFORKED, AUTO):
        raise ConfigError(f"refork works with the worker classes {' and '.join(registry.REFORKED)}, not with {alias}.")
    if 0 < config.max_requests <= config.refork[0]:
        raise ConfigError(
            f"refork = {config.refork[0]} is never reached: workers are replaced after {config.max_requests} requests "
            "(max_requests). Set it lower than max_requests."
        )
    if (config.uid, config.gid) != (os.geteuid(), os.getegid()):
        raise ConfigError(
            "refork needs workers that run as the user and the group of the server: a worker that has given up root "
            "cannot fork workers that begin as root. Start the server as that user."
        )


def adapted(loaded: Loaded) -> Loaded:
    """Lets a worker class of the user's change settings; in the environment of the configuration."""
    config = registry.adapted(loaded.config)
    return loaded if config is loaded.config else replace(loaded, config=config)


def prepare(loaded: Loaded, log: Logger, app: Application) -> Generation:
    """Everything but the listeners, which are bound after the hook `on_starting`."""
    config = loaded.config
    worker_class = registry.kind_of(config)
    import_hooks.keep(worker_class.brings)
    _import_class(worker_class, config, log)
    generation = Generation(config, worker_class, log, app, files=loaded.files)
    if config.preloads and generation.app.callable is None:
        _preload(generation)
    if not generation.choose_class() and registry.is_foreign(config.worker_class):
        generation.reason = registry.dotted(worker_class)
    return generation


def _import_class(worker_class: type[Worker], config: Config, log: Logger) -> None:
    """Imports the class before the fork, so that workers share its pages."""
    worker_class.setup()
    worker_class.check_config(config, log)
    worker_class.import_shared(config)
    if registry.is_foreign(config.worker_class):
        from tricorn.workers import foreign

        for note in foreign.notes(worker_class):
            log.warning("%s", note)


def bind(
    config: Config,
    doors: Sequence[Door],
    *,
    patient: bool,
    log: Logger,
    admin: bool = False,
    kept: Mapping[Address, Listener] | None = None,
) -> list[Listener]:
    """Listens at all doors, or raises and leaves nothing behind; takes the sockets that are open already."""
    kept = kept or {}
    fresh = sockets.listen(
        [door for door in doors if door.address not in kept],
        backlog=config.backlog,
        umask=config.umask,
        owner=(config.uid, config.gid),
        attempts=sockets.BIND_ATTEMPTS if patient else 1,
        log=log,
        open_one=reuse_port.reserve if config.reuse_port and not admin else None,
    )
    opened = {**kept, **{listener.door.address: listener for listener in fresh if listener.door is not None}}
    return [opened[door.address].speaking(door) for door in doors if door.address in opened]  # fd:// stands alone


def close(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.close()


def discard(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.close()
        listener.remove_file()


def _freeze() -> None:
    """Takes what exists from the garbage collector, so that the workers' collectors do not write to its pages.

    What the start has freed goes back to the kernel. After a reload what was frozen before is looked at once more: the
    modules of the old configuration may be garbage by now.
    """
    # `logging` asks this of a line's only argument. The first answer walks along all classes of mappings, and is kept.
    isinstance(0, Mapping)
    gc.unfreeze()
    gc.collect()
    native.trim_heap()
    gc.freeze()


def _preload(generation: Generation) -> None:
    try:
        generation.load_application()
    except AppImportError:
        raise
    except Exception as error:
        report(generation, error)
        raise BootError("Worker failed to boot.") from None  # the log has said why


def report(generation: Generation, error: BaseException) -> None:
    """Says why the application cannot be loaded in this process. Called in an exception handler."""
    if text := boot_failure.sentence(error, generation.app.app_uri):
        generation.log.error("%s", text)
    else:
        generation.log.error("Exception while loading the application", exc_info=shown(error))
