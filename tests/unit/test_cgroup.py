"""Quotas of cgroups: both versions, the groups above, and what of them is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.cgroup import cores, cpu_limit, cpu_quota, memory_limit

V2 = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 20 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def machine(root: Path, groups: str, mounts: str, files: dict[str, str]) -> float | None:
    return cpu_quota(made(root, groups, mounts, files), root)


def made(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Path:
    """The /proc/self of a machine under `root`."""
    proc = root / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(groups)
    (proc / "mountinfo").write_text(mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return proc


def test_version_2(tmp_path: Path) -> None:
    files = {"app/cpu.max": "150000 100000\n", "cpu.max": "max 100000\n"}
    assert machine(tmp_path, "0::/app\n", V2, files) == 1.5


def test_the_smallest_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "200000 100000\n"}
    assert machine(tmp_path, "0::/a/b\n", V2, files) == 2


def test_version_1(tmp_path: Path) -> None:
    folder = "cpu,cpuacct/app"
    files = {f"{folder}/cpu.cfs_quota_us": "50000\n", f"{folder}/cpu.cfs_period_us": "100000\n"}
    assert machine(tmp_path, "4:cpu,cpuacct:/app\n2:memory:/app\n0::/\n", V1, files) == 0.5


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    """Docker mounts the group of the container: its path is that of the host."""
    mounts = V2.replace(" / /sys", " /docker/abc /sys")
    assert machine(tmp_path, "0::/docker/abc\n", mounts, {"cpu.max": "300000 100000\n"}) == 3


def test_a_limit_says_its_file(tmp_path: Path) -> None:
    files = {"a/cpu.max": "50000 100000\n", "a/memory.max": "268435456\n"}
    proc = made(tmp_path, "0::/a\n", V2, files)
    cpu, memory = cpu_limit(proc, tmp_path), memory_limit(proc, tmp_path)
    assert cpu is not None
    assert (cpu.amount, cpu.source) == (0.5, "cpu.max 50000/100000")
    assert memory is not None
    assert (memory.amount, memory.source) == (1 << 28, "memory.max 256 MiB")


def test_memory_of_the_tightest_group(tmp_path: Path) -> None:
    files = {"a/b/memory.max": "max\n", "a/memory.max": "134217728\n", "memory.max": "268435456\n"}
    limit = memory_limit(made(tmp_path, "0::/a/b\n", V2, files), tmp_path)
    assert limit is not None
    assert limit.amount == 1 << 27


def test_memory_of_version_1(tmp_path: Path) -> None:
    """Each controller has a hierarchy of its own. The greatest number of whole pages is no limit."""
    files = {"memory/a/memory.limit_in_bytes": "536870912\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}
    limit = memory_limit(made(tmp_path, "4:cpu,cpuacct:/b\n2:memory:/a\n0::/\n", V1, files), tmp_path)
    assert limit is not None
    assert (limit.amount, limit.source) == (1 << 29, "memory.limit_in_bytes 512 MiB")


def test_no_limit_of_memory(tmp_path: Path) -> None:
    files = {"memory/memory.limit_in_bytes": "9223372036854771712\n"}
    assert memory_limit(made(tmp_path, "2:memory:/\n", V1, files), tmp_path) is None


@pytest.mark.parametrize(
    ("groups", "mounts", "files"),
    [
        ("0::/app\n", V2, {"app/cpu.max": "max 100000\n"}),
        ("0::/app\n", V2, {}),
        ("0::/app\n", V2, {"app/cpu.max": "rubbish\n"}),
        ("0::/app\n", "", {}),
        (
            "4:cpu:/a\n",
            V1,
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"},
        ),
    ],
)
def test_no_cgroup_limit(groups: str, mounts: str, files: dict[str, str], tmp_path: Path) -> None:
    assert machine(tmp_path, groups, mounts, files) is None


def test_a_system_without_proc(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "proc", tmp_path) is None


def test_cgroup_of_this_machine() -> None:
    assert cores() >= 1
    quota = cpu_quota()
    assert quota is None or quota > 0
