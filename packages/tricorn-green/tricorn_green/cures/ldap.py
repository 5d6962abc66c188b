"""python-ldap: everything goes through one method, which takes the lock of its object and calls libldap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn_green.cures.replace import waiting
from tricorn_green.offload import How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground


def apply(module: Any, _: Ground) -> None:
    """Treats `ldap.ldapobject`. The lock is a greenlet's and stays with the caller; a thread makes the call."""
    kind = module.SimpleLDAPObject
    plain = kind._ldap_call
    if getattr(plain, "__tricorn__", False):
        return

    def _ldap_call(self: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        how = How(name=f"{kind.__qualname__}.{getattr(function, '__name__', '_ldap_call')}")
        return plain(self, waiting(function, how), *args, **kwargs)

    _ldap_call.__tricorn__ = True  # type: ignore[attr-defined]
    kind._ldap_call = _ldap_call
