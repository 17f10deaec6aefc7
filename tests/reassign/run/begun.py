"""A run whose first moves are in flight, and whether anything of its throttles is left."""

from __future__ import annotations

from kafkadash.accounts.models import User
from kafkadash.reassign.models import ThrottleEntry
from tests.reassign.run.runs import World


def begun(world: World, operator: User) -> None:
    """In flight, and Kafka has answered."""
    world.queue(operator)
    world.step()
    world.passes(2)
    world.step()
    assert "moving" in {state for state, _ in world.states().values()}


def clean(world: World) -> bool:
    values = [value for own in world.kafka.configs.values() for value in own.values()]
    return not any(values) and not ThrottleEntry.objects.exclude(state="cleared").exists()
