"""Who sent a request that came through front ends which may speak for others (`forwarded_allow_ips`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

REMEMBERED = 1024


def client_finder(forwarded_allow_ips: str) -> Callable[[str], str | None]:
    """The function from an X-Forwarded-For to the client: the last address that is no front end of ours.

    If all of them are, the first. None for a value whose addresses cannot be read up to there: a front end writes
    nothing else, and what its client wrote does not count.
    """
    parts = [part.strip() for part in forwarded_allow_ips.split(",") if part.strip()]
    everybody = "*" in parts
    blocks = [ip_network(part) for part in parts if part != "*"]

    @lru_cache(REMEMBERED)
    def client(forwarded: str) -> str | None:
        found = None
        for part in reversed(forwarded.split(",")):
            address = address_of(part)
            if address is None:
                return found
            found = address
            if not everybody and not _is_in(address, blocks):
                break
        return found

    return client


def address_of(text: str) -> str | None:
    """The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; None in anything else."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def _is_in(text: str, blocks: list[IPv4Network | IPv6Network]) -> bool:
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in block for block in blocks)
