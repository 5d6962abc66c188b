"""What processes have in memory, by a /proc that is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn import process_memory
from tricorn_tools.top import memory
from tricorn_tools.top.look import Memory
from tricorn_tools.top.memory import Memories

ARBITER = 10


def process(proc: Path, pid: int, *, parent: int = ARBITER, pages: int = 100, pss: int | None = 8) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"{pid} (tricorn: (worker) [x]) S {parent} 1 1 0 -1\n")
    (folder / "statm").write_text(f"1000 {pages} 50 1 0 200 0\n")
    if pss is not None:
        (folder / "smaps_rollup").write_text(
            f"Rss:  400 kB\nPss:  {pss} kB\nPss_Dirty:  1 kB\nPrivate_Clean:  1 kB\nPrivate_Dirty:  2 kB\n"
        )


def test_rss_of_all_at_each_look_and_pss_of_one_at_a_time(tmp_path: Path) -> None:
    for pid in (11, 12, 13):
        process(tmp_path, pid, pages=pid, pss=pid)
    memories = Memories(tmp_path)
    for known in (1, 2, 3):
        found, missing = memories.look(ARBITER, [11, 12, 13])
        assert ([found[pid].rss for pid in (11, 12, 13)], missing) == ([pid * memory.PAGE for pid in (11, 12, 13)], ())
        assert sum(one.pss is not None for one in found.values()) == known
    process(tmp_path, 11, pss=99)
    process(tmp_path, 12, pss=99)
    found, _ = memories.look(ARBITER, [11, 12, 13])
    assert found[11].pss == 99 * 1024, "the one that was measured first is the next"
    assert found[12].pss == 12 * 1024
    assert {one.uss for one in found.values()} == {3 * 1024}


def test_a_number_that_is_another_process_here_is_not_taken_for_a_worker(tmp_path: Path) -> None:
    process(tmp_path, 11, parent=1)
    found, missing = Memories(tmp_path).look(ARBITER, [11, 12])
    assert (found, missing) == ({}, (memory.ELSEWHERE,))
    assert Memories(tmp_path).look(ARBITER, []) == ({}, ())


def test_pss_that_may_not_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path, 11, pss=None)
    asked = []

    def forbidding(pid: int, proc: Path) -> None:
        asked.append(pid)
        raise PermissionError

    monkeypatch.setattr(process_memory, "read", forbidding)
    memories = Memories(tmp_path)
    for _ in range(2):
        assert memories.look(ARBITER, [11]) == ({11: Memory(100 * memory.PAGE)}, (memory.FORBIDDEN,))
    assert len(asked) == 1


def test_a_process_that_ends_meanwhile_is_left_out(tmp_path: Path) -> None:
    process(tmp_path, 11)
    process(tmp_path, 12, pss=None)
    (tmp_path / "12" / "stat").write_text("12 (cut")
    found, missing = Memories(tmp_path).look(ARBITER, [11, 12])
    assert (list(found), missing) == ([11], ())
