"""What settings of TLS mean, and which do not go together."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.config.config import Config
from tricorn.config.kinds import CertificateFiles, CertReqs
from tricorn.config.resolve import Raw, override, resolve
from tricorn.config.validators import Invalid
from tricorn.errors import ConfigError
from tricorn.tls import from_settings
from tricorn.tls.plan import Pair, Plan


def config(**values: object) -> Config:
    return override(resolve([]), {name: Raw(value, f"--{name}") for name, value in values.items()})


class TestValues:
    @pytest.mark.parametrize(
        ("raw", "number"),
        [(0, 0), ("2", 2), ("CERT_REQUIRED", 2), ("ssl.CERT_OPTIONAL", 1), ("none", 0), ("VerifyMode.CERT_NONE", 0)],
    )
    def test_cert_reqs(self, raw: object, number: int) -> None:
        assert CertReqs().parse(raw) == number

    def test_cert_reqs_of_pythons_module(self) -> None:
        import ssl

        assert CertReqs().parse(ssl.CERT_REQUIRED) == 2
        assert type(CertReqs().parse(ssl.CERT_REQUIRED)) is int

    @pytest.mark.parametrize("raw", [3, -1, "maybe", True, None, 1.5, ""])
    def test_invalid_tls_setting(self, raw: object) -> None:
        with pytest.raises(Invalid):
            CertReqs().parse(raw)

    @pytest.mark.parametrize("raw", [":key.pem", "cert.pem:", "a:b:c"])
    def test_a_certificate_is_a_file_or_two(self, raw: str) -> None:
        with pytest.raises(Invalid, match=r"expected CERT\.pem or CERT\.pem:KEY\.pem"):
            CertificateFiles("CERT[:KEY]").parse([raw])

    def test_both_files_must_be_there(self, tmp_path: Any) -> None:
        kind = CertificateFiles("CERT[:KEY]")
        (tmp_path / "cert.pem").touch()
        kind.look_up(("cert.pem",), str(tmp_path))
        with pytest.raises(Invalid, match=r"'key\.pem' is no file that exists"):
            kind.look_up(("cert.pem:key.pem",), str(tmp_path))

    @pytest.mark.parametrize(
        ("protocols", "alpn"),
        [("h1", ("http/1.1",)), ("h2,h1", ("h2", "http/1.1")), ("h1,h2", ("http/1.1", "h2")), ("h2", ("h2",))],
    )
    def test_the_handshake_offers_the_protocols_in_their_order(self, protocols: str, alpn: tuple[str, ...]) -> None:
        assert from_settings.of_settings(config(http_protocols=protocols)).alpn == alpn


class TestCheck:
    def test_https_needs_a_certificate_and_says_which_setting(self) -> None:
        with pytest.raises(ConfigError) as caught:
            from_settings.check(config(bind=":80,https://:443"))
        assert str(caught.value) == (
            "https://:443 (from --bind) uses TLS, but there is no certificate. Set certfile and keyfile, or "
            "certificate. For development create one with `tricorn dev-cert`."
        )

    def test_a_key_needs_its_certificate(self) -> None:
        with pytest.raises(ConfigError, match=r"keyfile is set \(from --keyfile\) but certfile is not"):
            from_settings.check(config(keyfile="key.pem"))

    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"bind": "http://:80"},
            {"certfile": "c"},
            {"bind": "https://:443", "certificate": ["c"]},
            {"bind": "https://:443", "ssl_context": lambda config, factory: factory()},
        ],
    )
    def test_what_goes_together(self, values: dict[str, object]) -> None:
        from_settings.check(config(**values))

    def test_a_hook_alone_asks_for_no_tls_as_under_gunicorn(self) -> None:
        assert not from_settings.serves(config(ssl_context=lambda config, factory: factory()))


class TestPlan:
    def test_paths_begin_where_the_server_works(self) -> None:
        made, warnings = from_settings.plan(
            config(
                chdir="/srv",
                certfile="cert.pem",
                certificate=["/etc/both.pem", "other.pem:other.key"],
                ca_certs="ca.pem",
                tls_crl_file=["crl.pem"],
                tls_ticket_keys=["ticket.key"],
            )
        )
        assert made.certificates == (
            Pair("/srv/cert.pem", "/srv/cert.pem"),
            Pair("/etc/both.pem", "/etc/both.pem"),
            Pair("/srv/other.pem", "/srv/other.key"),
        )
        assert (made.ca_files, made.crl_files, made.ticket_files) == (
            ("/srv/ca.pem",),
            ("/srv/crl.pem",),
            ("/srv/ticket.key",),
        )
        assert warnings == ()

    def test_what_holds_where_nothing_is_said(self) -> None:
        made, _ = from_settings.plan(config(certfile="/c", keyfile="/k"))
        assert made == Plan(certificates=(Pair("/c", "/k"),), ticket_lifetime=43_200)
        assert (made.asks, made.min_version, made.max_version, made.suites) == ("none", "1.2", "1.3", None)

    def test_clients_are_asked_only_if_it_is_known_whose_are_accepted(self) -> None:
        assert from_settings.plan(config(certfile="/c", ca_certs="/ca", cert_reqs=1))[0].asks == "optional"
        with pytest.raises(ConfigError, match=r"cert_reqs = 2 \(from --cert_reqs\) .*Set ca_certs"):
            from_settings.plan(config(certfile="/c", cert_reqs=2))

    def test_what_there_is_to_warn_about(self) -> None:
        _, warnings = from_settings.plan(config(certfile="/c", tls_key_log="/tmp/keys"))
        assert [warning.partition(" ")[0] for warning in warnings] == ["tls_key_log"]
        assert "Readers of that file can decrypt the traffic" in warnings[0]
