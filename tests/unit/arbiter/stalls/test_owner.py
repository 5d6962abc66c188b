"""Which package a file belongs to."""

from __future__ import annotations

from pathlib import Path

from tricorn.arbiter.stalls.owner import Owners, Package, version_of


def install(root: Path, name: str, *files: str) -> None:
    listed = root / f"{name}.dist-info"
    listed.mkdir(parents=True)
    (listed / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))


def test_the_list_of_an_installer_names_the_package(tmp_path: Path) -> None:
    install(tmp_path, "confluent_kafka-2.16.1", "confluent_kafka/cimpl.so", "confluent_kafka.libs/librdkafka-1.so.1")
    install(tmp_path, "other-1.0", "other/a.so")
    owners = Owners()
    of = Package("confluent-kafka", "2.16.1")
    assert owners.of(str(tmp_path / "confluent_kafka.libs/librdkafka-1.so.1")) == of
    assert owners.of(str(tmp_path / "other/a.so")) == Package("other", "1.0")
    assert owners.of(str(tmp_path / "other/b.so")) is None
    assert owners.of("") is None
    assert owners.of("/nowhere/at/all.so") is None


def test_the_version_is_the_modules_word_or_the_files_name(tmp_path: Path) -> None:
    file = tmp_path / "libpq.so.5.15"
    file.touch()
    link = tmp_path / "libpq.so.5"
    link.symlink_to(file)
    assert version_of("libpq", str(link), {}) == "5.15"
    assert version_of("libpq", str(link), {"libpq": "17.2"}) == "17.2"
    assert version_of("librdkafka", "/x/librdkafka-1.so.1", {}) == ""


def test_a_path_that_is_none_has_no_owner() -> None:
    assert Owners().of("/no\0thing/here.so") is None
