"""OffsetFetch: what groups have committed, many groups to a request, each asked of its coordinator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from kafkadash.domain.messages import coded
from kafkadash.kafka import clock
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.codes import COORDINATOR_MOVES, GROUP_ID_NOT_FOUND, item_error
from kafkadash.kafka.coordinators import DESCRIBE_GROUP, Locator
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_messages import FetchedTopic, OffsetFetchAnswer, OneAtATime, committed_request
from kafkadash.kafka.groups import Committed, Offsets
from kafkadash.kafka.port import ItemError, KafkaFailure, Unreachable
from kafkadash.kafka.talk import Talk

# An answer about groups with a few hundred partitions each stays near a megabyte, and others get their turn between.
GROUPS_PER_QUESTION = 100
_NO_COMMIT = -1


class CommittedReading:
    """Collects the answers of one call."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._locator = Locator(talk, self._ask_there, self._fail)
        self._found: dict[str, Offsets] = {}
        self._errors: dict[str, ItemError] = {}
        self._names: dict[str, str] = {}  # a topic's name is kept once, however many groups read it
        self._taken_at: list[float] = []

    def read(self, groups: Collection[str]) -> Committed:
        """Raises KafkaFailure when nobody answered anything."""
        self._locator.locate(list(dict.fromkeys(groups)))
        self._talk.run()
        finished_at = clock.seconds()
        return Committed(self._found, self._errors, min(self._taken_at, default=finished_at), finished_at)

    def _ask_there(self, broker: int, groups: list[str]) -> None:
        for start in range(0, len(groups), GROUPS_PER_QUESTION):
            self._ask(broker, groups[start : start + GROUPS_PER_QUESTION])

    def _ask(self, broker: int, groups: Sequence[str]) -> None:
        ask: Ask[OffsetFetchAnswer] = Ask(lambda offered: committed_request(offered, groups))
        self._talk.ask(broker, ask, partial(self._told, broker, groups))

    def _told(self, broker: int, groups: Sequence[str], result: Answer[OffsetFetchAnswer] | KafkaFailure) -> None:
        if isinstance(result, OneAtATime):
            for group in groups:
                self._ask(broker, [group])
            return
        if isinstance(result, Unreachable):  # it may have stopped, and another one takes its groups
            self._locator.locate_again(dict.fromkeys(groups, ItemError(result.message)))
            return
        if isinstance(result, KafkaFailure):
            for group in groups:
                self._fail(group, ItemError(result.message))
            return
        self._taken_at.append(result.taken_at)
        response = result.response
        if response.API_VERSION < 8:
            told = {groups[0]: (response.error_code, response.topics)}
        else:
            told = {row.group_id: (row.error_code, row.topics) for row in response.groups}
        moved: dict[str, ItemError] = {}
        for group in groups:
            code, topics = told.get(group, (None, ()))
            self._sort(group, code, topics, moved)
        self._locator.locate_again(moved)

    def _sort(self, group: str, code: int | None, topics: Sequence[FetchedTopic], moved: dict[str, ItemError]) -> None:
        subject = f"What group {group} has committed cannot be read"
        if code == 0:
            code = next((p.error_code for topic in topics for p in topic.partitions if p.error_code), 0)
        if code == 0:
            self._found[group] = {
                self._names.setdefault(topic.name, topic.name): offsets
                for topic in topics
                if (
                    offsets := {
                        p.partition_index: p.committed_offset
                        for p in topic.partitions
                        if p.committed_offset > _NO_COMMIT
                    }
                )
            }
        elif code == GROUP_ID_NOT_FOUND:
            self._found[group] = {}
        elif code is None:
            self._fail(group, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
        elif code in COORDINATOR_MOVES:
            moved[group] = item_error(code, subject)
        else:
            self._fail(group, item_error(code, subject, permission=DESCRIBE_GROUP))

    def _fail(self, group: str, error: ItemError) -> None:
        self._errors[group] = error
