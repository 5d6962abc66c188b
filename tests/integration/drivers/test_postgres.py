"""PostgreSQL's drivers in greenlets, against a PostgreSQL: waiting, limits of time, kills, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tricorn_green.drivers.psycopg import IMPORTED_TOO_EARLY, WAITS_IN_C

from tests.harness import sibling, until
from tests.harness.needs import needs
from tests.harness.postgres import TOO_MANY, Postgres
from tests.harness.sibling import Late, Outcome

JOBS = "tests.integration.drivers.jobs"
MOST = 20
USABLE = MOST - 3
"""Three are the superuser's."""

hubs = pytest.mark.parametrize("hub", ["gevent", "eventlet"])


@pytest.fixture(scope="module")
def running() -> Iterator[Postgres]:
    with Postgres(MOST) as server:
        yield server


@pytest.fixture
def postgres(running: Postgres) -> Postgres:
    return running.rested()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with Late(60) as server:
        yield f"host=127.0.0.1 port={server.port}"


def run(hub: str, job: str, *arguments: object, **options: object) -> Outcome:
    needs(hub, job.partition("_")[0])
    return sibling.run(hub, f"{JOBS}:{job}", *arguments, **options)  # type: ignore[arg-type]


# psycopg2


@hubs
def test_psycopg2_waits_while_siblings_get_on(hub: str, postgres: Postgres, silent: str) -> None:
    outcome = run(hub, "psycopg2_waits", postgres.dsn(), f"{silent} connect_timeout=1")
    assert outcome["query"].advanced, outcome["query"]
    assert outcome["connect"].advanced, outcome["connect"]
    assert outcome.lines() == []


@hubs
def test_psycopg2_connect_timeout_is_kept(hub: str, postgres: Postgres, silent: str) -> None:
    """libpq enforces none in the mode that waits by callback."""
    outcome = run(hub, "psycopg2_waits", postgres.dsn(), silent, env={"PGCONNECT_TIMEOUT": "1"})
    assert 0.9 < outcome["connect"].seconds < 10
    assert "OperationalError" in outcome["connect"].error
    assert "timeout expired (connect_timeout: 1 s)" in outcome["connect"].error
    assert silent.rpartition("=")[2] in outcome["connect"].error, "it names the address"


@hubs
def test_psycopg2_blocks_without_us(hub: str, postgres: Postgres) -> None:
    """What the hook is for. (eventlet brings one of its own.)"""
    if hub == "eventlet":
        pytest.skip("eventlet sets a callback itself when it patches")
    outcome = run(hub, "psycopg2_waits", postgres.dsn(), "host=127.0.0.1 port=1", install=False)
    assert outcome["query"].stood, outcome["query"]


@hubs
def test_a_killed_query_is_cancelled_and_its_connection_closed(hub: str, postgres: Postgres) -> None:
    outcome = run(hub, "psycopg2_killed", postgres.dsn())
    assert outcome.notes == {"is the timeout": True, "closed": 2}
    until(lambda: not postgres.sessions(), "PostgreSQL runs the query no longer")


@hubs
@pytest.mark.parametrize("early", [(), ("psycopg2.extras",)], ids=["imported later", "imported early"])
def test_copy_and_large_objects_block_and_work(hub: str, early: tuple[str, ...], postgres: Postgres) -> None:
    outcome = run(hub, "psycopg2_copies", postgres.dsn(), not early, early=early)
    notes = outcome.notes
    kinds = ["cursor", "DictCursor", "NamedTupleCursor"] + ([] if early else ["Own"])
    for kind in kinds:
        assert notes[kind] == [50_000, "50000"], kind
    assert notes["large object"] == [6 * 99_999, "hello "]
    assert notes["another error"].startswith('relation "nowhere" does not exist')
    for query in ("query", "query after an error"):
        assert outcome[query].advanced, (query, outcome[query])
    assert outcome["copy"].stood, outcome["copy"]
    assert [line.partition("(PostgreSQL): ")[2].partition("(")[0] for line in outcome.lines("warning")] == [
        "copy_from", "copy_to", "copy_expert", "lobject",
    ]  # fmt: skip


@hubs
def test_the_error_of_a_shared_connection_says_what_happened_and_what_helps(hub: str, postgres: Postgres) -> None:
    notes = run(hub, "psycopg2_shared", postgres.dsn()).notes
    assert "Two greenlets used one psycopg2 connection at the same time" in notes["error"], notes
    assert "threading.Lock" in notes["error"]
    assert notes["in turn"] is True


@hubs
def test_the_applications_own_psycogreen_does_no_harm(hub: str, postgres: Postgres) -> None:
    needs("psycogreen")
    outcome = run(hub, "psycopg2_with_psycogreen", postgres.dsn())
    assert outcome["query"].advanced, outcome["query"]
    assert outcome.notes["held"] == 1, "connections are counted all the same"


@hubs
def test_the_applications_own_callback_is_in_force(hub: str, postgres: Postgres) -> None:
    outcome = run(hub, "psycopg2_with_a_foreign_callback", postgres.dsn())
    assert outcome.notes == {"called": True, "held": 0}


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
@hubs
def test_refusals_are_told_with_the_address_and_what_is_held_counted(hub: str, driver: str, postgres: Postgres) -> None:
    until(lambda: not postgres.sessions(), "those of the test before have ended")
    outcome = run(hub, f"{driver}_refused", postgres.dsn(tcp=True), USABLE, 5)
    assert outcome.notes["errors"] == 5
    addresses, texts = zip(*outcome.told, strict=True)
    assert addresses == (f"127.0.0.1:{postgres.port}",) * 5
    assert all(re.match(TOO_MANY, text) for text in texts)
    assert outcome.notes["held"] == outcome.notes["page"] == USABLE
    assert outcome.notes["held after two were closed"] == USABLE - 2, "closed ones do not count, kept or not"
    assert outcome.notes["page at the end"] == 0


@hubs
def test_refusals_of_a_role_and_at_a_socket_are_told_as_well(hub: str, postgres: Postgres) -> None:
    postgres.execute("CREATE ROLE narrow LOGIN CONNECTION LIMIT 3")
    try:
        outcome = run(hub, "psycopg2_refused", postgres.dsn(user="narrow"), 3, 1)
    finally:
        postgres.execute("DROP ROLE narrow")
    address = f"{postgres.directory}/.s.PGSQL.{postgres.port}"
    assert outcome.told == [(address, 'too many connections for role "narrow"')]


# psycopg 3


@hubs
def test_psycopg_waits_while_siblings_get_on(hub: str, postgres: Postgres, silent: str) -> None:
    outcome = run(hub, "psycopg_waits", postgres.dsn(), f"{silent} connect_timeout=2")
    for what in ("query", "copy", "connect"):
        assert outcome[what].advanced, (what, outcome[what])
    assert outcome.lines() == []


@hubs
def test_psycopg_cancels_a_killed_query_and_keeps_the_connection(hub: str, postgres: Postgres) -> None:
    outcome = run(hub, "psycopg_killed", postgres.dsn())
    assert outcome.notes == {"is the timeout": True, "usable": True, "usable after a kill": True}


@hubs
def test_psycopg_imported_too_early_is_named(hub: str, postgres: Postgres) -> None:
    outcome = run(hub, "psycopg_waits", postgres.dsn(), "host=127.0.0.1 port=1", early=["psycopg"])
    assert outcome.lines() == [IMPORTED_TOO_EARLY]


@hubs
def test_psycopg_that_was_told_to_wait_in_c_is_named(hub: str, postgres: Postgres) -> None:
    needs("psycopg_binary")
    env = {"PSYCOPG_WAIT_FUNC": "wait_c"}
    outcome = run(hub, "psycopg_waits", postgres.dsn(), "host=127.0.0.1 port=1", env=env)
    assert outcome.lines() == [WAITS_IN_C]
    assert outcome["query"].stood, outcome["query"]
