"""The classical questions of tuning, in the order of docs/guides/how-many-workers.md, and where tune answers them."""

from __future__ import annotations

from tricorn.record import Record


class Question(Record):
    heading: str
    case: str
    """Name of the run in `cases`."""
    answer: str


QUESTIONS = (
    Question(
        "Do N sync workers serve N one-second requests per second?",
        "sync-second",
        "Yes. A sync worker serves one request at a time, so N workers serve N requests per second that take a second "
        "each. Memory is the limit: `tune` recommends as many workers as it allows.",
    ),
    Question(
        "Which limit does gevent have?",
        "gevent-second",
        "A gevent worker serves up to `worker_connections` requests at once, 1,000 by default. If each takes a "
        "second, that is 1,000 per second and worker. To serve more, add workers or raise `worker_connections`. "
        "In this run, seven workers exceeded the memory limit under load, so `tune` recommended what it had "
        "compared with. In such a case it now measures as many workers as fit.",
    ),
    Question(
        "Are 2n + 1 workers right for mixed work?",
        "mixed",
        "Not for these requests. 2n + 1 suits requests that wait half of their time; these wait 90 %, so 3 sync "
        "workers leave the CPU idle. Threads or greenlets keep it busy with less memory.",
    ),
    Question(
        "Do more workers help work that computes?",
        "compute",
        "No. One worker per CPU is the limit. More workers and threads share the same CPUs and cost memory.",
    ),
)
