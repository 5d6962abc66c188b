"""Faults of TLS: what addresses say, whose keys are in force, and when they change."""

from __future__ import annotations

from tests.mutants.fault import Fault

ARBITER = "python/tricorn/arbiter"
CONFIG = "python/tricorn/config"
UNIT = "tests/unit/arbiter"
CORE = "crates/tricorn-io"
SUITE = f"{CORE} suite"

TLS = (
    Fault(
        "the_first_end",
        "the metric has the end of the certificate that ends first",
        "python/tricorn/tls/certificates.py",
        "max(0, min(each",
        "max(0, max(each",
        ("tests/unit/tls/test_certificates.py",),
    ),
    Fault(
        "tls_http_beside_a_certificate",
        "an address that says http:// is in the clear, whatever certificate there is",
        f"{CONFIG}/doors.py",
        "door if door.tls is not None else replace(door, tls=tls)",
        "replace(door, tls=tls)",
        ("tests/unit/config/test_doors.py",),
    ),
    Fault(
        "tls_one_address_one_scheme",
        "an address has one scheme",
        f"{CONFIG}/doors.py",
        "if known != door:",
        "if False:",
        ("tests/unit/config/test_doors.py",),
    ),
    Fault(
        "tls_the_hook_does_not_ask",
        "a hook alone asks for no TLS, as under gunicorn",
        f"{CONFIG}/config.py",
        "return self.certfile is not None or bool(self.certificate)",
        "return not self.is_default('ssl_context') or self.certfile is not None or bool(self.certificate)",
        ("tests/unit/tls/test_from_settings.py",),
    ),
    Fault(
        "tls_methods_come_back",
        "the module ssl is as before when the hook has run",
        "python/tricorn/tls/from_context.py",
        "delattr(kind, name)",
        "pass",
        ("tests/unit/tls/test_from_context.py",),
    ),
    Fault(
        "tls_keys_that_are_known",
        "a context that was made before the hook ran is refused",
        "python/tricorn/tls/from_context.py",
        "if notes is None or not notes.pairs:",
        "if notes is None:",
        ("tests/unit/tls/test_from_context.py",),
    ),
    Fault(
        "tls_sockets_are_kept",
        "a reload that changes a scheme closes no socket",
        "python/tricorn/arbiter/listeners/sockets.py",
        "return [each for each in listeners if each.socket not in sockets]",
        "return [each for each in listeners if each not in list(kept)]",
        (f"{UNIT}/listeners/test_sockets.py",),
    ),
    Fault(
        "tls_broken_files_once",
        "files that are broken are told of once",
        "python/tricorn/tls/certificates.py",
        "self._look = found\n            else:",
        "pass\n            else:",
        ("tests/unit/tls/test_certificates.py",),
    ),
    Fault(
        "tls_a_second_look",
        "a certificate that comes a moment before its key is no error",
        "python/tricorn/tls/certificates.py",
        "if found == self._tried:",
        "if True:",
        ("tests/unit/tls/test_certificates.py",),
    ),
    Fault(
        "tls_links_are_followed",
        "a link that leads to another file is a change",
        "python/tricorn/tls/files.py",
        "found = os.stat(path)",
        "found = os.lstat(path)",
        ("tests/unit/tls/test_files.py",),
    ),
    Fault(
        "tls_keys_of_before_open",
        "a ticket is opened after its key was changed",
        "python/tricorn/tls/tickets.py",
        "keys = Keys(keys.next, os.urandom(SIZE), keys.current, keys.since + half)",
        "keys = Keys(keys.next, os.urandom(SIZE), os.urandom(SIZE), keys.since + half)",
        ("tests/unit/tls/test_tickets.py",),
    ),
    Fault(
        "tls_successors_resume",
        "a successor changes the keys of tickets when its predecessor does",
        "python/tricorn/tls/tickets.py",
        "return cls(Keys(current, following, previous, since))",
        "return cls(Keys(current, following, previous, since + 1))",
        ("tests/unit/tls/test_tickets.py",),
    ),
    Fault(
        "tls_chains_are_short",
        "a client with many certificates is refused before they are verified",
        f"{CORE}/src/tls/chains.rs",
        "count > MOST",
        "count > 100",
        (f"{SUITE} a_client_has_a_chain",),
    ),
    Fault(
        "tls_sessions_have_a_bound",
        "what all sessions hold for their sockets has a limit",
        f"{CORE}/src/reactor/connections/session_limit.rs",
        "self.memory.as_ref().is_some_and(SessionMemory::is_over)",
        "false",
        (f"{SUITE} beyond_the_memory_of_sessions_those",),
    ),
    Fault(
        "tls_less_is_sealed_ahead",
        "beyond that limit a reply is sealed a record at a time",
        f"{CORE}/src/secured.rs",
        "if self.memory.is_over() { RECORD } else { AHEAD }",
        "AHEAD",
        (f"{SUITE} beyond_the_memory_of_sessions_replies",),
    ),
    Fault(
        "tls_resumed_sessions_know_the_server",
        "the server's certificate is told of a session that was resumed",
        f"{CORE}/src/tls/link.rs",
        "self.shaking.take().map(|shaking| shaking.asked).unwrap_or_default()",
        "self.shaking.take().map(|shaking| Asked { own: None, ..shaking.asked }).unwrap_or_default()",
        (f"{SUITE} a_session_that_is_resumed",),
    ),
    Fault(
        "tls_a_ticket_for_a_ticket",
        "who has spent a ticket gets one, and not two",
        f"{CORE}/src/tls/tickets.rs",
        "if is_resumed { AFTER_RESUMPTION } else { TICKETS }",
        "TICKETS",
        (f"{CORE} lib tickets", f"{SUITE} tickets"),
    ),
    Fault(
        "tls_idle_hubs_shake",
        "a hub that has nothing else to do makes handshakes itself",
        f"{CORE}/src/engine/jobs.rs",
        "core.reactor.has_short_job(AT_HUB)",
        "false",
        (f"{SUITE} tls",),
    ),
    Fault(
        "tls_long_handshakes_elsewhere",
        "a hub makes no handshake that is likely to be long",
        f"{CORE}/src/reactor/jobs.rs",
        "self.longest <= most",
        "true",
        (f"{CORE} lib jobs",),
    ),
)
