"""The classical questions of tuning, in the order of docs/how-to/how-many-workers.md, and where tune answers them."""

from __future__ import annotations

from tricorn.record import Record


class Question(Record):
    heading: str
    case: str
    """Name of the run in `cases`."""
    answer: str


QUESTIONS = (
    Question(
        "N sync workers for N requests of a second?",
        "sync-second",
        "Yes. A sync worker serves one request at a time, so N workers serve N requests a second that take a second "
        "each. Memory is what ends it: `tune` recommends as many as the limit allows.",
    ),
    Question(
        "gevent, and its connection limit?",
        "gevent-second",
        "A gevent worker serves up to `worker_connections` requests at once, 1,000 by default. Requests of a "
        "second are therefore limited to 1,000 a second and worker: more of them need more workers, or a higher "
        "`worker_connections`.",
    ),
    Question(
        "Threads for mixed work? 2n + 1 workers?",
        "mixed",
        "2n + 1 fits requests that wait for half of their time. These wait for 90 %: 2n + 1 = 3 sync workers leave "
        "the processor idle. Threads or greenlets keep it busy in less memory.",
    ),
    Question(
        "More workers for work that computes?",
        "compute",
        "No. One worker for each processor is the limit. Further workers and threads take turns on the same processors "
        "and cost memory.",
    ),
)
