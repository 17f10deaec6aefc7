"""What can happen to a run, one function each; every one says what it did and returns what heals it.

A function gets the scene and the leg that goes on (``drain.Leg``), and chance. It returns the ``Struck`` fault, or
raises NotNow where there is nothing to strike at this moment. Healing is what an operator or systemd would do: start
what was killed, make room on a disk; never anything that the product has to do itself.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from kafkadash.execution.models import Move
from tests.agreement.tools import DescribedPartition
from tests.chaos.drain import Leg, again
from tests.chaos.metadata_log import history
from tests.chaos.referee import CLOCKS, THROTTLED, throttles_of
from tests.chaos.scene import ELSEWHERE, WATCHERS, Scene, now
from tests.chaos.second_installation import RATE as SECOND_RATE
from tests.hostile_member import HOSTILE_ASSIGNMENTS, coordinator_of, hostile_member
from tests.waiting import wait_until

HOUR = 3600
FOREIGN_RATE = 3_000_000
ANOTHER_RATE = 4_000_000
SECOND_S = 100.0
QUORUM = 3
"""Controllers of which two are enough to lose it."""


class NotNow(Exception):
    """There is nothing that it could strike."""


@dataclass(frozen=True, slots=True)
class Struck:
    """``what`` in a few words; ``heal`` after ``hold_s`` seconds, or if it is ``lasting`` only when the run is over."""

    what: str
    hold_s: float = 0.0
    heal: Callable[[], None] = lambda: None
    lasting: bool = False


Strike = Callable[[Scene, Leg, random.Random], Struck]


@dataclass(frozen=True, slots=True)
class Fault:
    """``moving``: it needs something that moves. ``only_drain``: it means nothing on the way back."""

    name: str
    strike: Strike
    moving: bool = False
    only_drain: bool = False


# --- our own processes ---


def _killed(name: str, most_s: float = 6.0) -> Strike:
    """SIGKILL, away for a while, back."""

    def strike(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
        return _away(scene, name, chance.uniform(0.5, most_s))

    return strike


def _executor_killed(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """The one that is in the middle of a step."""
    name = _in_a_step(leg) or chance.choice(scene.ground.executors)
    return _away(scene, name, chance.uniform(0.5, 6.0))


def _executor_frozen(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """In the middle of a step, for longer than its lease: another one takes over, and then this one wakes up."""
    name = _in_a_step(leg) or "worker-execute"
    hold = scene.ground.lease_s + chance.uniform(3, 8)
    pid = scene.stack.freeze(name, hold + 60)
    if pid is None:
        raise NotNow(f"{name} is away")
    return Struck(f"{name} frozen for {hold:.0f} s", hold, lambda: scene.stack.thaw(name, pid))


def _clock_jumped(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """For the rest of the run; but facts carry the time of who read them, so that one is set right again."""
    name, seconds = chance.choice(scene.ground.jumping), chance.choice((HOUR, -HOUR))
    scene.jump(name, seconds)
    lasts = name != "worker-collect"
    return Struck(
        f"the clock of {name} jumps {seconds:+d} s", chance.uniform(12, 20), lambda: scene.jump(name, 0), lasting=lasts
    )


# --- Kafka's processes ---


def _source_killed(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    return _away(scene, scene.node(chance.choice(leg.sources)), chance.uniform(2, 12))


def _destination_killed(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    row = _a_moving_row(leg, chance)
    [broker] = set(row.target) - set(row.current)
    return _away(scene, scene.node(broker), chance.uniform(2, 12))


def _controller_killed(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    try:
        name = scene.leader()
    except (AssertionError, ServerError) as error:
        raise NotNow(f"nobody names the active controller: {error}") from error
    return _away(scene, name, chance.uniform(2, 10))


def _quorum_lost(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Most controllers at once: brokers serve what they have, and nothing of the cluster can be changed."""
    controllers = scene.controllers
    if len(controllers) < QUORUM:
        raise NotNow("the controllers are brokers too, or there is one only")
    names = chance.sample(controllers, QUORUM - 1)
    with contextlib.ExitStack() as undone:
        for name in names:
            undone.callback(_away(scene, name, 0.0).heal)
        heal = undone.pop_all().close
    return Struck(f"{' and '.join(names)} killed: no quorum", chance.uniform(4, 14), heal)


def _coordinator_killed(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Of a group with commits, which another broker coordinates then."""
    _needs_groups(scene)
    try:
        broker = coordinator_of(scene.any_broker(), WATCHERS)
    except (OSError, AssertionError) as error:
        raise NotNow(f"nobody names the coordinator: {error}") from error
    return _away(scene, scene.node(broker), chance.uniform(2, 12))


def _needs_groups(scene: Scene) -> None:
    if not scene.has_groups:
        raise NotNow("there are too few brokers for groups")


def _disk_full(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    broker = scene.ground.small_disk
    rows = [row for row in _moving_rows(leg) if broker in row.target]
    if broker is None or not rows or scene.stack.pid(scene.node(broker)) is None:
        raise NotNow(f"nothing moves to broker {broker}")
    heal = scene.fill_disk(broker, [f"{row.topic}-{row.partition}" for row in rows])
    how = "its small file system" if scene.mounts else "a limit on the size of its files"
    return Struck(f"a directory of broker {broker} is full ({how})", chance.uniform(8, 15), heal)


# --- other people ---


def _hostile_group(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """A consumer assigns itself bytes that no decoder should follow."""
    _needs_groups(scene)
    members = contextlib.ExitStack()
    try:
        for number, assignment in enumerate(HOSTILE_ASSIGNMENTS):
            name = f"hostile-{leg.number}-{number}"
            members.enter_context(hostile_member(scene.any_broker(), name, assignment))
    except (OSError, AssertionError) as error:
        members.pop_all()
        raise NotNow(f"no coordinator takes it: {error}") from error

    def heal() -> None:
        with contextlib.suppress(OSError, AssertionError):  # its coordinator was killed; the group ends by itself
            members.close()

    return Struck("consumers with hostile assignments join", chance.uniform(8, 15), heal)


def _topic_deleted(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    row = _a_moving_row(leg, chance)
    _tool(scene, "topics", "--delete", "--topic", row.topic)
    return Struck(f"{row.topic} deleted")


def _topic_recreated(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    row = _a_moving_row(leg, chance)
    _tool(scene, "topics", "--delete", "--topic", row.topic)
    wait_until(lambda: row.topic not in scene.tools.topics(), f"{row.topic} is gone", 30)
    placement = [scene.ground.keepers, scene.ground.keepers]
    load_topics(scene.stack.playground.bootstrap, [LoadTopic(row.topic, placement=placement, fill_bytes=MIB)])
    return Struck(f"{row.topic} deleted and created again")


def _moved_elsewhere(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Another topic, without any throttle."""
    target = _elsewhere(scene, 0, chance)
    _reassign(scene, {(ELSEWHERE, 0): target}, "--execute", "--additional")
    return Struck(f"Kafka's tool moves {ELSEWHERE}-0 to {list(target)}")


def _retargeted(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    row = _a_moving_row(leg, chance)
    drained = (scene.ground.source, *scene.ground.destinations)
    others = [b for b in drained if b not in row.target and b not in row.current]
    if not others:
        raise NotNow(f"{row} has nowhere else to go")
    target = (others[0], *row.target[1:])
    key = row.topic, row.partition
    with leg.disturbing() as disturbed:
        disturbed.begun[key] += 1
        _reassign(scene, {key: target}, "--execute", "--additional")
        disturbed.moves[key] = now()
    return Struck(f"Kafka's tool sends {row} to {list(target)} instead")


def _row_cancelled(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """The tool also takes everybody's rates away, and the lists of this topic."""
    row = _a_moving_row(leg, chance)
    key = row.topic, row.partition
    with leg.disturbing() as disturbed:
        disturbed.moves[key] = now()
        _reassign(scene, {key: tuple(row.target)}, "--cancel")
        _forget_rates(leg)
    return Struck(f"Kafka's tool cancels {row}")


def _throttle_set(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """A rate of somebody else on a broker that our own may stand on."""
    broker = chance.choice((*leg.sources, *leg.destinations))
    side = chance.choice(("leader", "follower"))
    key = f"{side}{THROTTLED}rate"
    with leg.disturbing() as disturbed:
        configs = ("--entity-type", "brokers", "--entity-name", str(broker), "--add-config", f"{key}={FOREIGN_RATE}")
        _tool(scene, "configs", "--alter", *configs)
        disturbed.throttles["broker", str(broker), key] = str(FOREIGN_RATE)
    return Struck(f"{key} of broker {broker} is set to {FOREIGN_RATE} by somebody else")


def _throttled_elsewhere(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Kafka's tool moves another topic with a throttle, which stands on brokers that we use.

    Where it stood is read from the metadata log: the product may have set its own over it by the time the tool ends.
    """
    with leg.disturbing() as disturbed:
        began = now()
        _reassign(
            scene,
            {(ELSEWHERE, 1): _elsewhere(scene, 1, chance)},
            "--execute",
            "--additional",
            "--throttle",
            str(ANOTHER_RATE),
        )
        for place, value in throttles_of(scene.tools).items():
            if place[:2] == ("topic", ELSEWHERE):
                disturbed.throttles[place] = value
        for each in history(scene.stack.playground, scene.tools.quorum_status().leader_id).configs:
            if each.value == str(ANOTHER_RATE) and each.at >= began - CLOCKS:
                disturbed.throttles[each.resource, each.name, each.key] = each.value
    return Struck(f"Kafka's tool moves {ELSEWHERE}-1 at {ANOTHER_RATE} bytes/s")


def _moved_by_second(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Another installation of the product moves another topic, with a throttle on brokers that this run throttles."""
    partition = chance.choice((0, 1))
    target = _elsewhere(scene, partition, chance)
    try:
        moved = scene.second_installation().move(ELSEWHERE, partition, target)
    except (ServerError, AssertionError) as error:
        raise NotNow(f"the second installation could not: {str(error).strip()[-300:]}") from error
    leg.disturbed.second_rate = str(SECOND_RATE)

    def heal() -> None:
        leg.over.wait()  # until then its move may have to wait for the throttle of this run
        moved.wait(SECOND_S)

    return Struck(f"a second installation moves {ELSEWHERE}-{partition} to {list(target)}", heal=heal, lasting=True)


def _throttles_cleared(scene: Scene, leg: Leg, chance: random.Random) -> Struck:
    """Let Kafka's tool clear everybody's rates: ``--verify``, then ``--cancel`` of idle partitions if anything moves.

    ``--verify`` clears nothing while anything moves in the cluster (class ReassignPartitionsCommand), and a move may
    begin while the tool starts. Therefore the fault looks for moves after ``--verify``, not before.
    """
    with leg.disturbing():
        idle = {(ELSEWHERE, n): p.replicas for n, p in _partitions(scene, ELSEWHERE).items()}
        how = "--verify"
        _reassign(scene, idle, how)
        if scene.tools.moves():
            how = "--cancel"
            _reassign(scene, idle, how)
        _forget_rates(leg, ELSEWHERE)
    return Struck(f"Kafka's tool clears everybody's rates ({how})")


FAULTS: tuple[Fault, ...] = (
    Fault("worker-execute killed", _executor_killed),
    Fault("worker-execute frozen past its lease", _executor_frozen),
    Fault("worker-tick killed", _killed("worker-tick")),
    Fault("worker-collect killed", _killed("worker-collect")),
    Fault("worker-jobs killed", _killed("worker-jobs")),
    Fault("beat killed", _killed("beat")),
    Fault("web killed", _killed("web")),
    Fault("Valkey killed", _killed("valkey", 10.0)),
    Fault("PostgreSQL killed", _killed("postgres", 8.0)),
    Fault("source broker killed", _source_killed),
    Fault("destination broker killed", _destination_killed, moving=True),
    Fault("active controller killed", _controller_killed),
    Fault("quorum lost", _quorum_lost),
    Fault("group coordinator killed", _coordinator_killed),
    Fault("destination directory full", _disk_full, moving=True, only_drain=True),
    Fault("hostile consumers", _hostile_group),
    Fault("topic deleted", _topic_deleted, moving=True),
    Fault("topic deleted and recreated", _topic_recreated, moving=True),
    Fault("Kafka's tool moves elsewhere", _moved_elsewhere),
    Fault("Kafka's tool retargets a row", _retargeted, moving=True),
    Fault("Kafka's tool cancels a row", _row_cancelled, moving=True),
    Fault("foreign rate set", _throttle_set),
    Fault("foreign move with a throttle", _throttled_elsewhere),
    Fault("second installation moves", _moved_by_second),
    Fault("everybody's throttles cleared", _throttles_cleared),
    Fault("worker's clock jumps an hour", _clock_jumped),
)
BY_NAME: Mapping[str, Fault] = {fault.name: fault for fault in FAULTS}


# --- means ---


def _away(scene: Scene, name: str, hold: float) -> Struck:
    if name not in scene.stack.names():
        raise NotNow(f"there is no {name} here")
    if scene.stack.pause(name) is None:
        scene.stack.resume(name)
        raise NotNow(f"{name} is away already")
    return Struck(f"{name} killed, away for {hold:.0f} s", hold, lambda: scene.stack.resume(name))


def _in_a_step(leg: Leg) -> str | None:
    """The executor that holds the lease of the run now, by the database's own list of who asked last.

    None where no step is caught within some seconds.
    """
    caught: list[str] = []

    def holds() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT a.application_name FROM execution_execution e, pg_stat_activity a"
                " WHERE e.request_id = %s AND e.lease_until > clock_timestamp()"
                " AND a.application_name LIKE 'kafkadash worker-execute%%'"
                " ORDER BY a.state_change DESC LIMIT 1",
                [leg.number],
            )
            row = cursor.fetchone()
        caught[:] = [str(row[0]).removeprefix("kafkadash ")] if row else []
        return bool(caught)

    try:
        again(lambda: wait_until(holds, "a step is under way", 8))
    except AssertionError:
        return None
    return caught[0]


def _moving_rows(leg: Leg) -> Sequence[Move]:
    rows = Move.objects.filter(execution__request=leg.number, state__in=("moving", "catching_up"))
    return again(lambda: list(rows.order_by("-submitted_at")))


def _a_moving_row(leg: Leg, chance: random.Random) -> Move:
    """One of those that were submitted last: a tool needs its time to start."""
    rows = _moving_rows(leg)
    if not rows:
        raise NotNow("nothing moves")
    return chance.choice(rows[:2])


def _partitions(scene: Scene, topic: str) -> dict[int, DescribedPartition]:
    return scene.tools.topics("--topic", topic)[topic].partitions


def _elsewhere(scene: Scene, partition: int, chance: random.Random) -> tuple[int, ...]:
    there = _partitions(scene, ELSEWHERE)[partition].replicas
    return (chance.choice([b for b in (*scene.ground.destinations, *scene.ground.keepers) if b not in there]), there[0])


def _reassign(scene: Scene, targets: Mapping[tuple[str, int], Sequence[int]], *options: str) -> None:
    rows = [{"topic": t, "partition": p, "replicas": list(replicas)} for (t, p), replicas in targets.items()]
    file = scene.folder / f"foreign-{now():%H%M%S%f}.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
    _tool(scene, "reassign", "--reassignment-json-file", str(file), *options)


def _tool(scene: Scene, name: str, *arguments: str) -> str:
    try:
        return scene.tools.run(name, *arguments)
    except (AssertionError, ServerError) as error:
        raise NotNow(f"Kafka's tool could not: {str(error).strip()[-300:]}") from error


def _forget_rates(leg: Leg, topic: str = "") -> None:
    """What others had set before on brokers, and on this topic, was taken away with ours.

    A rate of others over which ours stood was not: it was taken away by us, and may come back at the end.
    """
    for place in list(leg.disturbed.throttles):
        if place[0] == "broker" or place[1] == topic:
            value = leg.disturbed.throttles.pop(place)
            if place[0] == "broker":
                leg.disturbed.covered[place] = value
