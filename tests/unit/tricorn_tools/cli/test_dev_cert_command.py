"""`tricorn dev-cert`: a certificate that clients accept once they are told to."""

from __future__ import annotations

import shutil
import ssl
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from tricorn.cli import main
from tricorn.self_signed import Key, make

from tests.harness import with_each

KEYS: tuple[Key, ...] = ("ecdsa", "rsa")


def made(names: list[str], key: Key = "ecdsa", days: int = 7) -> str:
    return "".join(make(names, days, key))


@with_each("key", KEYS)
def test_dev_cert_names_its_hosts(key: Key) -> None:
    certificate = x509.load_pem_x509_certificate(made(["localhost", "127.0.0.1", "::1", "*.app.test"], key).encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "*.app.test"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert not constraints.value.ca
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    assert certificate.subject == certificate.issuer
    assert certificate.subject.rfc4514_string() == "CN=localhost"
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=7)


def test_each_certificate_has_a_key_and_a_serial_number_of_its_own() -> None:
    certificates = [x509.load_pem_x509_certificate(made(["localhost"]).encode()) for _ in range(2)]
    assert len({each.serial_number for each in certificates}) == 2
    assert len({each.public_key().public_numbers() for each in certificates}) == 2  # type: ignore[union-attr]


@with_each("key", KEYS)
def test_openssl_reads_it(key: Key, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    file = tmp_path / "dev.pem"
    file.write_text(made(["localhost"], key))
    for command in (
        ("verify", "-CAfile", file, "-verify_hostname", "localhost", file),
        ("pkey", "-check", "-in", file),
    ):
        done = subprocess.run(["openssl", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@with_each("key", KEYS)
def test_certificate_and_key_belong_together_and_are_trusted_where_they_are_told_to(key: Key, tmp_path: Path) -> None:
    file = tmp_path / f"{key}.pem"
    file.write_text(made(["localhost"], key))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.create_default_context(cafile=str(file))
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(ours, theirs, server_hostname="localhost"),
        server.wrap_bio(theirs, ours, server_side=True),
    )
    done: set[int] = set()
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
                done.add(id(end))
            except ssl.SSLWantReadError:
                pass
    assert len(done) == 2


def test_only_its_owner_may_read_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dev.pem"
    assert main(["dev-cert", "--out", str(file), "app.test"]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = capsys.readouterr().out
    assert f"--certfile {file}" in said
    assert "localhost, 127.0.0.1, ::1, app.test" in said
    assert main(["dev-cert", "--out", str(file)]) == 1
    assert f"{file} exists. Remove it, or choose another file." in capsys.readouterr().err


def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev-cert"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("-----BEGIN CERTIFICATE-----\n")
    assert "PRIVATE KEY-----" in text


@pytest.mark.parametrize("name", ["a b", "https://app.test", "-", "a,DNS:b", "*", "fe80::1%eth0"])
def test_dev_cert_with_an_invalid_host_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev-cert", "--", name]) == 1
    assert "Expected a name such as app.test" in capsys.readouterr().err
