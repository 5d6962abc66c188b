"""`tricorn dev-cert`: a certificate that clients accept once they are told to."""

from __future__ import annotations

import shutil
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from tricorn.cli import main
from tricorn_tools.cli import dev_cert_command

from tests.harness import with_each

HOWS = ("openssl", "cryptography")


def made(how: str, names: list[str], monkeypatch: pytest.MonkeyPatch, days: int = 7) -> str:
    if how == "openssl" and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    if how == "cryptography":
        monkeypatch.setattr("shutil.which", lambda name: None)
    return "".join(dev_cert_command.make(names, days))


@with_each("how", HOWS)
def test_it_names_what_it_is_for(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = made(how, ["localhost", "127.0.0.1", "::1", "*.app.test"], monkeypatch)
    certificate = x509.load_pem_x509_certificate(text.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "*.app.test"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert 6 <= (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days <= 7


@with_each("how", HOWS)
def test_certificate_and_key_belong_together_and_are_trusted_where_they_are_told_to(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "dev.pem"
    file.write_text(made(how, ["localhost"], monkeypatch))
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
    assert f"{file} exists: remove it, or name another file." in capsys.readouterr().err


def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev-cert"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("-----BEGIN CERTIFICATE-----\n")
    assert "PRIVATE KEY-----" in text


@pytest.mark.parametrize("name", ["a b", "https://app.test", "-", "a,DNS:b", "*"])
def test_what_is_no_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev-cert", "--", name]) == 1
    assert "Expected a name such as app.test" in capsys.readouterr().err


def test_where_nothing_can_make_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    assert main(["dev-cert"]) == 1
    assert "apt install openssl" in capsys.readouterr().err
