"""Faults of the control socket."""

from __future__ import annotations

from tests.mutants.fault import Fault

ARBITER = "python/tricorn/arbiter"
CONTROL = f"{ARBITER}/control"
UNIT = "tests/unit/arbiter"

CONTROL_SOCKET = (
    Fault(
        "cancel_another",
        "a request that has taken the place of the one to be cancelled is left alone",
        "crates/tricorn-io/src/waiting/manner.rs",
        "since == started",
        "since != 0",
        ("crates/tricorn-io watchdog a_call_that_is_cancelled",),
    ),
    Fault(
        "cancelled_for_ever",
        "a call is not cancelled since the one before it was",
        "crates/tricorn-io/src/waiting/lateness.rs",
        "self.cancelled.store(false, Relaxed);",
        "self.cancelled.store(self.cancelled.load(Relaxed), Relaxed);",
        ("crates/tricorn-io lib a_call_is_cancelled_once",),
    ),
    Fault(
        "cancel_orders_at_once",
        "an order to cancel is not written over by the next",
        f"{ARBITER}/policy/pending.py",
        "if any(wish.nr in each.nrs for each in state.cancels):",
        "if False:",
        (f"{UNIT}/policy/test_operator.py",),
    ),
    Fault(
        "sealed_pages",
        "a reader that is given the pages cannot write them",
        f"{ARBITER}/shared_memory.py",
        " | 0x0010",
        "",
        (f"{UNIT}/test_shared_memory.py",),
    ),
    Fault(
        "place_of_others",
        "a directory that others can write is no place for the socket",
        "python/tricorn/control/places.py",
        "stat.S_IWGRP | stat.S_IWOTH",
        "0",
        (f"{UNIT}/control/test_control_place.py",),
    ),
    Fault(
        "socket_of_another",
        "a server removes no socket but its own",
        f"{CONTROL}/place.py",
        "return (found.st_dev, found.st_ino) == self.identity",
        "return True",
        (f"{UNIT}/control/test_control_place.py",),
    ),
    Fault(
        "one_request_a_turn",
        "a client that does not read is asked for nothing more",
        f"{CONTROL}/listener.py",
        "if client.number in self.clients and not client.unsent and not client.ending:",
        "if client.number in self.clients and not client.ending:",
        (f"{UNIT}/control/test_control_listener.py",),
    ),
    Fault(
        "silent_clients",
        "a silent client makes room after a while",
        f"{CONTROL}/listener.py",
        "elif now >= client.deadline:",
        "elif False:",
        (f"{UNIT}/control/test_control_listener.py",),
    ),
    Fault(
        "many_values",
        "a request of tens of thousands of values is not decoded",
        f"{CONTROL}/session.py",
        "> MOST_VALUES",
        "< 0",
        (f"{UNIT}/control/test_control_session.py",),
    ),
    Fault(
        "who_may_only_look",
        "with control_read_only another user may only look",
        f"{CONTROL}/desk.py",
        "return peer.uid in (0, os.geteuid())",
        "return True",
        ("tests/compat/test_settings.py -k control_read_only",),
    ),
    Fault(
        "later_reload",
        "a reload asked for during another is answered by its own end",
        f"{ARBITER}/policy/pending.py",
        "        elif each.later:\n            left.append(replace(each, later=False))\n",
        "",
        (f"{UNIT}/policy/test_operator.py",),
    ),
    Fault(
        "unready_newcomers",
        "workers that start while readiness is denied deny it",
        f"{ARBITER}/policy/decide.py",
        "if state.unready else []",
        "if False else []",
        (f"{UNIT}/policy/test_operator.py",),
    ),
    Fault(
        "rubbish_in_a_page",
        "a page of rubbish does not end the arbiter",
        f"{ARBITER}/worker_handle.py",
        "        except ValueError:\n            return None\n\n    def requests",
        "        except ZeroDivisionError:\n            return None\n\n    def requests",
        ("tests/integration/test_control.py -k rubbish",),
    ),
)
