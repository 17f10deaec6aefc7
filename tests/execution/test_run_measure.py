"""What is told of a run: on a model cluster with stalls, bursts, dead brokers, logs that grow and that shrink.

How long a run still takes: told when, how well, and what it does when the throttle changes.

Rate and time left of a run and of its rows under a quota that bursts and then stands still.

The mark that a row in flight gets, and the reason that comes first.

The history of a run's rates: bounded however long it takes, and still true.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass, unpack_format
from kafkadash.execution.engine.reasons import (
    BrokerAboveLimit,
    ClusterRefuses,
    CopyBelowInbound,
    DestinationAway,
    DestinationCordoned,
    DestinationDiskFull,
    DestinationDiskNotRead,
    DestinationFenced,
    DestinationUnregistered,
    DisksFull,
    DisksNotRead,
    KeptNotInSync,
    KeptReplicaAway,
    LimitNotOurs,
    ListOfOthers,
    NoCauseFound,
    NoSource,
    RateOfOthers,
    RowAboveLimit,
    SourceAtItsLimit,
    StuckReason,
)
from kafkadash.execution.engine.state import (
    BrokerSeen,
    ClusterObservation,
    CopyWork,
    ListedReassignment,
    PartitionSeen,
    RowState,
    RunMode,
    RunRow,
    TopicSeen,
)
from kafkadash.execution.progress.copies import (
    CopyMemory,
    CopyTimes,
    Lane,
    RowMemory,
    RowRead,
    Sizes,
    missing_bytes,
    update_row,
)
from kafkadash.execution.progress.figures import BrokerNow, FlowDirection, RowMark, RunNow, StuckCause
from kafkadash.execution.progress.stuck import (
    ForeignThrottle,
    RowSurroundings,
    StuckFix,
    mark_row,
    stuck_reason,
    suggest_fixes,
)
from kafkadash.execution.progress.throughput import MOST_LANES, MOST_POINTS, STEP_S, ThroughputHistory, add_sample
from kafkadash.monitoring.reassignments.progress import RATE_MIN_WINDOW_S
from tests.execution.executor_cluster import START
from tests.execution.run_model import (
    KEY,
    MB,
    RATE,
    Bursting,
    Logs,
    Running,
    Speed,
    after,
    error_at,
    one_replica_moves,
    only,
    options,
    row,
    running,
)

pytestmark = pytest.mark.domain

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
    assert now.binding in {(3, FlowDirection.IN), (1, FlowDirection.OUT)}


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
    assert any("copies no data" in note for note in first.notes)
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
    assert any("unknown" in note for note in unknown.notes)
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
    assert any("1 partition is unknown: the percentage excludes it" in note for note in partly.notes)
    assert unpack_dataclass(RunNow, json.loads(json.dumps(pack_dataclass(partly)))) == partly


def test_destination_dies__is_slow_then_stuck_and_named_and_nothing_gets_on() -> None:
    run = running(row())
    after(run, 30)
    run.cluster.stop(3)

    slow, stuck = after(run, 100), after(run, 210)

    assert only(slow).mark is RowMark.SLOW
    assert only(stuck).mark is RowMark.STUCK
    assert only(stuck).why == DestinationAway(3)
    assert stuck.eta_s == math.inf
    assert only(stuck).eta_s == math.inf
    assert stuck.stuck == 1
    assert any("excludes 1 move without progress" in note for note in stuck.notes)


def test_one_destination_of_many_dies__time_left_is_that_of_the_others_and_says_so() -> None:
    run = running(row(0), row(1, (1, 2), (1, 4)), row(2, (2, 1), (2, 5)), size=18_000 * MB)
    after(run, 30)
    run.cluster.stop(3)

    now = after(run, 200)

    assert now.left_out == 1
    assert now.eta_s is not None
    assert now.eta_s < 1000
    dead = next(b for b in now.brokers if (b.broker, b.direction) == (3, FlowDirection.IN))
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
    assert only(now).mark is RowMark.STUCK
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
    run.mode = RunMode.CANCELLING

    now = after(run, 40)

    assert all(move.state is RowState.CANCELLED for move in run.moves)
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


def test_tiered_topic__copy_begins_after_what_is_tiered__counts_what_it_gets() -> None:
    row = RowMemory(0.0, {3: CopyMemory()}, 1)

    def look(at: float, end: int, begin: int) -> dict[int, float]:
        read = RowRead(1, log_start=2_000, log_end=12_000, ends={3: end}, at=at, begins={3: begin})
        return update_row(row, KEY, 1_000_000, read, {}, CopyTimes([], at), at)

    look(2.0, 0, 0)
    assert (row.percent, row.size_bytes, row.moved_bytes) == (0.0, 1_000_000, 0)
    grown = look(4.0, 8_000, 7_000)

    assert (row.percent, row.size_bytes, row.moved_bytes, row.share) == (20.0, 500_000, 100_000, 0.2)
    assert (grown, missing_bytes(row)) == ({3: 100_000.0}, {3: 400_000.0})


def test_tiered_topic__copies_leave_out_what_is_tiered__run_counts_what_is_copied() -> None:
    run = running(row(), size=6000 * MB)
    run.tick()
    run.cluster.begins[3] = 4000 * MB
    run.cluster.partitions[KEY].left[3] = 2000 * MB

    now = after(run, 5)

    assert (now.total_bytes, only(now).size_bytes) == (2000 * MB, 2000 * MB)
    assert now.moved_bytes == only(now).moved_bytes
    assert now.percent == pytest.approx(only(now).percent, abs=0.1)
    assert now.notes == ()


@pytest.mark.parametrize("sized", [True, False], ids=["sized", "not sized"])
def test_tiered_topic__copy_was_empty_at_the_first_look__run_counts_what_is_copied(*, sized: bool) -> None:
    run = running(row(), size=6000 * MB, sized=sized)
    run.cluster.begins[3] = 0
    run.cluster.can = lambda *_: 0.0
    for _ in range(3):
        run.tick(sizes=not sized)
    assert only(run.told[-1]).moved_bytes == 0
    run.cluster.can = lambda *_: math.inf
    run.cluster.begins[3] = 4000 * MB
    run.cluster.partitions[KEY].left[3] = 2000 * MB

    assert after(run, 5).total_bytes == 2000 * MB


def test_tiered_topic__retention_of_the_copy_runs_before_that_of_its_leader__total_stays() -> None:
    run = running(row(), size=6000 * MB)
    run.cluster.begins[3] = 0
    after(run, 30)
    run.cluster.begins[3] = 100 * MB

    assert after(run, 5).total_bytes == 6000 * MB


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
        assert unpack_dataclass(RunNow, json.loads(json.dumps(pack_dataclass(now)))) == now
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


def test_eta__before_three_samples__is_not_told() -> None:
    run = running(row())

    for _ in range(3):
        run.tick()

    assert all(now.eta_s is None for now in run.told)
    assert after(run, 30).eta_s is not None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("load", "off"),
    [
        pytest.param(lambda _seed: lambda _b, _w, _at: math.inf, 0.12, id="steady"),
        pytest.param(lambda _seed: lambda _b, _w, _at: 25.0 * MB, 0.12, id="slower than the throttle"),
        pytest.param(lambda seed: lambda b, _w, at: changing(seed, b, at), 0.2, id="changing"),
        pytest.param(
            lambda seed: lambda b, w, _at: 15.0 * MB if (b, w) == (seed, "in") else math.inf, 0.12, id="slow disk"
        ),
    ],
)
def test_eta__at_half_the_time__is_near(seed: int, load: Callable[[int], Speed], off: float) -> None:
    rows, sizes = one_replica_moves(120, 8, seed, mean=900 * MB)
    cluster = Logs(rows, sizes, range(8), RATE)
    cluster.can = load(seed)
    run = Running(cluster, rows, options())

    took = run.until_over(every=6.0)

    assert abs(error_at(run.told, took)) < off


def changing(seed: int, broker: int, at: float) -> float:
    """Clients take up to half of each broker, and something else every 20 s."""
    return RATE * random.Random(f"{seed} {broker} {at // 20}").uniform(0.5, 1.0)


def test_eta__throttle_is_doubled__follows_at_once_and_says_that_it_is_expected() -> None:
    run = running(row(), rate=20 * MB)
    before = after(run, 60)

    run.throttle(40 * MB)
    then = after(run, 2)
    later = after(run, 80)

    assert before.eta_s is not None
    assert then.eta_s == pytest.approx(before.eta_s / 2, rel=0.06)
    assert any("throttle was changed" in note for note in then.notes)
    assert later.rate == pytest.approx(40 * MB, rel=0.03)
    assert not any("throttle was changed" in note for note in later.notes)


def test_eta__throttle_is_raised_and_the_disk_is_the_limit__learns_so_in_two_minutes() -> None:
    run = running(row(), size=12_000 * MB, rate=20 * MB)
    run.cluster.can = lambda _broker, _way, _at: 25.0 * MB
    after(run, 60)

    run.throttle(100 * MB)
    now = after(run, 120)

    assert now.rate == pytest.approx(25 * MB, rel=0.15)


def test_eta__bursts_after_the_throttle_changed__do_not_show() -> None:
    run = running(row(), size=12_000 * MB, rate=20 * MB)
    after(run, 60)
    run.throttle(40 * MB)
    run.cluster.rate = 600 * MB
    run.tick(1.0)
    run.cluster.rate = 1 * MB

    told = [after(run, 2) for _ in range(6)]

    assert all(now.rate == pytest.approx(40 * MB, rel=0.02) for now in told)


SIZE, BURST_RATE, BURST = 84 * MB, 1 * MB, 24 * MB


def run_in_bursts(
    number: int = 1, *, rate: int = BURST_RATE, burst: float = BURST, size: float = SIZE, sized: bool = True
) -> Running:
    rows = [PartitionMove("orders", "id", n, (1, 2), (1, 3)) for n in range(number)]
    sizes = {(row.topic, row.partition): size for row in rows}
    cluster = Bursting(rows, sizes, range(1, 4), rate, burst)
    cluster.number["orders"] = 2 * number
    return Running(cluster, rows, RunOptions(rate, 1, 10**12, 5, 50), None if sized else {})


def seconds(now: RunNow) -> float:
    return (now.at - START).total_seconds()


def agree(now: RunNow) -> None:
    """The run and each of its brokers go as fast as its rows do together."""
    rates = [row.rate for row in now.rows if row.rate is not None]
    if not now.rows or len(rates) < len(now.rows) or now.rate is None:
        return
    assert now.rate == pytest.approx(sum(rates), rel=0.1)
    into = next(b for b in now.brokers if (b.broker, b.direction) == (3, FlowDirection.IN))
    assert into.rate == pytest.approx(now.rate, rel=0.01)


def test_model__bursts_pauses_and_keeps_the_throttle_in_the_mean() -> None:
    run = run_in_bursts()
    for _ in range(20):
        run.tick()

    copied = [now.moved_bytes for now in run.told]

    assert copied[1] == pytest.approx(BURST, rel=0.1)
    assert copied[5] == copied[1]
    assert copied[19] is not None
    assert copied[9] is not None
    assert copied[19] - copied[9] == pytest.approx(20 * BURST_RATE, rel=0.1)


@pytest.mark.parametrize("phase", [0.0, 0.7, 1.4])
@pytest.mark.parametrize("sizes_at", [None, 14.0, 30.0], ids=["sizes known", "read after 14 s", "read after 30 s"])
def test_one_move__burst_and_pause__run_and_row_say_the_same(phase: float, sizes_at: float | None) -> None:
    run = run_in_bursts(sized=sizes_at is None)
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
    run = run_in_bursts(sized=False)

    told = [run.tick() for _ in range(12)]

    assert all(now is not None and now.rate is None and now.brokers[0].rate is None for now in told)


def test_throttle_is_raised_in_the_pause__nothing_is_judged_for_15_s_and_both_follow() -> None:
    run = run_in_bursts(size=300 * MB)
    for _ in range(30):
        run.tick()
    run.throttle(3 * BURST_RATE)

    told = [run.tick() for _ in range(30)]

    for now in told[2:]:
        assert now is not None
        agree(now)
    last = told[-1]
    assert last is not None
    assert last.rate == pytest.approx(3 * BURST_RATE, rel=0.15)


def test_many_moves__half_way__time_left_is_near() -> None:
    run = run_in_bursts(18, rate=5 * MB, burst=24 * MB, size=25 * MB)
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

    pace = float(BURST_RATE)
    stored: Sizes | None = None

    def speed(self, broker: int, way: str) -> float:
        return self.pace

    def sizes(self) -> Sizes:
        return self.stored or super().sizes()


@pytest.mark.parametrize("before_burst", [True, False], ids=["read before the burst", "read after the burst"])
def test_directory_read_between_two_looks__burst_there__bytes_agree_with_records(before_burst: bool) -> None:
    rows = [PartitionMove("orders", "id", 0, (1, 2), (1, 3))]
    cluster = ReadBefore(rows, {("orders", 0): SIZE}, range(1, 4), BURST_RATE)
    run = Running(cluster, rows, RunOptions(BURST_RATE, 1, 10**12, 5, 50))
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
    assert row.percent == pytest.approx((24 * BURST_RATE + BURST) / SIZE * 100, abs=3)
    assert now.percent == pytest.approx(row.percent, abs=0.5)


NOW = 10_000.0
MOVE = RunRow(CopyWork(PartitionMove("orders", "id", 0, (1, 2, 3), (1, 2, 4)), 500 * MB), RowState.MOVING)
BEHIND = RowMemory(
    0.0, {4: CopyMemory(end=10)}, source=1, log_start=0, log_end=1000, record_bytes=1000.0, grew_at=NOW - 400
)
PARTITION = PartitionSeen(
    (1, 2, 4, 3), frozenset({1, 2, 3}), 1, 2, listed=ListedReassignment((1, 2, 4, 3), frozenset({4}), frozenset({3}))
)
BROKERS = {broker: BrokerSeen() for broker in (1, 2, 3, 4)}
AROUND = RowSurroundings(60 * MB)
OUT_1, INTO_4 = (1, FlowDirection.OUT), (4, FlowDirection.IN)


def seen(partition: PartitionSeen | None = PARTITION, **brokers: BrokerSeen) -> ClusterObservation:
    at_hand = BROKERS | {int(name[1:]): state for name, state in brokers.items()}
    partitions = {KEY: partition} if partition else {}
    return ClusterObservation(START, {"orders": TopicSeen("id", 12)}, partitions, at_hand)


def why(
    looked: ClusterObservation,
    row: RowMemory = BEHIND,
    around: RowSurroundings = AROUND,
    inbound: float | None = 0.2 * MB,
) -> StuckReason:
    return stuck_reason(MOVE, row, looked, around, inbound, NOW)


@pytest.mark.parametrize(
    ("quiet", "rate", "expected"),
    [
        (89, 60.0 * MB, None),
        (90, 60.0 * MB, RowMark.SLOW),
        (10, 99_000.0, RowMark.SLOW),
        (10, 101_000.0, None),
        (10, None, None),
        (299, 0.0, RowMark.SLOW),
        (300, 0.0, RowMark.STUCK),
    ],
)
def test_mark__by_how_long_it_has_not_grown_and_how_fast_it_goes(
    quiet: float, rate: float | None, expected: RowMark | None
) -> None:
    assert mark_row(replace(BEHIND, grew_at=NOW - quiet), rate, NOW) is expected


def test_mark__all_copied__is_never_slow_but_stuck_when_it_does_not_end() -> None:
    assert mark_row(replace(BEHIND, copied_at=NOW - 200), 0.0, NOW) is None
    assert mark_row(replace(BEHIND, copied_at=NOW - 300), 0.0, NOW) is RowMark.STUCK


def test_mark__producers_have_been_faster_for_five_minutes__is_stuck_though_it_grows() -> None:
    assert mark_row(replace(BEHIND, grew_at=NOW, losing_since=NOW - 300), 5.0 * MB, NOW) is RowMark.STUCK


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (BrokerSeen(alive=False), DestinationAway(4)),
        (BrokerSeen(fenced=True), DestinationFenced(4)),
        (None, DestinationUnregistered(4)),
    ],
)
def test_reason__destination_away__comes_before_all(state: BrokerSeen | None, reason: StuckReason) -> None:
    looked = seen(replace(PARTITION, leader=None))
    brokers = {b: s for b, s in looked.brokers.items() if b != 4} | ({4: state} if state else {})

    assert why(replace(looked, brokers=brokers)) == reason


@pytest.mark.parametrize(
    ("offline", "reason"), [(frozenset({2}), KeptReplicaAway((2,))), (frozenset(), KeptNotInSync((2,)))]
)
def test_reason__copied_and_in_sync_without_a_kept_replica__names_it(
    offline: frozenset[int], reason: StuckReason
) -> None:
    copied = replace(BEHIND, copies={4: CopyMemory(end=1000)}, copied_at=NOW - 400)
    partition = replace(PARTITION, isr=frozenset({1, 4}), offline=offline)

    assert why(seen(partition), copied) == reason


def test_reason__no_leader() -> None:
    assert why(seen(replace(PARTITION, leader=None))) == NoSource()


def test_reason__throttle_of_somebody_else_below_what_it_receives__has_both_figures_and_whose_it_is() -> None:
    foreign = ForeignThrottle("broker", "1", "leader.replication.throttled.rate", "10")
    around = RowSurroundings(60 * MB, {OUT_1: 10}, (foreign,))

    found = why(seen(), around=around)

    assert found == RowAboveLimit(1, "out", 10, "orders-0", 0.2 * MB, also=(LimitNotOurs(),))
    assert suggest_fixes(found.cause, foreign=True)[0] is StuckFix.SETTLE_THROTTLE
    assert suggest_fixes(found.cause)[0] is StuckFix.RAISE_THROTTLE


def test_reason__all_copies_to_one_broker_receive_more_than_its_throttle() -> None:
    found = why(seen(), around=RowSurroundings(2 * MB, inbound={INTO_4: 3.5 * MB}))

    assert found == BrokerAboveLimit(4, "in", 2 * MB, 3.5 * MB)


def test_reason__producers_are_faster_than_its_copy() -> None:
    assert why(seen(), replace(BEHIND, losing_since=NOW - 400)) == CopyBelowInbound("orders-0", 0.2 * MB)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (BrokerSeen(full=DisksFull(4, 10**9, 2 * 10**9)), DestinationDiskFull(4, 10**9, 2 * 10**9)),
        (BrokerSeen(full=DisksNotRead(4)), DestinationDiskNotRead(4)),
        (BrokerSeen(cordoned=True), DestinationCordoned(4)),
    ],
)
def test_reason__destination_disk(state: BrokerSeen, reason: StuckReason) -> None:
    assert why(seen(b4=state)) == reason


def test_reason__source_at_its_throttle_while_others_idle__names_who_could_send() -> None:
    found = why(seen(), around=replace(AROUND, rates={OUT_1: 58.0 * MB, (2, FlowDirection.OUT): 1.0 * MB}))

    assert found == SourceAtItsLimit(1, 58.0 * MB, 60 * MB, (2, 3))
    assert StuckFix.ELECT_LEADER in suggest_fixes(found.cause)


def test_reason__throttle_of_somebody_else() -> None:
    foreign = ForeignThrottle("broker", "4", "follower.replication.throttled.rate", "5000000")

    found = why(seen(), around=replace(AROUND, foreign=(foreign,), limits={INTO_4: 5 * MB}))

    assert found == RateOfOthers("4", "follower.replication.throttled.rate", "5000000")
    assert suggest_fixes(found.cause)[0] is StuckFix.SETTLE_THROTTLE


def test_reason__list_of_somebody_else() -> None:
    foreign = ForeignThrottle("topic", "orders", "leader.replication.throttled.replicas", "")

    found = why(seen(), around=replace(AROUND, foreign=(foreign,)))

    assert found == ListOfOthers("orders", "leader.replication.throttled.replicas")


def test_reason__kafka_refuses_to_tell__has_its_words() -> None:
    found = why(seen(), replace(BEHIND, refused="Topic authorization failed."))

    assert found == ClusterRefuses("Topic authorization failed.")


def test_reason__nothing_matches__has_for_how_long() -> None:
    assert why(seen()) == NoCauseFound(400.0)


def test_fixes__every_cause_has_one() -> None:
    assert all(suggest_fixes(each) for each in StuckCause)
    assert suggest_fixes(None) == ()


INTO_6: Lane = (6, FlowDirection.IN)


def now(seconds: float, throttle: int = 60 * MB, binding: Lane | None = INTO_6, brokers: int = 3) -> RunNow:
    lanes = tuple(BrokerNow(b, FlowDirection.IN, (b + 1) * MB, 0) for b in range(6, 6 + brokers))
    return RunNow(
        START + timedelta(seconds=seconds), None, None, None, binding=binding, brokers=lanes, throttle=throttle
    )


def history(seconds: int, every: int = 2, throttle_at: int | None = None) -> ThroughputHistory:
    found = ThroughputHistory()
    for at in range(0, seconds, every):
        throttle = 40 * MB if throttle_at is not None and at >= throttle_at else 60 * MB
        found = add_sample(found, now(at, throttle), {INTO_6: at * 1.0}, at * 2.0)
    return found


def test_history__four_minutes__has_a_point_each_step() -> None:
    found = history(240)

    assert len(found.points) == pytest.approx(240 / STEP_S, abs=2)
    assert found.line(INTO_6)[-1] == pytest.approx(found.points[-1].at - START.timestamp())


def test_history__ten_hours__is_bounded_and_covers_all_of_it() -> None:
    found = history(36_000, every=10)

    assert len(found.points) <= MOST_POINTS
    assert found.points[0].at - START.timestamp() < 900
    assert found.points[-1].at - START.timestamp() > 35_500
    assert len(json.dumps(pack_dataclass(found))) < 30_000
    values = found.line(INTO_6)
    assert values == tuple(sorted(values, key=lambda value: value or 0))


def test_history__throttle_is_changed__marks_it_once() -> None:
    found = history(600, throttle_at=301)

    assert [(mark.before, mark.after) for mark in found.marks] == [(60 * MB, 40 * MB)]
    assert found.marks[0].at - START.timestamp() == pytest.approx(302)
    assert {point.throttle for point in found.points} == {60 * MB, 40 * MB}


def test_history__changed_back_between_two_points__marks_both() -> None:
    found = add_sample(
        add_sample(add_sample(history(32), now(34, 40 * MB), {}, 0.0), now(36, 40 * MB), {}, 0.0), now(38), {}, 0.0
    )

    assert [mark.after for mark in found.marks] == [40 * MB, 60 * MB]


def test_history__hundreds_of_brokers__keeps_the_largest_and_what_binds_later() -> None:
    found = add_sample(ThroughputHistory(), now(0, brokers=300), {}, None)
    found = add_sample(found, now(20, binding=(6, FlowDirection.OUT), brokers=300), {}, None)

    assert len(found.lanes) <= MOST_LANES
    assert (305, FlowDirection.IN) in found.lanes
    assert (6, FlowDirection.OUT) in found.lanes
    assert found.line((6, FlowDirection.OUT))[0] is None


def test_history__stored_and_read__is_the_same() -> None:
    found = history(600, throttle_at=300)

    assert unpack_dataclass(ThroughputHistory, json.loads(json.dumps(pack_dataclass(found)))) == found
    assert unpack_format(ThroughputHistory, {"format": 99}, 1) is None
