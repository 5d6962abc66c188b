"""The hook `ssl_context`, by what it does to contexts of Python's."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tricorn.errors import ConfigError
from tricorn.tls import from_settings
from tricorn.tls.plan import Pair, Plan

from tests.harness import certificates
from tests.harness.certificates import Authority, Issued
from tests.unit.tls.test_from_settings import config

Hook = Callable[[Any, Callable[[], ssl.SSLContext]], Any]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Issued:
    return authority.issue("server")


def plan(hook: Hook | None, issued: Issued, **values: object) -> Plan:
    values = {"certfile": str(issued.certificate), "keyfile": str(issued.key), **values}
    if hook is not None:
        values["ssl_context"] = hook
    return from_settings.plan(config(**values))[0]


def unchanged(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    return factory()


class TestTheDefault:
    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"tls_min_version": "1.3"},
            {"ciphers": "ECDHE+AESGCM"},
            {"ciphers": "ECDHE-RSA-AES256-GCM-SHA384", "tls_require_sni": True},
            {"cert_reqs": 2, "ca_certs": True},
            {"cert_reqs": 1, "ca_certs": True, "tls_ticket_lifetime": 60},
            {"ca_certs": True},
        ],
    )
    def test_a_hook_that_changes_nothing_changes_nothing(
        self, values: dict[str, object], issued: Issued, authority: Authority
    ) -> None:
        if "ca_certs" in values:
            values = {**values, "ca_certs": str(authority.certificate)}
        assert plan(unchanged, issued, **values) == plan(None, issued, **values)

    def test_nor_with_several_certificates(self, issued: Issued, authority: Authority) -> None:
        other = authority.issue("other", kind="rsa")
        assert plan(unchanged, issued, certificate=[other.pair]) == plan(None, issued, certificate=[other.pair])

    def test_the_hook_is_called_once_with_the_configuration(self, issued: Issued) -> None:
        seen = []

        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            seen.append(config.certfile)
            return factory()

        plan(hook, issued)
        assert seen == [str(issued.certificate)]

    def test_nothing_of_the_module_is_changed_afterwards(self, issued: Issued) -> None:
        before = dict(vars(ssl.SSLContext))
        plan(unchanged, issued)
        assert dict(vars(ssl.SSLContext)) == before
        assert "load_cert_chain" not in vars(ssl.SSLContext), "it is the base class's"


class TestWhatIsTakenOver:
    def test_a_context_of_its_own(self, issued: Issued, authority: Authority) -> None:
        def hook(config: Any, factory: object) -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(issued.certificate, keyfile=str(issued.key))
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cafile=str(authority.certificate))
            context.set_alpn_protocols(["h2", "http/1.1"])
            return context

        made, _ = from_settings.plan(config(bind="https://:443", ssl_context=hook))
        assert made.certificates == (Pair(str(issued.certificate), str(issued.key)),)
        assert (made.min_version, made.max_version, made.asks) == ("1.3", "1.3", "optional")
        assert made.ca_files == (str(authority.certificate),)
        assert made.alpn == ("http/1.1",)

    @pytest.mark.parametrize(
        ("protocols", "offered", "alpn"),
        [
            ("h2,h1", ["http/1.1", "h2"], ("http/1.1", "h2")),
            ("h2,h1", ["http/1.1", "acme-tls/1"], ("http/1.1",)),
            ("h2", ["http/1.1", "h2"], ("h2",)),
            ("h2,h1", None, ("h2", "http/1.1")),
        ],
    )
    def test_protocols_of_the_context_in_its_order(
        self, protocols: str, offered: list[str] | None, alpn: tuple[str, ...], issued: Issued
    ) -> None:
        def hook(config: Any, factory: object) -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(issued.certificate, keyfile=str(issued.key))
            if offered is not None:
                context.set_alpn_protocols(offered)
            return context

        made, _ = from_settings.plan(config(bind="https://:443", ssl_context=hook, http_protocols=protocols))
        assert made.alpn == alpn

    @pytest.mark.parametrize(
        ("change", "versions"),
        [
            (lambda context: setattr(context, "maximum_version", ssl.TLSVersion.TLSv1_2), ("1.2", "1.2")),
            (lambda context: setattr(context, "options", context.options | ssl.OP_NO_TLSv1_2), ("1.3", "1.3")),
            (lambda context: setattr(context, "minimum_version", ssl.TLSVersion.MINIMUM_SUPPORTED), ("1.2", "1.3")),
        ],
    )
    def test_ssl_context_versions(
        self, change: Callable[[ssl.SSLContext], None], versions: tuple[str, str], issued: Issued
    ) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            change(context)
            return context

        made = plan(hook, issued)
        assert (made.min_version, made.max_version) == versions

    def test_ssl_context_ciphers(self, issued: Issued) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384")
            return context

        assert plan(hook, issued) == plan(None, issued, ciphers="ECDHE-RSA-AES256-GCM-SHA384")

    def test_authorities_that_are_no_file_are_read_back(self, issued: Issued, authority: Authority) -> None:
        text = authority.certificate.read_text()

        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.load_verify_locations(cadata=ssl.PEM_cert_to_DER_cert(text))
            return context

        made = plan(hook, issued, cert_reqs=2)
        assert ssl.PEM_cert_to_DER_cert(made.ca_data.decode()) == ssl.PEM_cert_to_DER_cert(text)

    def test_lists_of_what_is_revoked(self, issued: Issued, authority: Authority) -> None:
        file = authority.revoke(authority.issue("gone"))

        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.load_verify_locations(file)
            return context

        made = plan(hook, issued)
        assert (made.crl_files, made.ca_files) == ((str(file),), ())

    def test_ssl_context_without_tickets(self, issued: Issued) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.options |= ssl.OP_NO_TICKET
            return context

        assert plan(hook, issued).ticket_lifetime == 0


class TestWhatIsRefused:
    def refused(self, hook: Hook, issued: Issued) -> str:
        with pytest.raises(ConfigError) as caught:
            plan(hook, issued)
        return str(caught.value)

    def test_a_context_that_was_made_elsewhere(self, issued: Issued) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(issued.certificate, issued.key)
        sentence = self.refused(lambda config, factory: context, issued)
        assert "load_cert_chain() was not called in the hook" in sentence
        assert "inside the hook" in sentence

    def test_a_context_without_a_certificate(self, issued: Issued) -> None:
        def hook(config: Any, factory: object) -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            return context

        assert "load_cert_chain() was not called" in self.refused(hook, issued)

    def test_hook_that_returns_no_ssl_context(self, issued: Issued) -> None:
        assert "returned NoneType; expected an ssl.SSLContext" in self.refused(lambda config, factory: None, issued)

    def test_a_callback_for_names(self, issued: Issued) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.sni_callback = lambda *_: None
            return context

        assert "List all certificates in `certificate`" in self.refused(hook, issued)

    def test_an_encrypted_key_with_or_without_its_passphrase(self, issued: Issued, tmp_path: Path) -> None:
        key = tmp_path / "key.pem"
        key.write_bytes(certificates.encrypted(issued.key))
        for password in (None, "secret"):

            def hook(config: Any, factory: object, password: str | None = password) -> ssl.SSLContext:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(issued.certificate, key, password)
                return context

            assert f"openssl pkey -in {key} -out plain.pem" in self.refused(hook, issued)

    def test_old_versions_only(self, issued: Issued) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3
            return context

        assert "allows neither TLS 1.2 nor TLS 1.3" in self.refused(hook, issued)

    def test_protocols_that_are_not_spoken(self, issued: Issued) -> None:
        def hook(config: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
            context = factory()
            context.set_alpn_protocols(["h2"])
            return context

        assert "offers h2 by ALPN, but http_protocols allows only http/1.1" in self.refused(hook, issued)

    def test_an_exception_of_the_hook(self, issued: Issued) -> None:
        def hook(config: Any, factory: object) -> ssl.SSLContext:
            raise LookupError("no vault")

        assert "ssl_context (from --ssl_context) raised LookupError: no vault" in self.refused(hook, issued)
