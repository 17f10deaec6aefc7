"""One run under chaos: a drain and its way back, faults that strike while they go on, and the referee at the end."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.db import connection, connections

from kafkadash.changes.state_machine import OVER, ChangeState
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.monitoring.models import CollectorRun
from tests.chaos.drain import POLL_S, Leg, People, Stuck, again, state_of, window_of
from tests.chaos.faults import Fault, NotNow, Struck
from tests.chaos.own_faults import own_faults
from tests.chaos.referee import Before, Disturbed, judge, throttles_of
from tests.chaos.scene import Scene, now, pause
from tests.chaos.table import Record
from tests.waiting import wait_until

SETTLES_S = 180.0
WELL_S = 90.0
OWED_S = 75.0
LEG_S = 420.0
TRIES = 20


class When(StrEnum):
    """In which part of a run a fault strikes."""

    QUEUED = "queued"
    INTENT = "intent"
    MOVING = "moving"
    CLEARING = "clearing"


# How often alice cancels a drain, or asks for another throttle, some seconds after it began to move.
CANCELS, STEERS = 0.15, 0.25
# Where a seed does not need something that moves.
SHARES = ((When.QUEUED, 0.08), (When.INTENT, 0.17), (When.MOVING, 0.55), (When.CLEARING, 0.2))


@dataclass(slots=True)
class Planned:
    fault: Fault
    when: When
    delay_s: float
    seed: int


@dataclass
class Game:
    """One drain and its way back. ``problems`` after ``play``; ``unplayed`` are faults that found nothing to strike."""

    scene: Scene
    number: int
    chance: random.Random
    say: Callable[[str], None]
    records: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unplayed: list[Fault] = field(default_factory=list)
    stuck: bool = False
    _to_heal: set[int] = field(default_factory=set)

    def play(self, faults: Sequence[Fault]) -> None:
        """Raises nothing that a run did wrong: that is in ``problems``."""
        scene = self.scene
        source, destinations = scene.ground.source, scene.ground.destinations
        there, back = self._dealt(faults)
        try:
            scene.fresh_topics(self.number)
            people = People(self.say)
            before = Before.of(scene.tools)
            disturbed = Disturbed()
            drain = people.drain(source)
            self._leg(people, Leg(drain, (source,), destinations, disturbed), "drain", there, before)
            number = people.roll_back(drain)
            if number is None:
                self.unplayed += back
            else:
                self._leg(people, Leg(number, destinations, (source,), disturbed), "rollback", back, before)
            self._tidy(before)
        except (Stuck, AssertionError) as stuck:
            self.stuck = True
            self.problems.append(str(stuck))
        for record in self.records:
            record.problems = record.problems or int(self.stuck)

    def _dealt(self, faults: Sequence[Fault]) -> tuple[list[Fault], list[Fault]]:
        there = [fault for fault in faults if fault.only_drain]
        back: list[Fault] = []
        for fault in faults:
            if not fault.only_drain:
                (there if len(there) <= len(back) else back).append(fault)
        return there, back

    # --- one request ---

    def _leg(self, people: People, leg: Leg, name: str, faults: Sequence[Fault], before: Before) -> None:
        planned = [self._planned(fault) for fault in faults]
        steers = self._steers(people, leg, name)
        own: list[Record] = []
        threads = [
            threading.Thread(target=self._strike, args=(leg, name, each, own), name=each.fault.name, daemon=True)
            for each in planned
        ]
        if steers is not None:
            threads.append(threading.Thread(target=steers, name="alice", daemon=True))
        self._to_heal = {id(each) for each in planned}
        people.start(leg.number)
        for thread in threads:
            thread.start()
        try:
            self._tend(people, leg)
        finally:
            leg.over.set()
            for thread in threads:
                thread.join(120)
        self.say(f"{name} {people.stands(leg.number)}")
        self._settle(leg)
        window = window_of(leg.number)
        problems = judge(self.scene.tools, [leg.number], before, leg.disturbed)
        problems += self._own_faults()
        problems += self._unread_kinds()
        self.problems += [f"{name}: {problem}" for problem in problems]
        for record in own:
            record.within = window.holds(record.at)
            record.end = _end(leg.number)
            record.problems = len(problems)
        self.records += own

    def _tend(self, people: People, leg: Leg) -> None:
        """Until it is over; raises Stuck where that takes too long after the last fault was healed."""
        began = healed = time.monotonic()
        while people.tend(leg.number) not in OVER:
            if self._to_heal:
                healed = time.monotonic()
            if time.monotonic() - healed > SETTLES_S or time.monotonic() - began > LEG_S:
                raise Stuck(f"not over {SETTLES_S:g} s after the last fault was healed: {people.stands(leg.number)}")
            time.sleep(POLL_S)

    def _settle(self, leg: Leg) -> None:
        """The cluster is well, others' moves have ended, and what was owed on brokers that were away was cleared."""
        wait_until(self.scene.well, "every broker is back and every replica in sync", WELL_S)
        wait_until(lambda: not self._others_move(leg), "moves of others have ended", WELL_S)
        if state_of(leg.number) == ChangeState.CANCELLED:
            return
        owed = ThrottleEntry.objects.filter(execution__request=leg.number, state="obliged")
        try:
            wait_until(lambda: not again(owed.exists), "what is owed is cleared", OWED_S)
        except AssertionError:
            self.say("throttles are still owed")

    def _others_move(self, leg: Leg) -> bool:
        ours = set(
            again(lambda: list(Move.objects.filter(execution__request=leg.number).values_list("topic", "partition")))
        )
        return any((m.topic, m.partition) not in ours - leg.disturbed.moves.keys() for m in self.scene.tools.moves())

    def _own_faults(self) -> list[str]:
        """Of this run; the logs are the stack's."""
        names = [name for name in self.scene.stack.names() if name.startswith("worker-execute")]
        found = Counter(own_faults([self.scene.stack.log(name) for name in names]))
        new = found - self.scene.faults_told
        self.scene.faults_told = found
        return list(new.elements())

    def _unread_kinds(self) -> list[str]:
        """What is not read again within ``WELL_S``, though everything is well."""
        began = now()

        def unread() -> list[str]:
            often = CollectorRun.objects.filter(interval_s__lt=WELL_S / 2)
            return list(often.exclude(succeeded_at__gt=began).order_by("kind").values_list("kind", flat=True))

        try:
            wait_until(lambda: not again(unread), "everything is read again", WELL_S)
        except AssertionError:
            return [f"{kind} of the cluster is not read any more." for kind in again(unread)]
        return []

    def _tidy(self, before: Before) -> None:
        """What others set is taken away again, as they would, so that the next run begins with nothing."""
        for (kind, owner, key), value in throttles_of(self.scene.tools).items():
            if before.throttles.get((kind, owner, key)) != value:
                self.scene.tools.delete_config(int(owner) if kind == "broker" else owner, key)

    # --- one fault ---

    def _planned(self, fault: Fault) -> Planned:
        names = [when for when, _ in SHARES]
        when = When.MOVING if fault.moving else self.chance.choices(names, [share for _, share in SHARES])[0]
        delay = {When.MOVING: self.scene.ground.strikes_s, When.CLEARING: 1.5}.get(when, 0.5)
        return Planned(fault, when, self.chance.uniform(0, delay), self.chance.randrange(2**32))

    def _steers(self, people: People, leg: Leg, name: str) -> Callable[[], None] | None:
        """What alice does in the middle of some runs, chosen by the seed."""
        cancels, steers = self.chance.random() < CANCELS, self.chance.random() < STEERS
        delay, rate = self.chance.uniform(2, 12), self.chance.choice(("0.7", "1.5"))
        if not (steers or (cancels and name == "drain")):
            return None

        def deed() -> None:
            self._await_moment(leg, When.MOVING, delay)
            if cancels and name == "drain":
                people.cancel(leg.number)
            else:
                people.throttle(leg.number, rate)
            connections.close_all()

        return deed

    def _strike(self, leg: Leg, name: str, planned: Planned, own: list[Record]) -> None:
        """In a thread of its own: waits for its moment, strikes, heals."""
        chance = random.Random(planned.seed)
        fault = planned.fault
        try:
            self._await_moment(leg, planned.when, planned.delay_s)
            struck, at = self._try(leg, fault, chance)
            if struck is None:
                self.unplayed.append(fault)
                return
            own.append(Record(self.number, name, fault.name, struck.what, at))
            self.say(f"{name} ({planned.when}): {struck.what}")
            if struck.lasting:
                self._to_heal.discard(id(planned))
                leg.over.wait()
            else:
                pause(struck.hold_s, threading.Event())
            struck.heal()
        except Exception as error:  # noqa: BLE001  of any kind: the harness itself is at fault
            self.problems.append(f"{fault.name} could not be played: {type(error).__name__}: {error}")
        finally:
            self._to_heal.discard(id(planned))
            connections.close_all()

    def _try(self, leg: Leg, fault: Fault, chance: random.Random) -> tuple[Struck | None, datetime]:
        """Again for a while where there is nothing to strike; not where nothing will come any more."""
        said, at = "", now()
        for _ in range(TRIES):
            at = now()
            try:
                return fault.strike(self.scene, leg, chance), at
            except NotNow as reason:
                said = str(reason)
            if leg.over.wait(1.0):
                break
        self.say(f"{fault.name}: nothing to strike ({said})")
        return None, at

    def _await_moment(self, leg: Leg, when: When, delay_s: float) -> None:
        """Returns when it has come, or when the run is over."""
        if when is not When.QUEUED:
            while not leg.over.is_set() and not again(lambda: _come(leg.number, when)):
                time.sleep(0.1)
        pause(delay_s, leg.over)


def _come(number: int, when: When) -> bool:
    run = Execution.objects.filter(request=number).only("pk", "started_at").first()
    if run is None:
        return False
    match when:
        case When.INTENT:
            return ThrottleEntry.objects.filter(execution=run).exists()
        case When.MOVING:
            return Move.objects.filter(execution=run, state__in=("moving", "catching_up")).exists()
        case _:
            rows = Move.objects.filter(execution=run)
            ended = ("done", "cancelled", "skipped", "superseded", "topic_deleted", "failed")
            return rows.exists() and rows.exclude(state__in=ended).count() <= 1


def _end(number: int) -> str:
    state = state_of(number)
    outcome = again(lambda: Execution.objects.values_list("outcome", flat=True).filter(request=number).first())
    return f"{state}, {outcome}" if outcome else str(state)


def close() -> None:
    connection.close()
