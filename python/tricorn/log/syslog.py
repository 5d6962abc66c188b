"""Syslog: the handlers of the two logs, and the frame that the core puts around access lines."""

from __future__ import annotations

import logging
import logging.handlers
import time
from typing import TYPE_CHECKING

from tricorn.config import collectors
from tricorn.config.settings.collectors import FACILITIES
from tricorn.log.formats import AccessLine, Plain
from tricorn.log.outlet import Outlet
from tricorn.log.targets import RealLock
from tricorn.unpatched import os, socket

if TYPE_CHECKING:
    from tricorn.config.config import Config

INFO = 6
"""The severity of access lines."""
FORMAT = "[%(process)d] %(message)s"
"""gunicorn's. A logger class may have another one."""


class SyslogAccess(AccessLine):
    """The formatter of access lines; the core makes the same ones."""


class Syslog(RealLock, logging.handlers.SysLogHandler):
    """A message is what SysLogHandler makes of a record; it is sent without a wait, and counted if it is lost."""

    _gunicorn = True

    def __init__(self, config: Config, log: str, outlet: Outlet) -> None:
        """`log`: error or access. Nothing of SysLogHandler's is run here, for it would connect, and wait."""
        logging.Handler.__init__(self)
        self.outlet = outlet
        self.address, self.facility = outlet.address or "", FACILITIES[config.syslog_facility]
        self.name_of_log = log
        self.prefix = config.syslog_prefix or (config.proc_name or "").replace(":", ".")
        self.is_rfc5424 = config.syslog_format == "rfc5424"

    def own_formatter(self, inner: logging.Formatter | None, fmt: str) -> logging.Formatter:
        """Makes a formatter of text; `inner` makes the message where that is an object."""
        kind = SyslogAccess if self.name_of_log == "access" else Plain
        if inner is not None:
            return inner
        if self.is_rfc5424:
            return kind("%(message)s")
        return kind(f"gunicorn.{self.prefix}.{self.name_of_log}: ".replace("%", "%%") + fmt)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            severity = self.priority_names[self.mapPriority(record.levelname)]
            self.outlet.send(self._framed(severity, self.format(record)))
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        self.outlet.lose()

    def flush(self) -> None:
        self.outlet.flush()

    def close(self) -> None:
        self.outlet.close()
        logging.Handler.close(self)

    def head_and_tail(self) -> tuple[bytes, bytes | None, bytes, bool]:
        """Returns the frame of an access line: before it, behind its time, at its end; whether its length is first."""
        priority = self.facility << 3 | INFO
        if self.is_rfc5424:
            return f"<{priority}>1 ".encode(), self._behind_time(), b"", self.outlet.is_stream
        head = f"<{priority}>gunicorn.{self.prefix}.access: [{os.getpid()}] "
        return head.encode(), None, b"\0", False

    def _framed(self, severity: int, text: str) -> bytes:
        priority = self.facility << 3 | severity
        if not self.is_rfc5424:
            return f"<{priority}>{text}\0".encode("utf-8", "backslashreplace")
        now = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
        message = f"<{priority}>1 {when}".encode() + self._behind_time() + text.encode("utf-8", "backslashreplace")
        return b"%d %b" % (len(message), message) if self.outlet.is_stream else message

    def _behind_time(self) -> bytes:
        """HOSTNAME, APP-NAME, PROCID, MSGID and no structured data (RFC 5424, section 6)."""
        host, app = _name(socket.gethostname(), 255), _name(f"gunicorn.{self.prefix}", 48)
        return f" {host} {app} {os.getpid()} {self.name_of_log} - ".encode()


def handlers(config: Config, fmt: str) -> tuple[Syslog, Syslog | None]:
    """Makes the handlers of the two logs, which share a socket."""
    outlet = Outlet(collectors.syslog(config.syslog_addr), keeps=True)
    made = [Syslog(config, "error", outlet), Syslog(config, "access", outlet)]
    for handler in made:
        handler.setFormatter(handler.own_formatter(_json(config, handler), fmt))
    return made[0], None if config.disable_redirect_access_to_syslog else made[1]


def _json(config: Config, handler: Syslog) -> logging.Formatter | None:
    if config.log_format != "json":
        return None
    from tricorn.log.json_lines import JsonAccessFormatter, JsonFormatter

    inner = JsonAccessFormatter() if handler.name_of_log == "access" else JsonFormatter()
    return inner if handler.is_rfc5424 else Wrapped(handler, inner)


class Wrapped(logging.Formatter):
    """An object as the message of gunicorn's line."""

    as_the_core = True

    def __init__(self, handler: Syslog, inner: logging.Formatter) -> None:
        super().__init__()
        self._handler, self._inner = handler, inner

    def format(self, record: logging.LogRecord) -> str:
        handler = self._handler
        return f"gunicorn.{handler.prefix}.{handler.name_of_log}: [{record.process}] {self._inner.format(record)}"


def _name(text: str, most: int) -> str:
    """PRINTUSASCII without a space, or the nil value."""
    return "".join(char if "!" <= char <= "~" else "_" for char in text)[:most] or "-"
