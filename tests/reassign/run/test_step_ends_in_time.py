"""A worker that is told to stop ends its step within 20 s: no call is begun after 15 s, and each has 4 s at most.

Of a cluster that uses every call's deadline up, or a share of it, on a clock that goes on by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.kafka.changing import KafkaClient
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run import step as stepping
from kafkadash.reassign.run.running import Running
from tests.reassign.run.runs import OPTIONS, ROWS, World

pytestmark = pytest.mark.django_db
BEGUN_BY_S, ENDED_BY_S = 15.0, 19.0


@dataclass
class Slow:
    """A client whose calls take that share of their deadlines; ``calls`` are those of one step: name, began, ended."""

    world: World
    share: float = 1.0
    clock: float = 1000.0
    calls: list[tuple[str, float, float]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        really = getattr(self.world.kafka, name)

        def call(*args: Any, deadline: float, **more: Any) -> Any:
            began, self.clock = self.clock, self.clock + self.share * deadline
            self.calls.append((name, began, self.clock))
            return really(*args, deadline=deadline, **more)

        return call

    def monotonic(self) -> float:
        return self.clock

    def step(self, number: int | None = None) -> None:
        """Checks that one ends in time; and that it asked something at all."""
        self.calls.clear()
        began = self.clock
        self.world.step(number)
        assert self.calls
        late = [(name, at - began, end - began) for name, at, end in self.calls if at - began > BEGUN_BY_S]
        assert all(end - at <= 0.2 for _, at, end in late), f"questions for what is not known any more: {late}"
        assert self.clock - began <= ENDED_BY_S, [(name, at - began, end - began) for name, at, end in self.calls]
        self.world.passes(2)


@pytest.fixture
def slow(world: World) -> Iterator[Slow]:
    made = Slow(world)

    def client(_: Running) -> KafkaClient:
        return cast("KafkaClient", made)

    with (
        mock.patch.object(stepping, "client_of", client),
        mock.patch("kafkadash.reassign.run.budget.time", made),
        mock.patch("kafkadash.reassign.run.look.time", made),
    ):
        yield made


def test_every_step_of_a_run__ends_in_time(world: World, slow: Slow, operator: User) -> None:
    rows = [replace(row, log_dirs=tuple("/data-1" if b in row.adding else "any" for b in row.target)) for row in ROWS]
    world.queue(operator, rows, replace(OPTIONS, per_cluster=2))
    for share, state in ((1.0, ""), (0.25, RequestState.VERIFYING), (1.0, ""), (0.25, RequestState.DONE)):
        slow.share = share
        for _ in range(100 if state else 6):
            if world.change().state != state:
                slow.step()
        assert world.change().state == state or not state, (world.run().error, world.run().held, world.states())


def test_what_an_ended_run_owes__is_worked_off_in_time(world: World, slow: Slow, operator: User) -> None:
    slow.share = 0.1
    number = world.queue(operator).pk
    slow.step()
    slow.step()
    assert ThrottleEntry.objects.filter(state="set").count() > 10
    Move.objects.update(state="unknown")
    ChangeRequest.objects.filter(pk=number).update(state=RequestState.FAILED)
    Execution.objects.update(active=False)
    world.passes(600)
    assert not world.model.moving
    for slow.share in (1.0, 0.5, 0.25):
        for _ in range(5):
            slow.step()
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
