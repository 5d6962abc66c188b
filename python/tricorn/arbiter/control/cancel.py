"""Whether a request can be cancelled, and what became of it: sentences for the operator."""

from __future__ import annotations

from tricorn.arbiter.control.words import Refusal
from tricorn.arbiter.policy.wishes import Cancel
from tricorn.arbiter.worker_handle import Cancelled, WorkerHandle

Json = dict[str, object]


def check(handle: WorkerHandle | None, wish: Cancel) -> None:
    """What is known without asking the worker. Raises Refusal."""
    if handle is None:
        raise Refusal("refused", GONE)
    if not any((each.slot, each.started) == (wish.place, wish.start) for each in handle.requests()):
        raise Refusal("refused", ENDED)
    if not handle.worker.spec.config.request_timeout:
        raise Refusal("refused", NO_LIMIT)


def answer(handle: WorkerHandle | None, became: Cancelled | None) -> Json:
    """The answer, when the worker has had time to hear of it."""
    if handle is None:
        return _refused(GONE)
    match became:
        case "told":
            return {"ok": True, "result": {"status": "cancelled", "pid": handle.pid, "note": TOLD}}
        case "ended":
            return _refused(ENDED)
        case "over":
            return _refused(OVER)
        case None:
            return _refused(
                f"Worker {handle.worker.slot} (pid {handle.pid}) does not listen: it is stopped or starved."
            )


def _refused(sentence: str) -> Json:
    return {"ok": False, "kind": "refused", "error": sentence}


GONE = "There is no such worker any more, and the request has ended with it."
ENDED = "No such request: it has ended."
OVER = "It was told to end before, its application has answered already, or it is a WebSocket."
NO_LIMIT = (
    "The worker runs without request_timeout, and then none of its requests can be cancelled. "
    "Set it, if need be to a day (86400)."
)
TOLD = (
    "tricorn.RequestCancelled is raised in it when its Python runs again; C code that holds it up is not interrupted. "
    "If it goes on, its client has a 504 in a second, unless the response has begun."
)
