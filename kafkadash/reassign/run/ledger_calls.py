"""The calls that the entries of a ledger ask for, and Kafka's answers to them (IncrementalAlterConfigs, KIP-339)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafkadash.domain import ledger_lists, ledger_rates
from kafkadash.domain.executor_state import Reply
from kafkadash.domain.ledger import Entry, EntryState, Place
from kafkadash.domain.messages import message_text
from kafkadash.domain.throttles import LISTS
from kafkadash.kafka.changing import ConfigChange, ConfigOperation, KafkaClient
from kafkadash.kafka.port import KafkaFailure
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.throttle_reads import resource_of


@dataclass(frozen=True, slots=True)
class Call:
    """One operation on one key, and what its answer makes of the entry. ``guards``: rows wait for it."""

    place: Place
    operation: ConfigOperation
    value: str | None
    answered: Callable[[Entry, Reply, str, datetime], Entry]
    guards: bool = False

    @property
    def point(self) -> fail_points.Call:
        return fail_points.Call.THROTTLE_SET if self.guards else fail_points.Call.THROTTLE_CLEAR


def sets(entries: Iterable[Entry]) -> list[Call]:
    return [
        Call(entry.place, ConfigOperation.SET, entry.asked, ledger_rates.answered, guards=True)
        for entry in entries
        if entry.state is EntryState.INTENT and entry.place.key not in LISTS
    ]


def appends(entries: Iterable[Entry]) -> list[Call]:
    return [
        Call(entry.place, ConfigOperation.APPEND, ledger_lists.list_value(pairs), ledger_lists.appended, guards=True)
        for entry in entries
        if entry.place.key in LISTS and (pairs := ledger_lists.appends(entry))
    ]


def subtracts(entries: Iterable[Entry]) -> list[Call]:
    return [
        Call(entry.place, ConfigOperation.SUBTRACT, ledger_lists.list_value(pairs), ledger_lists.subtracted)
        for entry in entries
        if entry.place.key in LISTS and (pairs := ledger_lists.subtracts(entry))
    ]


def deletes(entries: Iterable[Entry]) -> list[Call]:
    """Of lists that were just read and are empty."""
    return [Call(entry.place, ConfigOperation.DELETE, None, ledger_lists.deleted) for entry in entries]


def restores(entries: Iterable[Entry]) -> list[Call]:
    return [
        Call(
            entry.place,
            ConfigOperation.DELETE if entry.restores is None else ConfigOperation.SET,
            entry.restores,
            ledger_rates.answered,
        )
        for entry in entries
        if entry.state is EntryState.CLEARING and entry.place.key not in LISTS
    ]


def sends(client: KafkaClient, calls: Sequence[Call], deadline: float) -> Iterator[tuple[Call, Reply, str]]:
    """Each call with its answer and, where it was not done, why; a call that nothing of reached Kafka is refused."""
    changes = [ConfigChange(resource_of(call.place), call.place.key, call.operation, call.value) for call in calls]
    try:
        with fail_points.around(call.point for call in calls):
            answer = client.alter_configs(changes, deadline=deadline)
    except KafkaFailure as failure:
        yield from ((call, Reply.REFUSED, str(failure)) for call in calls)
        return
    for call, change in zip(calls, changes, strict=True):
        if change.resource in answer.done:
            yield call, Reply.ACCEPTED, ""
        elif change.resource in answer.refused:
            yield call, Reply.REFUSED, answer.refused[change.resource].text
        else:
            lost = answer.lost.get(change.resource)
            yield call, Reply.LOST, lost.text if lost else message_text(ReassignmentErrorCode.OUTCOME_NOT_TOLD)
