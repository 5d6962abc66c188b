"""The certificate that servers have in a measurement with TLS: made for it, and gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tricorn.self_signed import HERE, Key, make
from tricorn_bench.bench.servers import Certificate

DAYS = 2


@contextmanager
def certificate(key: Key = "ecdsa", host: str = "127.0.0.1") -> Iterator[Certificate]:
    """Files for as long as the block runs. Raises ConfigError where none can be made."""
    pair = make(list(dict.fromkeys((*HERE, host))), DAYS, key)
    with tempfile.TemporaryDirectory(prefix="tricorn-bench-") as folder:  # only its owner may enter it
        made = Certificate(f"{folder}/certificate.pem", f"{folder}/key.pem", key)
        Path(made.file).write_text(pair.certificate)
        Path(made.key_file).write_text(pair.key)
        yield made
