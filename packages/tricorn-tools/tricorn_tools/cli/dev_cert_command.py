"""`tricorn dev-cert`: a certificate that this machine signs for itself, so that HTTPS can be tried."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import sys
from collections.abc import Sequence

from tricorn.errors import ConfigError
from tricorn.self_signed import HERE, make

MOST_DAYS = 825
"""Apple's clients refuse certificates that last longer."""
_NAME = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?", re.IGNORECASE)


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    try:
        names = [_checked(name) for name in dict.fromkeys((*HERE, *given.names))]
        made = "".join(make(names, given.days))
        if given.out is None:
            sys.stdout.write(made)
            return 0
        _write(given.out, made)
    except ConfigError as error:
        return error.report()
    print(f"{given.out}: certificate and key for {', '.join(names)}, {given.days} days.")
    print(f"Serve with it:  tricorn --certfile {given.out} -b https://127.0.0.1:8443 main:app")
    print(f"Ask:            curl --cacert {given.out} https://localhost:8443/")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tricorn dev-cert",
        description="Print a self-signed certificate and its key (PEM) for localhost, 127.0.0.1, ::1 and the names "
        "given. For development only: clients must be configured to trust it.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="further names or addresses")
    parser.add_argument("-o", "--out", metavar="FILE", help="write to this file, readable only by its owner")
    parser.add_argument("--days", type=_days, default=30, metavar="DAYS", help="validity in days (30)")
    return parser


def _write(path: str, text: str) -> None:
    try:
        if os.path.exists(path):
            raise ConfigError(f"{path} exists. Remove it, or choose another file.")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None


def _checked(name: str) -> str:
    if _is_address(name) or _NAME.fullmatch(name):
        return name
    raise ConfigError(f"Expected a name such as app.test or *.app.test, or an IP address, got {name!r}.")


def _is_address(name: str) -> bool:
    try:
        return "%" not in str(ipaddress.ip_address(name))  # a certificate has no zones
    except ValueError:
        return False


def _days(text: str) -> int:
    days = int(text) if text.isascii() and text.isdecimal() else 0
    if not 0 < days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST_DAYS} days, not {text!r}")
    return days
