"""The hook `ssl_context`: what it does to contexts of Python's module ssl is noted, and becomes a plan.

The core has TLS of its own, and no context of OpenSSL's reaches it. A context does not tell from which files it has its
keys, so the methods that are given files are replaced while the hook runs; everything else is read back from the
context that it returns. A hook that returns what the factory makes changes nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tricorn.errors import ConfigError, TricornError
from tricorn.record import replace
from tricorn.tls import ciphers
from tricorn.tls.plan import ASKS, VERSIONS, Pair, Plan, encrypted, is_encrypted
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Notes:
    """Record of what a context was given."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.pairs: list[Pair] = []
        self.ca_files: list[str] = []
        self.crl_files: list[str] = []
        self.ca_data: list[bytes] = []
        self.has_other_authorities = False
        """A directory, or the system's: they are read back."""
        self.alpn: list[str] | None = None


def plan(config: Config, settings: Plan) -> tuple[Plan, tuple[str, ...]]:
    """The plan that the hook makes of that of the settings, and warnings. Raises ConfigError."""
    origin = f"ssl_context (from {config.origin('ssl_context')})"
    with _recording() as contexts:
        try:
            context = config.ssl_context(config, lambda: _default(config, settings))
        except TricornError:
            raise
        except Exception as error:
            raise ConfigError(f"{origin} raised {type(error).__name__}: {error}.") from error
    if not isinstance(context, ssl.SSLContext):
        raise ConfigError(f"{origin} returned {type(context).__name__}; expected an ssl.SSLContext.")
    notes = contexts.get(id(context))
    if notes is None or not notes.pairs:
        raise ConfigError(
            f"{origin} returned a context without a known key: load_cert_chain() was not called in the hook. Create "
            "the context and load its certificate inside the hook."
        )
    if context.sni_callback is not None:
        raise ConfigError(
            f"{origin} sets sni_callback, which is not supported. List all certificates in `certificate`; the "
            "client's server name selects one."
        )
    return _read_back(config, settings, notes, origin)


def _default(config: Config, settings: Plan) -> ssl.SSLContext:
    """gunicorn's, of the settings."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=next(iter(settings.ca_files), None))
    for pair in settings.certificates:
        context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.VerifyMode(config.cert_reqs)
    if settings.min_version == "1.3":
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if config.ciphers is not None:
        context.set_ciphers(config.ciphers)
    return context


def _read_back(config: Config, settings: Plan, notes: Notes, origin: str) -> tuple[Plan, tuple[str, ...]]:
    context = notes.context
    low, high = _versions(context, origin)
    suites, warning = None, None
    if config.ciphers is not None or not ciphers.is_default(context):
        suites, warning = ciphers.suites_of_context(context, origin, low)
    made = replace(
        settings,
        certificates=tuple(notes.pairs),
        ca_files=() if notes.has_other_authorities else tuple(notes.ca_files),
        ca_data=_authorities(context) if notes.has_other_authorities else b"".join(notes.ca_data),
        crl_files=(*settings.crl_files, *notes.crl_files),
        asks=ASKS[int(context.verify_mode)],
        min_version=low,
        max_version=high,
        suites=suites,
        alpn=_alpn(notes.alpn, settings.alpn, origin),
        ticket_lifetime=0 if context.options & ssl.OP_NO_TICKET else settings.ticket_lifetime,
    )
    return made, (warning,) if warning else ()


def _versions(context: ssl.SSLContext, origin: str) -> tuple[str, str]:
    """The lowest and the highest version that the context speaks and we do."""
    known = {"1.2": (ssl.TLSVersion.TLSv1_2, ssl.OP_NO_TLSv1_2), "1.3": (ssl.TLSVersion.TLSv1_3, ssl.OP_NO_TLSv1_3)}
    low, high = context.minimum_version, context.maximum_version
    spoken = [
        name
        for name, (version, without) in known.items()
        if not context.options & without
        and (low is ssl.TLSVersion.MINIMUM_SUPPORTED or low <= version)
        and (high is ssl.TLSVersion.MAXIMUM_SUPPORTED or version <= high)
    ]
    if not spoken:
        raise ConfigError(
            f"{origin} allows neither TLS 1.2 nor TLS 1.3; other versions are not supported ({', '.join(VERSIONS)})."
        )
    return spoken[0], spoken[-1]


def _alpn(offered: list[str] | None, served: tuple[str, ...], origin: str) -> tuple[str, ...]:
    """The protocols that the context offers, in its order, without those that `http_protocols` does not serve."""
    if offered is None:
        return served
    found = tuple(name for name in offered if name in served)
    if not found:
        raise ConfigError(
            f"{origin} offers {', '.join(offered)} by ALPN, but http_protocols allows only {', '.join(served)}. "
            "Add to http_protocols what the context offers."
        )
    return found


def _authorities(context: ssl.SSLContext) -> bytes:
    return "".join(map(ssl.DER_cert_to_PEM_cert, context.get_ca_certs(binary_form=True))).encode()


@contextmanager
def _recording() -> Iterator[dict[int, Notes]]:
    """Contexts and what they are given until the end, by `id`."""
    found: dict[int, Notes] = {}

    def notes_of(context: ssl.SSLContext) -> Notes:
        return found.setdefault(id(context), Notes(context))

    # Methods and not the class: its own properties look for themselves by the class's name in the module, and a class
    # in its place would make them call themselves (gevent's RecursionError).
    kind: Any = ssl.SSLContext
    own = {name: vars(kind).get(name) for name in _NOTED}
    for name, note in _NOTED.items():
        setattr(kind, name, _noting(getattr(kind, name), note, notes_of))
    try:
        yield found
    finally:
        for name, method in own.items():
            if method is None:
                delattr(kind, name)  # it is the base class's again
            else:
                setattr(kind, name, method)


def _noting(
    method: Callable[..., Any], note: Callable[..., None], notes_of: Callable[[ssl.SSLContext], Notes]
) -> Callable[..., Any]:
    def noting(context: ssl.SSLContext, *args: Any, **named: Any) -> Any:
        note(notes_of(context), *args, **named)
        return method(context, *args, **named)

    return noting


def _note_chain(notes: Notes, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
    certificate, key = _path(certfile), _path(keyfile or certfile)
    if password is not None or is_encrypted(_read(key)):
        raise ConfigError(encrypted(key))
    notes.pairs.append(Pair(certificate, key))


def _note_authorities(notes: Notes, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
    if cafile is not None:
        path = _path(cafile)
        found = _read(path)
        if b"-----BEGIN X509 CRL-----" in found:
            notes.crl_files.append(path)
        if b"CERTIFICATE-----" in found:
            notes.ca_files.append(path)
    if isinstance(cadata, str):
        notes.ca_data.append(cadata.encode())
    notes.has_other_authorities |= capath is not None or (cadata is not None and not isinstance(cadata, str))


def _note_system(notes: Notes, *_: Any, **__: Any) -> None:
    notes.has_other_authorities = True


def _note_alpn(notes: Notes, alpn_protocols: Any) -> None:
    notes.alpn = list(alpn_protocols)


_NOTED: dict[str, Callable[..., None]] = {
    "load_cert_chain": _note_chain,
    "load_verify_locations": _note_authorities,
    "load_default_certs": _note_system,
    "set_default_verify_paths": _note_system,
    "set_alpn_protocols": _note_alpn,
}


def _path(given: Any) -> str:
    return os.path.abspath(os.fsdecode(given))


def _read(path: str) -> bytes:
    """Empty if it cannot be read: the method that is called next says why."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
