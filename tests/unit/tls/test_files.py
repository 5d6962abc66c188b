"""The files of TLS: what is read of them, and how a change is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tricorn.errors import ConfigError
from tricorn.tls import files
from tricorn.tls.plan import Pair, Plan


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    for name in ("cert.pem", "key.pem", "ca.pem"):
        (tmp_path / name).write_text(name)
    pair = Pair(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    return Plan(certificates=(pair,), ca_files=(str(tmp_path / "ca.pem"),), ca_data=b"more", suites=("A",))


def test_what_the_core_is_given(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "cert.pem.ocsp").write_bytes(b"response")
    bundle = files.read(plan)
    assert bundle == {
        "certificates": [(str(tmp_path / "cert.pem"), b"cert.pem", b"key.pem", b"response")],
        "ca": b"ca.pem\nmore",
        "crls": [],
        "client_certificates": "none",
        "min_version": "1.2",
        "max_version": "1.3",
        "suites": ["A"],
        "alpn": ["http/1.1"],
        "require_sni": False,
        "ticket_lifetime": 0,
        "key_log": None,
    }


class TestLook:
    def test_nothing_changes_by_looking_or_reading(self, plan: Plan) -> None:
        before = files.look(plan)
        files.read(plan)
        assert files.look(plan) == before

    @pytest.mark.parametrize("name", ["cert.pem", "key.pem", "ca.pem"])
    def test_another_content_of_the_same_length_is_seen(self, plan: Plan, tmp_path: Path, name: str) -> None:
        before = files.look(plan)
        (tmp_path / name).write_text(name[::-1])
        os.utime(tmp_path / name, ns=(1, 1))
        assert files.look(plan) != before

    def test_a_response_that_appears_is_seen(self, plan: Plan, tmp_path: Path) -> None:
        before = files.look(plan)
        (tmp_path / "cert.pem.ocsp").touch()
        assert files.look(plan) != before

    def test_a_directory_behind_a_link_is_seen_as_kubernetes_changes_it(self, tmp_path: Path) -> None:
        for number in "12":
            (tmp_path / number).mkdir()
            (tmp_path / number / "cert.pem").write_text("same")
            os.utime(tmp_path / number / "cert.pem", ns=(1, 1))
        (tmp_path / "data").symlink_to("1")
        path = str(tmp_path / "data" / "cert.pem")
        plan = Plan(certificates=(Pair(path, path),))
        before = files.look(plan)
        (tmp_path / "new").symlink_to("2")
        (tmp_path / "new").rename(tmp_path / "data")
        assert files.look(plan) != before

    def test_nor_does_it_matter_that_the_file_is_a_link(self, tmp_path: Path) -> None:
        for number in "12":
            (tmp_path / number).write_text("same")
            os.utime(tmp_path / number, ns=(1, 1))
        link = tmp_path / "live.pem"
        link.symlink_to("1")
        plan = Plan(certificates=(Pair(str(link), str(link)),))
        before = files.look(plan)
        (tmp_path / "1").write_text("renewed")
        assert files.look(plan) != before

    def test_a_file_that_is_gone_is_seen(self, plan: Plan, tmp_path: Path) -> None:
        (tmp_path / "key.pem").unlink()
        assert files.look(plan)[str(tmp_path / "key.pem")] is None
        with pytest.raises(ConfigError, match=r"Cannot read the TLS file .*key\.pem: No such file"):
            files.read(plan)


def test_an_encrypted_key_has_a_remedy(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    with pytest.raises(ConfigError, match=r"is encrypted.*openssl pkey -in .*key\.pem -out plain\.pem"):
        files.read(plan)


class TestTicketKeys:
    @pytest.mark.parametrize("size", [48, 80])
    def test_a_file_is_a_key(self, size: int, tmp_path: Path) -> None:
        one, other = (tmp_path / "one", tmp_path / "other")
        one.write_bytes(b"a" * size)
        other.write_bytes(b"a" * (size - 1) + b"b")
        plan = Plan(certificates=(), ticket_files=(str(one), str(other)))
        first, second = files.ticket_keys(plan)
        assert len(first) == len(second) == 32
        assert first != second
        assert files.ticket_keys(plan) == [first, second], "several hosts have the same"

    def test_another_size_is_refused_with_the_remedy(self, tmp_path: Path) -> None:
        (tmp_path / "one").write_bytes(b"a" * 32)
        with pytest.raises(
            ConfigError, match=r"has 32 bytes; expected 48 or 80 random bytes\. Create them with `openssl rand 80 >"
        ):
            files.ticket_keys(Plan(certificates=(), ticket_files=(str(tmp_path / "one"),)))
