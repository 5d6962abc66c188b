from __future__ import annotations

import pytest
from tricorn_bench.tune import model
from tricorn_bench.tune.model import Costs, Limits

MIB = 2**20


def costs(worker_class: str, **changes: float) -> Costs:
    fields = {"alone": 0.1, "cpu": 0.002, "rate": 10.0, "at_once": 1, "base": 30 * MIB, "worker": 20 * MIB}
    return Costs(worker_class, **{**fields, **changes})  # type: ignore[arg-type]


class TestWorkerRate:
    def test_sync_is_what_was_measured(self) -> None:
        assert model.worker_rate(costs("sync", rate=9.7), threads=8) == 9.7

    @pytest.mark.parametrize(("threads", "rate"), [(1, 20.0), (4, 80.0), (5, 100.0), (64, 100.0)])
    def test_threads_follow_littles_law_up_to_a_pool_of_five(self, threads: int, rate: float) -> None:
        pool = costs("gthread", alone=0.05, rate=100.0, cpu=0.0005, at_once=64)
        assert model.worker_rate(pool, threads) == pytest.approx(rate)

    def test_threads_that_compute_queue_for_the_gil(self) -> None:
        """Half of a request computes: two threads do not serve twice as much as one."""
        half = costs("gthread", alone=0.01, cpu=0.005, rate=200.0, at_once=16)
        assert model.worker_rate(half, 1) == pytest.approx(100.0)
        assert 100.0 < model.worker_rate(half, 2) < 180.0
        assert model.worker_rate(half, 16) == pytest.approx(200.0, rel=0.05)


class TestLoops:
    """A request waits for 30 ms and blocks the loop for 20: measured with 50 at once."""

    BLOCKS = costs("asgi", alone=0.05, cpu=0.001, rate=50 / (0.05 + 49 * 0.02), at_once=50)

    def test_seconds_that_a_request_holds_the_loop(self) -> None:
        assert self.BLOCKS.holding == pytest.approx(0.02)

    @pytest.mark.parametrize(("requests", "rate"), [(1, 20.0), (3, 3 / 0.09), (50, 50 / 1.03), (500, 50 / 1.03)])
    def test_few_requests_wait_together_and_block_in_turn(self, requests: int, rate: float) -> None:
        assert model.worker_rate(self.BLOCKS, 1, requests) == pytest.approx(rate)

    def test_many_workers_share_the_requests_of_a_measurement(self) -> None:
        """400 workers have 25 each: 25 / (0.05 + 24 x 0.02)."""
        assert model.predict(self.BLOCKS, Limits(900.0), 400).rate == pytest.approx(400 * 25 / 0.53)

    @pytest.mark.parametrize(("alone", "hold", "wanted"), [(0.05, 0.02, 32), (0.05, 0.001, 500), (1.0, 0.0001, 1000)])
    def test_requests_that_fill_a_loop(self, alone: float, hold: float, wanted: int) -> None:
        assert model.filling(alone, hold, 1000) == wanted


class TestClosedRate:
    def test_one_station_alone_serves_at_its_rate(self) -> None:
        assert model.closed_rate(50, service=0.01, alone=0.01) == pytest.approx(100.0)

    @pytest.mark.parametrize("customers", [2, 5, 10, 16])
    def test_where_both_limits_meet_customers_wait(self, customers: int) -> None:
        found = model.closed_rate(customers, service=0.01, alone=0.1)
        assert found == pytest.approx(mean_value_analysis(customers, 0.01, 0.1))

    def test_a_sixth_is_lost_where_both_limits_are_equal(self) -> None:
        assert model.closed_rate(10, service=0.01, alone=0.1) == pytest.approx(83.2, abs=0.1)

    def test_no_more_customers_than_servers_never_wait(self) -> None:
        assert model.closed_rate(4, service=0.5, alone=1.0, servers=4.0) == pytest.approx(4.0)

    def test_many_customers_do_not_overflow(self) -> None:
        assert model.closed_rate(16_000, service=0.0001, alone=1.0, servers=2.0) == pytest.approx(16_000, rel=0.01)


def mean_value_analysis(customers: int, service: float, alone: float) -> float:
    """The recursion of Reiser and Lavenberg (1980) for one station of one server."""
    queue = rate = 0.0
    for number in range(1, customers + 1):
        response = service * (1 + queue)
        rate = number / (alone - service + response)
        queue = rate * response
    return rate


class TestPredict:
    def test_a_knee_is_not_what_the_limits_say(self) -> None:
        """Half of the time computes on one processor: two workers would reach its limit if they never met."""
        half = costs("sync", alone=0.1, cpu=0.05, rate=10.0)
        assert model.predict(half, Limits(1.0), 2).rate == pytest.approx(16.0)  # of 20: 2 / (0.05 + 0.05 x 1.5)

    def test_waiting_scales_with_workers(self) -> None:
        found = model.predict(costs("sync"), Limits(4.0), workers=7)
        assert found.rate == pytest.approx(70.0, rel=0.01)
        assert found.memory == 170 * MIB
        assert found.limit == "each worker serves one request at a time"

    def test_processors_are_the_limit_of_computing(self) -> None:
        found = model.predict(costs("sync", alone=0.01, cpu=0.01, rate=100.0), Limits(4.0), workers=9)
        assert found.rate == pytest.approx(400.0)
        assert found.limit == model.PROCESSORS

    def test_threads_hold_no_more_connections_than_there_are_threads(self) -> None:
        found = model.predict(costs("gthread", connections=20, at_once=64, rate=300.0), Limits(4.0), 3, threads=4)
        assert found.connections == 12

    def test_a_pool_that_opens_five_at_once_has_five_for_two_threads(self) -> None:
        found = model.predict(costs("gthread", connections=5, resting=5, at_once=64, rate=100.0), Limits(4.0), 3, 2)
        assert found.connections == 15


class TestCandidates:
    def test_a_loop_that_does_not_block_needs_a_worker_for_each_processor(self) -> None:
        loop = costs("asgi", cpu=0.001, rate=990.0, at_once=500)
        found = model.best(model.candidates(loop, Limits(4.0)))
        assert found is not None
        assert found.configuration.workers == 4

    def test_calls_that_block_the_loop_need_more_workers_than_processors(self) -> None:
        """Ten milliseconds of each request block, one computes: 4 processors are busy with about 40 workers."""
        loop = costs("asgi", cpu=0.001, rate=1 / 0.011, at_once=91)
        found = model.best(model.candidates(loop, Limits(4.0)))
        assert found is not None
        assert 40 <= found.configuration.workers <= 44

    def test_memory_bounds_the_workers(self) -> None:
        found = model.best(model.candidates(costs("sync"), Limits(8.0, memory=300 * MIB)))
        assert found is not None
        assert found.configuration.workers == 10  # (0.8 · 300 − 30) / 20
        assert found.memory <= 300 * MIB

    def test_the_database_bounds_workers_times_threads(self) -> None:
        threads = costs("gthread", connections=16, at_once=16, rate=160.0, cpu=0.0001)
        for one in model.candidates(threads, Limits(8.0, connections=20)):
            assert one.connections is not None
            assert one.connections <= 20

    def test_no_room_is_no_candidate(self) -> None:
        assert model.best(model.candidates(costs("sync"), Limits(4.0, memory=45 * MIB))) is None

    def test_threads_are_not_promised_beyond_those_measured(self) -> None:
        threads = costs("gthread", at_once=8, rate=75.0)
        assert max(one.threads for one in model.candidates(threads, Limits(4.0))) == 8


@pytest.mark.parametrize(("alone", "cpu", "wanted"), [(1.0, 0.01, 150), (0.001, 0.001, 16), (9.0, 0.001, 1000)])
def test_requests_that_keep_a_processor_busy(alone: float, cpu: float, wanted: int) -> None:
    assert model.saturating(alone, cpu, 1000) == wanted
