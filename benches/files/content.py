"""Files to be served: a script of 50 KiB, a download of 100 MiB, and records in JSON."""

from __future__ import annotations

import json
import random

from benches.harness import long_file

FOLDER = long_file.PATH.parent
SCRIPT = "script.js"
SCRIPT_LENGTH = 50 * 1024
RECORDS = "records.json"


def _records() -> bytes:
    chance = random.Random(4)
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett")
    return json.dumps(
        [
            {
                "id": number,
                "name": " ".join(chance.choices(words, k=3)),
                "price": round(chance.uniform(1, 500), 2),
                "tags": chance.sample(words, 2),
                "token": f"{chance.getrandbits(64):x}",
            }
            for number in range(160)
        ]
    ).encode()


JSON = _records()
"""About 20 KB, the same each time."""


def make() -> None:
    long_file.make()
    (FOLDER / SCRIPT).write_bytes(b"// 0123456789\n" * (SCRIPT_LENGTH // 14) + b"/" * (SCRIPT_LENGTH % 14))
    (FOLDER / RECORDS).write_bytes(JSON)
