"""Each fail point once on real Kafka: whoever steps next finds out what became of it, and ends the run right.

The death is an exception that nobody catches instead of SIGKILL, which `make proof` sends: what is stored and what
Kafka has is the same. What a process had in memory is forgotten.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.domain import executor, executor_look, executor_state, ledger
from kafkadash.domain.executor_state import Key
from kafkadash.kafka.changing import Changed
from kafkadash.kafka.port import TopicPartition
from kafkadash.kafka.wire_client import WireClient
from kafkadash.playground.cluster import Playground
from kafkadash.reassign.models import Deed, Move, Order, Outcome, ThrottleEntry
from kafkadash.reassign.run import fail_points, moves, orders
from kafkadash.reassign.run import step as stepping
from kafkadash.reassign.run.fail_points import POINTS, Armed
from kafkadash.reassign.run.order_answers import LeaderElected
from kafkadash.reassign.run.step import step_once
from tests.agreement import runs
from tests.agreement.conftest import TopicMaker
from tests.agreement.runs import FAST, SLOW, Requests, Run, alter
from tests.agreement.tools import DescribedPartition, Tools
from tests.factories import ThrottleFactory
from tests.waiting import wait_until

IN_A_DRAIN = (
    # No row may lose three requests, else it asks the operator: two rows are killed twice before they are sent.
    *("throttle-set.before-call", "submit.before-call", "submit.after-row"),
    *("throttle-clear.before-call", "throttle-clear.after-call", "throttle-clear.after-row"),
    *("place.before-call", "place.after-call", "place.after-row"),
    *("throttle-set.after-call", "submit.after-call", "throttle-set.after-row"),
    *("election.after-call", "election.before-call", "election.after-row"),
)
IN_A_CANCEL = (
    *("cancel.before-call", "cancel.after-call", "reorder.before-call", "reorder.after-call"),
    *("cancel.after-row", "reorder.after-row"),
)
ROWS = 6
READ_EVERY_S = 20.0
OTHERS_RATE = {"leader_replication_throttled_rate": "300000000"}
OTHERS_LIST = {"leader_replication_throttled_replicas": "9:1"}

Kills = Callable[[tuple[str, ...]], Path]


class Killed(BaseException):
    pass


def dies() -> None:
    raise Killed


@pytest.fixture
def kills(requests: Requests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kills:
    """Arms these points for all steps of the test; returns the file in which the hits stand."""
    # Nothing is late here: whatever was sent has arrived when the next step looks.
    for module in (executor, executor_look, executor_state, ledger):
        for name in ("RETRY", "UNANSWERED"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, timedelta(seconds=1))

    read_at = 0.0

    def step_or_die(execution_id: int) -> None:
        nonlocal read_at
        if time.monotonic() - read_at > READ_EVERY_S:
            requests.read_all()
            read_at = time.monotonic()
        try:
            step_once(execution_id)
        except Killed:
            moves.kept.forget()
            stepping._known_lately.clear()

    def armed(points: tuple[str, ...]) -> Path:
        file = tmp_path / "points"
        file.write_text("\n".join(points), encoding="utf-8")
        monkeypatch.setattr(fail_points, "_armed", Armed(file, dies))
        monkeypatch.setattr(runs, "step_once", step_or_die)
        return tmp_path / "points.hits"

    return armed


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int, tuple[int, ...]]]:
    """How often Kafka accepted which target of which partition."""
    found: Counter[tuple[str, int, tuple[int, ...]]] = Counter()
    sent = WireClient.alter_reassignments

    def counted(
        client: WireClient, targets: dict[TopicPartition, tuple[int, ...] | None], **options: object
    ) -> Changed[TopicPartition]:
        answer = sent(client, targets, **options)  # type: ignore[arg-type]
        found.update((item.topic, item.partition, target) for item in answer.done if (target := targets[item]))
        return answer

    monkeypatch.setattr(WireClient, "alter_reassignments", counted)
    return found


def hit(file: Path) -> tuple[str, ...]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return tuple(line.split()[0] for line in lines)


def as_set(tools: Tools, topic: str, expected: Mapping[str, str]) -> dict[tuple[str | int, str], str]:
    """What is set of throttles, as soon as every broker knows of what this test has just had set."""
    names = {name.replace("_", ".") for name in expected}
    wait_until(
        lambda: {name for _, name in tools.throttles(topic, 1, 2, 3)} == names, "what is set is known everywhere", 20
    )
    return tools.throttles(topic, 1, 2, 3)


def first_of(run: Run) -> tuple[str, int]:
    """The row that moves: only half of a topic's does at once."""
    moving = Move.objects.filter(execution__request=run.change, state="moving")
    run.until_it_is(RequestState.EXECUTING)
    run.until(moving.exists, "one moves")
    [row] = moving
    return row.topic, row.partition


def audited(run: Run) -> list[str]:
    events = AuditEvent.objects.filter(object_type="changerequest", object_id=str(run.change.pk)).order_by("id")
    verbs = [action.removeprefix("change.") for action in events.values_list("action", flat=True)]
    return verbs[verbs.index("started") :]


class Scene:
    """A topic on which others have set throttles before its run, and what Kafka was asked for and has afterwards."""

    def __init__(
        self,
        make_topic: TopicMaker,
        tools: Tools,
        playground: Playground,
        accepted: Counter[tuple[str, int, tuple[int, ...]]],
    ) -> None:
        self.tools = tools
        self._make_topic, self._playground, self._accepted = make_topic, playground, accepted

    def topic(self, placement: list[list[int]], *, mib: int, broker_1: Mapping[str, str] | None = None) -> list[Key]:
        """Makes it; its rows. ``broker_1``: what others have set there."""
        self.name = self._make_topic(placement, mib=mib)
        rates = broker_1 or {}
        if rates:
            alter(self._playground, 1, **rates)
        for name, value in rates.items():  # as the collector has it, whose time does not come here
            ThrottleFactory.create(cluster=Cluster.objects.get(), name="1", key=name.replace("_", "."), value=value)
        alter(self._playground, self.name, **OTHERS_LIST)
        self._before = as_set(self.tools, self.name, {**rates, **OTHERS_LIST})
        return [(self.name, number) for number in range(len(placement))]

    @property
    def partitions(self) -> list[DescribedPartition]:
        return list(self.tools.topics("--topic", self.name)[self.name].partitions.values())

    def assert_accepted_once(self, rows: list[Key], *targets: tuple[int, ...]) -> None:
        assert self._accepted == Counter({(*row, target): 1 for row in rows for target in targets})

    def assert_nothing_is_left(self) -> None:
        assert self.tools.moves() == []
        assert self.tools.throttles(self.name, 1, 2, 3) == self._before


@pytest.fixture
def scene(
    make_topic: TopicMaker,
    tools: Tools,
    playground: Playground,
    accepted: Counter[tuple[str, int, tuple[int, ...]]],
) -> Iterator[Scene]:
    """What others have set on the topic is taken away afterwards: the next test finds a cluster without throttles."""
    scene = Scene(make_topic, tools, playground, accepted)
    yield scene
    alter(playground, scene.name, **dict.fromkeys(OTHERS_LIST))
    wait_until(lambda: tools.throttles(scene.name) == {}, "the topic has no throttles any more", 20)


def test_every_point_has_its_place() -> None:
    assert sorted(IN_A_DRAIN + IN_A_CANCEL) == sorted(POINTS)


def test_a_drain_that_dies_at_every_point__is_done_once_and_leaves_nothing(
    requests: Requests, scene: Scene, kills: Kills
) -> None:
    rows = scene.topic([[1, 2]] * ROWS, mib=1, broker_1=OTHERS_RATE)
    directory = max(scene.tools.all_sizes([3])[3])
    file = kills(IN_A_DRAIN)
    run = requests.approved(
        {row: [3, 1] for row in rows},
        throttle=FAST // 20,
        per_broker=1,
        directories={row: [directory, "any"] for row in rows},
    ).start()

    run.until(lambda: "throttle-set.after-row" in hit(file), "the last row is on its way", 60)
    orders.row(run.change, run.alice, *rows[0], Deed.ELECT, "Its leader is wanted now.")
    run.until_it_is(RequestState.DONE, 60)

    assert hit(file) == IN_A_DRAIN
    scene.assert_accepted_once(rows, (3, 1))
    assert {(p.replicas, p.leader) for p in scene.partitions} == {((3, 1), 3)}
    assert set(scene.tools.sizes(scene.name)[3][directory]) == set(range(ROWS))
    scene.assert_nothing_is_left()
    assert run.execution.outcome == Outcome.CLEAN
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert Order.objects.get().answer == LeaderElected()
    assert audited(run) == ["started", "turn_came", "ordered", "rows_ended", "verified"]


def test_a_cancel_that_dies_at_every_point__gives_everything_back(
    requests: Requests, scene: Scene, kills: Kills
) -> None:
    rows = scene.topic([[2, 1]] * 2, mib=24)
    run = requests.approved({row: [3, 1] for row in rows}, throttle=SLOW // 4).start()
    first = first_of(run)
    file = kills(IN_A_CANCEL)

    orders.row(run.change, run.alice, *first, Deed.CANCEL_ROW, "Its consumers complain.")
    run.until(lambda: run.row(*first).state == "cancelled", "one row is given back")
    assert hit(file) == IN_A_CANCEL[:4]
    assert first_of(run) != first
    run.cancel("All complain.")

    assert hit(file) == IN_A_CANCEL
    scene.assert_accepted_once(rows, (3, 1), (2, 1))
    assert {p.replicas for p in scene.partitions} == {(2, 1)}
    scene.assert_nothing_is_left()
    assert {run.row(*row).state for row in rows} == {"cancelled"}
    assert audited(run) == ["started", "turn_came", "ordered", "cancelled", "cancel_ended"]
