"""tricorn on systems without the native core: checks the configuration, and leaves serving to a development server.

The core exists for Linux. Elsewhere the package installs without it, so that one requirements file serves every laptop
of a team: `--check-config`, `--print-config` and `tricorn init` work as on Linux, and `tricorn main:app` runs the
application under uvicorn (ASGI) or Werkzeug (WSGI), if they are installed.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from tricorn.arbiter.environment import Environment
from tricorn.config import addresses
from tricorn.config.shown import page
from tricorn.errors import ConfigError, ExitCode
from tricorn.gateway import interfaces
from tricorn.workers import boot_failure, versions
from tricorn.workers.application import Application

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.config.load import Loaded, Sources

SERVERS = {"ASGI": "uvicorn", "WSGI": "werkzeug"}
"""Development servers, by the interface of the application."""


def system() -> str:
    """Returns the name of this system and processor, as `macOS on arm64`."""
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    return f"{name} on {platform.machine()}" if platform.machine() else name


def refuse(command: str) -> ExitCode:
    """Explains that a command needs the core. Returns the exit status."""
    return ConfigError(f"{command} needs tricorn's native core, which is not available for {system()}.").report()


def run(sources: Sources, loaded: Loaded) -> int:
    """Prints or checks the configuration, or serves for development. Returns the exit status."""
    config = loaded.config
    for warning in loaded.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    if config.print_config:
        print(page(config, loaded.files), flush=True)
    try:
        application = load(config, sources.application)
    except (Exception, SystemExit) as error:
        boot_failure.report(error, config.wsgi_app or "")
        return ExitCode.CONFIG
    if not (config.check_config or config.print_config):
        serve(config, application)
    return ExitCode.OK


def load(config: Config, given: Any = None) -> Callable[..., Any]:
    """Loads the application in the environment of the configuration; `given` is that of a program's own.

    Raises what its modules raise, and TricornError.
    """
    Environment().enter(config)
    return Application(config, given).wsgi()


def application() -> Callable[..., Any]:
    """Loads the application of this command line: the factory that uvicorn calls in each process that it reloads."""
    from tricorn.compat.assigned import FileSources

    return load(FileSources.here(sys.argv[1:]).load().config)


def serve(config: Config, application: Callable[..., Any]) -> None:
    """Serves with the development server for the application's interface, until Ctrl-C. Raises ConfigError."""
    interface = interfaces.interface_of(application) or "WSGI"
    server = SERVERS.get(interface)
    if server is None:
        _refuse(f"{interface} applications cannot be served without it")
    if (version := versions.of_package(server)) is None:  # `import uvicorn` finds a stand-in for configuration files
        _refuse(f"install {server} to serve the application for development: pip install {server}")
    print(
        f"tricorn has no native core for {system()}: {server} {version} "
        "serves the application, for development only. Workers, timeouts and diagnosis need Linux.",
        file=sys.stderr,
    )
    _SERVE[server](config, application)


def _refuse(remedy: str) -> NoReturn:
    raise ConfigError(f"tricorn has no native core for {system()}; {remedy}.")


def _with_uvicorn(config: Config, application: Callable[..., Any]) -> None:
    uvicorn = import_module("uvicorn")
    settings: dict[str, Any] = {
        "root_path": config.root_path,
        "ssl_certfile": config.certfile,
        "ssl_keyfile": config.keyfile,
    }
    match _address(config):
        case addresses.UnixAddress(path):
            settings["uds"] = path
        case addresses.TcpAddress(host, port):
            settings |= {"host": host, "port": port}
    if config.reload:
        # Each process of uvicorn loads the application anew.
        uvicorn.run(f"{__name__}:application", factory=True, reload=True, interface="asgi3", **settings)
    else:
        uvicorn.run(application, **settings)


def _with_werkzeug(config: Config, application: Callable[..., Any]) -> None:
    serving = import_module("werkzeug.serving")
    certificates = (config.certfile, config.keyfile or config.certfile) if config.certfile else None
    match _address(config):
        case addresses.UnixAddress(path):
            host, port = f"unix://{path}", 0
        case addresses.TcpAddress(host, port):
            pass
    serving.run_simple(
        host, port, application, threaded=True, use_reloader=bool(config.reload), ssl_context=certificates
    )


_SERVE = {"uvicorn": _with_uvicorn, "werkzeug": _with_werkzeug}


def _address(config: Config) -> addresses.TcpAddress | addresses.UnixAddress:
    """Returns the first address of `bind`. Raises ConfigError for one that a development server cannot listen on."""
    match addresses.parse(config.bind[0]):
        case addresses.FdAddress(fd):
            _refuse(f"bind: expected an address, found the descriptor {fd}")
        case address:
            return address
