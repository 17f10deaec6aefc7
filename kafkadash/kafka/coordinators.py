"""Which broker coordinates a group: asked for many groups at a time, and again where coordinators are moving."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafkadash.domain.messages import coded
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.codes import COORDINATOR_MOVES, item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_messages import CoordinatorsAnswer, OneAtATime, coordinators_request
from kafkadash.kafka.port import ItemError, KafkaFailure
from kafkadash.kafka.talk import Talk

DESCRIBE_GROUP = "Describe on the group"
"""The permission that all questions about a group need."""

GROUPS_PER_QUESTION = 1000

Found = Callable[[int, list[str]], None]
Failed = Callable[[str, ItemError], None]


class Locator:
    """Tells ``found`` a broker and its groups, or ``failed`` a group and why nobody is known to coordinate it.

    Not to be asked about groups that do not exist: with the first of them Kafka creates its offsets topic.
    """

    def __init__(self, talk: Talk, found: Found, failed: Failed) -> None:
        self._talk = talk
        self._found = found
        self._failed = failed

    def locate(self, groups: Sequence[str]) -> None:
        for start in range(0, len(groups), GROUPS_PER_QUESTION):
            self._ask(groups[start : start + GROUPS_PER_QUESTION])

    def locate_again(self, moved: Mapping[str, ItemError]) -> None:
        """Of groups whose coordinator is not the one that was named, or cannot answer yet: why, should that go on."""
        if moved and not self._talk.later(partial(self.locate, list(moved))):
            for group, why in moved.items():
                self._failed(group, why)

    def _ask(self, groups: Sequence[str]) -> None:
        ask: Ask[CoordinatorsAnswer] = Ask(lambda offered: coordinators_request(offered, groups))
        self._talk.ask(None, ask, partial(self._told, groups))

    def _told(self, groups: Sequence[str], result: Answer[CoordinatorsAnswer] | KafkaFailure) -> None:
        if isinstance(result, OneAtATime):
            for group in groups:
                self._ask([group])
            return
        if isinstance(result, KafkaFailure):
            for group in groups:
                self._failed(group, ItemError(result.message))
            return
        response = result.response
        if response.API_VERSION < 4:
            told = {groups[0]: (response.error_code, response.node_id)}
        else:
            told = {row.key: (row.error_code, row.node_id) for row in response.coordinators}
        at: dict[int, list[str]] = defaultdict(list)
        moving: dict[str, ItemError] = {}
        for group in groups:
            code, node = told.get(group, (None, -1))
            subject = f"Nobody is known to coordinate group {group}"
            if code == 0:
                at[node].append(group)
            elif code is None:
                self._failed(group, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
            elif code in COORDINATOR_MOVES:
                moving[group] = item_error(code, subject)
            else:
                self._failed(group, item_error(code, subject, permission=DESCRIBE_GROUP))
        self.locate_again(moving)
        for node, groups_there in at.items():
            self._found(node, groups_there)
