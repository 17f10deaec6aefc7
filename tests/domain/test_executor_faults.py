"""Whatever goes wrong, and in whatever order: nothing is sent that must not be, and in the end every row ends."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkadash.domain.executor import cancelled
from kafkadash.domain.executor_state import ENDED, Mode, State
from kafkadash.domain.executor_throttles import Throttles
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.reasons import find_reason
from kafkadash.domain.row_reasons import EndedByOperator, OrderNotRestored
from tests.domain.executor_run import MOST_LATE, Fate, Run

BROKERS = 6
ROWS = (
    Row("a", "id-a", 0, (1, 2, 3), (4, 2, 3)),
    Row("a", "id-a", 1, (2, 3, 1), (2, 5, 1)),
    Row("a", "id-a", 2, (3, 1, 2), (2, 5, 3)),
    Row("a", "id-a", 3, (1, 2, 3), (3, 2, 1)),
    Row("b", "id-b", 0, (1, 2), (4, 5)),
    Row("b", "id-b", 1, (2, 1), (2, 1, 4)),
    Row("b", "id-b", 2, (1, 2, 3), (1, 2)),
    Row("c", "id-c", 0, (5, 6), (6, 4)),
)
KEYS = [(row.topic, row.partition) for row in ROWS]

keys = st.sampled_from(KEYS)
ticks = st.tuples(st.just("tick"), st.sampled_from(Fate))
events = st.one_of(
    ticks,
    ticks,
    ticks,
    ticks,
    st.tuples(st.just("tick"), st.just(Fate.ANSWERED)),
    st.tuples(st.just("mode"), st.sampled_from(Mode)),
    st.tuples(st.just("cancel row"), keys),
    st.tuples(st.just("foreign cancel"), keys),
    st.tuples(
        st.just("foreign target"),
        st.tuples(keys, st.lists(st.integers(1, BROKERS), min_size=1, max_size=3, unique=True).map(tuple)),
    ),
    st.tuples(st.just("delete"), st.sampled_from("abc")),
    st.tuples(st.just("recreate"), st.sampled_from("abc")),
    st.tuples(st.just("stop"), st.integers(1, BROKERS)),
    st.tuples(st.just("start"), st.integers(1, BROKERS)),
    st.tuples(st.just("late metadata"), st.integers(0, MOST_LATE)),
)


def happens(run: Run, kind: str, what: object) -> None:
    cluster = run.cluster
    match kind, what:
        case "tick", Fate() as fate:
            run.tick(fate)
        case "mode", Mode() as mode:
            run.mode = mode
        case "cancel row", (str(topic), int(partition)):
            at = cluster.now
            run.moves = [
                cancelled(m, at, EndedByOperator("alice")) if m.key == (topic, partition) else m for m in run.moves
            ]
        case "foreign cancel", (str(topic), int(partition)):
            run.disturbed.add((topic, partition))
            cluster.cancel((topic, partition))
        case "foreign target", ((str(topic), int(partition)), tuple(replicas)):
            run.disturbed.add((topic, partition))
            cluster.submit((topic, partition), replicas)
        case "delete", str(topic):
            run.disturbed.update(key for key in KEYS if key[0] == topic)
            cluster.delete(topic)
        case "recreate", str(topic):
            run.disturbed.update(key for key in KEYS if key[0] == topic)
            cluster.delete(topic)
            cluster.create(topic, f"id-{topic}-{cluster.now:%H%M%S%f}", 4, (1, 2, 3))
        case "stop", int(broker):
            cluster.stop(broker)
        case "start", int(broker):
            cluster.start(broker)
        case "late metadata", int(looks):
            run.looks_late = looks
        case _:
            raise AssertionError((kind, what))


@settings(deadline=None, derandomize=True, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events, max_size=40), st.integers(1, 2), st.integers(1, 5))
def test_faults__in_any_order__never_break_what_holds_and_every_row_ends(
    story: list[tuple[str, object]], k: int, n: int
) -> None:
    rate = 2_000_000
    run = Run.of(ROWS, BROKERS, Options(rate, rate, rate, per_broker=k, per_cluster=n, change_rf=True))
    for kind, what in story:
        happens(run, kind, what)
    for broker in range(1, BROKERS + 1):
        run.cluster.start(broker)
    if run.mode is Mode.PAUSED:
        run.mode = Mode.EXECUTING

    run.settle()

    assert set(run.states()) <= ENDED
    assert run.ours == Throttles()
    for move in run.moves:
        partition = run.cluster.partitions.get(move.key)
        if move.state is State.DONE and move.key not in run.disturbed:
            assert partition is not None
            assert partition.replicas == move.work.row.target
        if move.state is State.CANCELLED and move.key not in run.disturbed:
            assert partition is not None
            given_up = find_reason(move.reason, OrderNotRestored)
            assert partition.replicas == move.work.row.current or given_up
            assert set(partition.replicas) == set(move.work.row.current)
