"""Apache httpd before servers under test, with Debian's own apache2.conf and modules."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from tests.harness.balancers import Running, program
from tests.harness.wire import Wire

DEBIAN = Path("/etc/apache2")
ENABLED = "# +a2enmod (.+)"
"""What a file of `tricorn init` says that it needs."""
VARIABLES = {"APACHE_RUN_USER": "www-data", "APACHE_RUN_GROUP": "www-data"}


def needs(site: str) -> list[str]:
    """The modules that a printed file names."""
    return [name for line in re.findall(ENABLED, site) for name in line.split()]


def apache_around(site: str, directory: Path, *modules: str, check: bool = False) -> list[str]:
    """The command that runs Apache as Debian has it, with this site alone, and these modules besides Debian's own."""
    found = program("apache2")
    for name in ("mods-enabled", "sites-enabled", "conf-enabled"):
        (directory / name).mkdir(exist_ok=True)
    for path in (DEBIAN / "mods-enabled").iterdir():
        _link(path.resolve(), directory)
    _enable(modules, directory)
    (directory / "ports.conf").write_text("")
    (directory / "sites-enabled" / "site.conf").write_text(site)
    variables = {**VARIABLES, **{f"APACHE_{name}_DIR": str(directory) for name in ("RUN", "LOCK", "LOG")}}
    variables["APACHE_PID_FILE"] = str(directory / "apache.pid")
    environ = [f"{name}={value}" for name, value in variables.items()]
    options = ["-d", str(directory), "-f", str(DEBIAN / "apache2.conf"), "-c", "ServerName localhost"]
    # Its workers are another user's, who may not open this process's stderr by its name: its master opens it.
    end = ["-t"] if check else ["-c", "ErrorLog /dev/stderr", "-DFOREGROUND"]
    return [program("env"), *environ, found, *options, *end]


def _enable(names: Iterable[str], directory: Path) -> None:
    """As a2enmod does: with what a module depends on."""
    for name in names:
        load = DEBIAN / "mods-available" / f"{name}.load"
        for line in re.findall(r"^# Depends: (.+)$", load.read_text(), re.MULTILINE):
            _enable(line.split(), directory)
        _link(load, directory)
        if load.with_suffix(".conf").exists():
            _link(load.with_suffix(".conf"), directory)


def _link(path: Path, directory: Path) -> None:
    link = directory / "mods-enabled" / path.name
    if not link.is_symlink():
        link.symlink_to(path)


def open_to_apache(directory: Path) -> None:
    """Lets another user reach what is in a directory of this one, as the operator of a socket does."""
    if os.geteuid() == 0:
        directory.chmod(0o711)


class Apache(Running):
    """A context manager: inside it Apache runs, with this site."""

    def __init__(self, site: str, port: int, directory: Path, *modules: str) -> None:
        super().__init__(apache_around(site, directory, *modules), port)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return False
        return True

    def at(self, port: int) -> Wire:
        return Wire(("127.0.0.1", port))
