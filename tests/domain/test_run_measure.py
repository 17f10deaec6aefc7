"""What is told of a run: on a model cluster with stalls, bursts, dead brokers, logs that grow and that shrink."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkadash.domain import run_stored
from kafkadash.domain.executor_state import Mode, State
from kafkadash.domain.run_progress import Direction, Mark, RunNow
from kafkadash.domain.stuck_reasons import DestinationAway, RowAboveLimit
from tests.domain.executor_cluster import START
from tests.domain.run_cases import KEY, RATE, after, only, options, row, running
from tests.domain.run_model import MB, Logs, Running, one_replica_moves

EVENTS = (
    "none",
    "stall",
    "recover",
    "burst",
    "stop",
    "start",
    "shrink",
    "produce",
    "calm",
    "sizes",
    "blind",
    "throttle",
)


def test_row__copies_at_the_throttle__tells_records_bytes_rate_and_time_left() -> None:
    run = running(row())

    now = after(run, 50)

    copied = (now.at - START).total_seconds() * 60 * MB
    one = only(now)
    assert one.percent is not None
    assert one.moved_bytes is not None
    assert one.percent == pytest.approx(100 * copied / (6000 * MB), abs=4.5)
    assert one.size_bytes == 6000 * MB
    assert one.moved_bytes == pytest.approx(one.percent / 100 * 6000 * MB, rel=0.01)
    assert one.rate == pytest.approx(60 * MB, rel=0.02)
    assert one.source == 1
    assert one.mark is None
    assert now.percent == pytest.approx(one.percent, abs=0.01)
    assert now.eta_s == pytest.approx((6000 * MB - one.moved_bytes) / (60 * MB), rel=0.03)
    assert now.binding in {(3, Direction.IN), (1, Direction.OUT)}


def test_row__adds_two_replicas__is_as_far_as_the_slower_and_counts_both() -> None:
    run = running(row(target=(3, 4)), size=600 * MB)
    run.cluster.can = lambda broker, _way, _at: 5 * MB if broker == 4 else math.inf

    one = only(after(run, 20))

    assert one.percent is not None
    assert one.percent < 20
    assert one.size_bytes == 1200 * MB
    assert one.moved_bytes is not None
    assert one.moved_bytes > 600 * MB


def test_run__all_is_copied__is_100_and_only_then() -> None:
    run = running(row(0), row(1), row(2), size=1000 * MB)

    run.until_over()

    assert run.told[-1].percent == 100.0
    assert run.told[-1].moved_bytes == run.told[-1].total_bytes == 3000 * MB
    early = [now.percent for now in run.told if now.counts.get("done", 0) < 3 and now.rows]
    assert all(percent is not None and percent < 100 for percent in early[:-1])


def test_run__row_is_skipped__stays_below_100() -> None:
    run = running(row(0), row(1), size=300 * MB)
    run.cluster.partitions["orders", 1].replicas = (1, 4)

    run.until_over()

    assert run.told[-1].percent == pytest.approx(50)
    assert run.told[-1].counts == {"done": 1, "skipped": 1}


def test_run__only_reorders__copies_nothing_and_says_so() -> None:
    run = running(row(current=(1, 2), target=(2, 1)))

    first = run.tick()
    run.until_over()

    assert first is not None
    assert any("copies nothing" in note for note in first.notes)
    assert first.percent is None
    assert run.told[-1].percent == 100.0


def test_run__sizes_not_known__has_no_percent_of_bytes_until_they_are_read() -> None:
    run = running(row(), size=1200 * MB, sized=False)

    unknown = after(run, 10)
    run.tick(sizes=True)
    known = after(run, 30)

    assert unknown.percent is None
    assert unknown.total_bytes is None
    assert unknown.eta_s is None
    assert any("not known" in note for note in unknown.notes)
    assert only(unknown).percent is not None
    assert known.total_bytes == pytest.approx(1200 * MB, rel=0.01)
    assert known.percent is not None


def test_run__one_size_not_known__has_the_percent_of_the_others_and_says_so() -> None:
    rows = [row(), row(1)]
    cluster = Logs(rows, {("orders", 0): 1200 * MB, ("orders", 1): 1200 * MB}, range(1, 7), RATE)
    cluster.number["orders"] = 4
    run = Running(cluster, rows, options(), {("orders", 0): 1200 * MB})

    partly = after(run, 10)

    assert (partly.percent, partly.total_bytes, partly.eta_s, partly.unsized) == (None, None, None, 1)
    assert partly.known_bytes == 1200 * MB
    assert partly.known_moved == pytest.approx(1200 * MB * (partly.known_percent or 0) / 100, rel=0.01)
    assert 0 < (partly.known_percent or 0) < 100
    assert any("1 partition is not known: the percentage leaves it out" in note for note in partly.notes)
    assert run_stored.from_json(json.loads(json.dumps(run_stored.as_json(partly)))) == partly


def test_destination_dies__is_slow_then_stuck_and_named_and_nothing_gets_on() -> None:
    run = running(row())
    after(run, 30)
    run.cluster.stop(3)

    slow, stuck = after(run, 100), after(run, 210)

    assert only(slow).mark is Mark.SLOW
    assert only(stuck).mark is Mark.STUCK
    assert only(stuck).why == DestinationAway(3)
    assert stuck.eta_s == math.inf
    assert only(stuck).eta_s == math.inf
    assert stuck.stuck == 1
    assert any("does not get on" in note for note in stuck.notes)


def test_one_destination_of_many_dies__time_left_is_that_of_the_others_and_says_so() -> None:
    run = running(row(0), row(1, (1, 2), (1, 4)), row(2, (2, 1), (2, 5)), size=18_000 * MB)
    after(run, 30)
    run.cluster.stop(3)

    now = after(run, 200)

    assert now.left_out == 1
    assert now.eta_s is not None
    assert now.eta_s < 1000
    dead = next(b for b in now.brokers if (b.broker, b.direction) == (3, Direction.IN))
    assert dead.eta_s == math.inf


def test_destination_comes_back__gets_on_again() -> None:
    run = running(row())
    after(run, 30)
    run.cluster.stop(3)
    after(run, 320)
    run.cluster.start(3)

    now = after(run, 20)

    assert only(now).mark is None
    assert now.eta_s is not None
    assert now.eta_s < 200


def test_producers_outrun_the_copy__row_falls_plan_does_not_and_it_can_never_finish() -> None:
    run = running(row(), size=600 * MB, rate=2 * MB)
    run.cluster.inbound[KEY] = 1.0 * MB
    before = after(run, 100)
    run.cluster.inbound[KEY] = 9.0 * MB

    now = after(run, 400)

    assert only(now).percent < only(before).percent  # type: ignore[operator]
    assert now.percent is not None
    assert before.percent is not None
    assert now.percent >= before.percent
    assert only(now).mark is Mark.STUCK
    why = only(now).why
    assert isinstance(why, RowAboveLimit)
    assert why.limit == 2 * MB
    assert only(now).inbound == pytest.approx(9 * MB, rel=0.03)
    assert only(now).eta_s == math.inf
    assert any("further behind" in note for note in now.notes)


def test_log_shrinks__is_a_note_and_no_step_back() -> None:
    run = running(row(), size=6000 * MB, rate=20 * MB)
    before = after(run, 100)
    run.cluster.shrink(KEY, 3000 * MB)

    now = after(run, 10)

    assert now.percent is not None
    assert before.percent is not None
    assert now.percent >= before.percent
    assert any("shrunk by 3.0 GB" in note for note in now.notes)


def test_throttle_of_a_megabyte_for_many__is_slow_and_not_stuck() -> None:
    rows = [row(n) for n in range(20)]
    run = running(*rows, size=600 * MB, rate=1 * MB, per_broker=20)

    now = after(run, 400, every=4.0)

    assert now.slow == 20
    assert now.stuck == 0


def test_nobody_measured_for_two_minutes__rate_is_that_of_the_whole_time() -> None:
    run = running(row(), size=12_000 * MB)
    after(run, 40)
    for _ in range(60):
        run.tick(measure=False)

    now = after(run, 4)

    assert now.rate == pytest.approx(RATE, rel=0.03)


def test_memory_is_lost__what_was_copied_before_is_no_rate() -> None:
    run = running(row(), size=12_000 * MB)
    after(run, 100)
    run.packed = None

    now = after(run, 30)

    assert now.rate == pytest.approx(RATE, rel=0.03)
    assert now.percent == pytest.approx(only(now).percent, abs=0.01)


def test_row_is_cancelled__keeps_what_it_had_copied() -> None:
    run = running(row(0), row(1), size=6000 * MB)
    before = after(run, 30)
    run.mode = Mode.CANCELLING

    now = after(run, 40)

    assert all(move.state is State.CANCELLED for move in run.moves)
    assert now.percent is not None
    assert before.percent is not None
    assert before.percent <= now.percent < 100


def test_directory_is_read__bytes_are_those_of_the_copy_itself() -> None:
    run = running(row(), size=6000 * MB)
    after(run, 30)
    left = run.cluster.partitions[KEY].left[3]

    now = run.tick(sizes=True)

    assert now is not None
    assert only(now).moved_bytes == pytest.approx(6000 * MB - left, rel=0.001)


@settings(deadline=None, derandomize=True, max_examples=80, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.lists(st.sampled_from(EVENTS), min_size=5, max_size=60), st.booleans())
def test_run__whatever_happens__never_falls_never_negative_and_is_stored_as_told(
    seed: int, events: list[str], sized: bool
) -> None:
    chance = random.Random(seed)
    rows, sizes = one_replica_moves(chance.randint(1, 12), 6, seed, mean=200 * MB)
    cluster = Logs(rows, sizes, range(6), RATE)
    run = Running(cluster, rows, options(per_broker=2, per_cluster=6), None if sized else {})
    stalls: dict[int, float] = {}
    cluster.can = lambda broker, _way, _at: stalls.get(broker, math.inf)
    for event in events:
        broker, key = chance.randrange(6), chance.choice(list(sizes))
        happens(event, run, stalls, broker, key, chance)
        run.tick(chance.choice([1.0, 2.0, 15.0, 100.0]), sizes=event == "sizes", measure=event != "blind")

    for now in run.told:
        plausible(now)
        assert run_stored.from_json(json.loads(json.dumps(run_stored.as_json(now)))) is not None
    for before, now in pairwise(run.told):
        assert before.percent is None or (now.percent is not None and now.percent >= before.percent)
        assert before.total_bytes is None or now.total_bytes == before.total_bytes
    assert all(now.eta_s is None or not now.counts.get("moving") for now in run.told[:2])


def happens(
    event: str, run: Running, stalls: dict[int, float], broker: int, key: tuple[str, int], chance: random.Random
) -> None:
    cluster = run.cluster
    if event == "stall":
        stalls[broker] = 0.0
    elif event == "recover":
        stalls.clear()
    elif event == "burst":
        stalls[broker] = 10.0 * RATE
    elif event == "stop":
        cluster.stop(broker)
    elif event == "start" and not cluster.brokers[broker]:
        cluster.start(broker)
    elif event == "shrink":
        cluster.shrink(key, chance.uniform(0, 300) * MB)
    elif event == "produce":
        cluster.inbound[key] = chance.uniform(0, 90) * MB
    elif event == "calm":
        cluster.inbound.clear()
    elif event == "throttle":
        run.throttle(chance.choice([1, 20, 60, 200]) * MB)


def plausible(now: RunNow) -> None:
    assert now.percent is None or 0 <= now.percent <= 100
    if now.percent == 100 and now.counts.get("done", 0) < sum(now.counts.values()):
        assert all(row.percent == 100 for row in now.rows if row.percent is not None)
    if now.total_bytes is not None:
        assert now.moved_bytes is not None
        assert 0 <= now.moved_bytes <= now.total_bytes
    times = (now.eta_low_s, now.eta_s, now.eta_high_s)
    assert all(value is None or value >= 0 for value in times)
    if now.eta_low_s is not None:
        assert now.eta_s is not None
        assert now.eta_high_s is not None
        assert now.eta_low_s <= now.eta_s <= now.eta_high_s
    assert now.rate is None or now.rate >= 0
    for one in now.rows:
        assert one.percent is None or 0 <= one.percent <= 100
        assert one.rate is None or one.rate >= 0
        assert one.eta_s is None or one.eta_s >= 0
        assert one.remaining_bytes is None or one.remaining_bytes >= 0
        assert (one.why is None) == (one.mark is None)
    for broker in now.brokers:
        assert broker.moved_bytes is None or broker.total_bytes is None or broker.moved_bytes <= broker.total_bytes
        assert broker.eta_s is None or broker.eta_s >= 0
