"""Rate and time left of a run and of its rows under a quota that bursts and then stands still."""

from __future__ import annotations

import pytest

from kafkadash.domain.plan import Options, Row
from kafkadash.domain.progress import RATE_MIN_WINDOW_S
from kafkadash.domain.run_copies import Sizes
from kafkadash.domain.run_progress import Direction, RunNow
from tests.domain.executor_cluster import START
from tests.domain.run_bursts import Bursting
from tests.domain.run_model import MB, Logs, Running

SIZE, RATE, BURST = 84 * MB, 1 * MB, 24 * MB


def running(
    number: int = 1, *, rate: int = RATE, burst: float = BURST, size: float = SIZE, sized: bool = True
) -> Running:
    rows = [Row("orders", "id", n, (1, 2), (1, 3)) for n in range(number)]
    sizes = {(row.topic, row.partition): size for row in rows}
    cluster = Bursting(rows, sizes, range(1, 4), rate, burst)
    cluster.number["orders"] = 2 * number
    return Running(cluster, rows, Options(rate, 1, 10**12, 5, 50), None if sized else {})


def seconds(now: RunNow) -> float:
    return (now.at - START).total_seconds()


def agree(now: RunNow) -> None:
    """The run and each of its brokers go as fast as its rows do together."""
    rates = [row.rate for row in now.rows if row.rate is not None]
    if not now.rows or len(rates) < len(now.rows) or now.rate is None:
        return
    assert now.rate == pytest.approx(sum(rates), rel=0.1)
    into = next(b for b in now.brokers if (b.broker, b.direction) == (3, Direction.IN))
    assert into.rate == pytest.approx(now.rate, rel=0.01)


def test_model__bursts_pauses_and_keeps_the_throttle_in_the_mean() -> None:
    run = running()
    for _ in range(20):
        run.tick()

    copied = [now.moved_bytes for now in run.told]

    assert copied[1] == pytest.approx(BURST, rel=0.1)
    assert copied[5] == copied[1]
    assert copied[19] is not None
    assert copied[9] is not None
    assert copied[19] - copied[9] == pytest.approx(20 * RATE, rel=0.1)


@pytest.mark.parametrize("phase", [0.0, 0.7, 1.4])
@pytest.mark.parametrize("sizes_at", [None, 14.0, 30.0], ids=["sizes known", "read after 14 s", "read after 30 s"])
def test_one_move__burst_and_pause__run_and_row_say_the_same(phase: float, sizes_at: float | None) -> None:
    run = running(sized=sizes_at is None)
    run.tick(2.0 + phase)
    read = sizes_at is None
    while not run.over:
        now = run.tick(sizes=not read and run.cluster.elapsed >= (sizes_at or 0.0))
        read = read or run.cluster.elapsed > (sizes_at or 0.0) + 2.0
    copied = next(seconds(now) for now in run.told if now.percent == 100)

    judged = [now for now in run.told if now.rows and now.rate is not None]
    assert len(judged) > 15
    for now in judged:
        assert seconds(now) >= RATE_MIN_WINDOW_S
        agree(now)
        assert now.rate == pytest.approx((now.moved_bytes or 0) / seconds(now), rel=0.15)
    for now in judged:
        left = copied - seconds(now)
        if left > 20:
            assert now.eta_s == pytest.approx(left, rel=0.2)
            assert now.rows[0].eta_s == pytest.approx(left, rel=0.2)


def test_sizes_not_known__rate_is_not_known_instead_of_that_of_a_part() -> None:
    run = running(sized=False)

    told = [run.tick() for _ in range(12)]

    assert all(now is not None and now.rate is None and now.brokers[0].rate is None for now in told)


def test_throttle_is_raised_in_the_pause__nothing_is_judged_for_15_s_and_both_follow() -> None:
    run = running(size=300 * MB)
    for _ in range(30):
        run.tick()
    run.throttle(3 * RATE)

    told = [run.tick() for _ in range(30)]

    for now in told[2:]:
        assert now is not None
        agree(now)
    last = told[-1]
    assert last is not None
    assert last.rate == pytest.approx(3 * RATE, rel=0.15)


def test_many_moves__half_way__time_left_is_near() -> None:
    run = running(18, rate=5 * MB, burst=24 * MB, size=25 * MB)
    raised = False
    while not run.over:
        if run.cluster.elapsed >= 30 and not raised:
            run.throttle(6 * MB)
            raised = True
        now = run.tick()
        assert now is not None
    took = run.cluster.elapsed

    half = min(run.told, key=lambda now: abs(seconds(now) - took / 2))

    assert half.eta_s == pytest.approx(took - seconds(half), rel=0.2)


class ReadBefore(Logs):
    """``pace``: bytes per second of each copy; ``stored``: directories as a collector read them before."""

    pace = float(RATE)
    stored: Sizes | None = None

    def speed(self, broker: int, way: str) -> float:
        return self.pace

    def sizes(self) -> Sizes:
        return self.stored or super().sizes()


@pytest.mark.parametrize("before_burst", [True, False], ids=["read before the burst", "read after the burst"])
def test_directory_read_between_two_looks__burst_there__bytes_agree_with_records(before_burst: bool) -> None:
    rows = [Row("orders", "id", 0, (1, 2), (1, 3))]
    cluster = ReadBefore(rows, {("orders", 0): SIZE}, range(1, 4), RATE)
    run = Running(cluster, rows, Options(RATE, 1, 10**12, 5, 50))
    for _ in range(12):
        run.tick()
    pauses = [(0.0, 1.9), (BURST / 0.1, 0.1)] if before_burst else [(BURST / 0.1, 0.1), (0.0, 1.9)]

    cluster.pace, seconds_first = pauses[0]
    run.tick(seconds_first, measure=False)
    cluster.stored = cluster.sizes()
    cluster.pace, seconds_then = pauses[1]
    cluster.pass_time(seconds_then)
    now = run.tick(sizes=True)

    assert now is not None
    [row] = now.rows
    assert row.percent == pytest.approx((24 * RATE + BURST) / SIZE * 100, abs=3)
    assert now.percent == pytest.approx(row.percent, abs=0.5)
