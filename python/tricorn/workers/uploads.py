"""Where request bodies are kept that are too large for memory."""

from __future__ import annotations

import os

from tricorn._core import check_upload_dir, upload_dir_in_memory
from tricorn.config.config import Config
from tricorn.workers.base import Worker

SHARED_MEMORY = "/dev/shm"


def candidates(config: Config) -> list[str]:
    """Directories in the order in which they are tried; one that is asked for is the only one."""
    if config.tmp_upload_dir is not None:
        return [config.tmp_upload_dir]
    system = os.environ.get("TMPDIR") or "/tmp"
    return [path for path in (system, config.worker_tmp_dir, SHARED_MEMORY) if path]


def directory(config: Config) -> str | None:
    """The first in which this user can make files; None if there is none (a read-only file system)."""
    return next(filter(_is_usable, candidates(config)), None)


def sizes(config: Config) -> dict[str, object]:
    """Options of the core: the directory, and without one as much in memory as the bodies of a worker may take."""
    found = directory(config)
    size = config.body_buffer_size if found is not None else max(config.body_buffer_size, config.body_buffer_total)
    return {"upload_dir": found, "body_buffer_size": size}


def warning(config: Config, kind: type[Worker]) -> str | None:
    """If bodies that go to disk take memory there, or cannot go anywhere."""
    if kind.streaming or not config.request_buffering:
        return None
    found = directory(config)
    if found is None:
        return (
            f"Request bodies beyond body_buffer_size have no place: no file can be made in "
            f"{', '.join(candidates(config))}. They are kept in memory up to body_buffer_total = "
            f"{config.body_buffer_total} bytes, and refused beyond it. Set tmp_upload_dir to a directory that this "
            "user may write to."
        )
    if upload_dir_in_memory(found) is None:
        return None
    return (
        f"Request bodies beyond body_buffer_size are kept in {found}, which is memory (tmpfs): up to "
        f"body_disk_total = {config.body_disk_total} bytes of it. Set tmp_upload_dir to a directory on a disk."
    )


def _is_usable(path: str) -> bool:
    try:
        check_upload_dir(path)
    except (OSError, ValueError):
        return False
    return True
