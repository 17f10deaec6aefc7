"""``WireClient``: the calls that change a cluster, each sent at most once, and what came of each item.

A second copy of a change that may have arrived is never sent: it could undo what somebody did in between. Where an
answer is missing, or does not tell whether Kafka did it, the item is lost, and whoever asked looks at the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from kafkadash.domain.messages import coded, join_messages
from kafkadash.kafka.admin import WireAdmin, countdown
from kafkadash.kafka.asking import Answer, Ask, Lane
from kafkadash.kafka.change_messages import (
    AlterConfigsAnswer,
    AlterLogDirsAnswer,
    AlterReassignmentsAnswer,
    ElectLeadersAnswer,
    alter_configs_request,
    alter_log_dirs_request,
    alter_reassignments_request,
    elect_leaders_request,
)
from kafkadash.kafka.changing import Changed, ConfigChange, ReplicaPlace
from kafkadash.kafka.codes import (
    ELECTION_NOT_NEEDED,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    REPLICA_NOT_AVAILABLE,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    code_name,
    item_error,
)
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.controllers import Controllers, harmless
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import DESCRIBE_QUORUM, ApiRanges, Request, Response
from kafkadash.kafka.once import Once
from kafkadash.kafka.port import (
    CLUSTER_DEFAULT,
    ConfigResource,
    ConfigResourceType,
    ItemError,
    KafkaFailure,
    QuorumUnavailable,
    TopicPartition,
    Unreachable,
)
from kafkadash.kafka.sending import Unanswered, outcome, outcomes

T = TypeVar("T")
R = TypeVar("R", bound=Response)
Codes = Mapping[T, tuple[int, str | None]]  # item → Kafka's code and words
Result = Answer[R] | Unanswered | KafkaFailure

# Kafka does not know either whether it was done, or will be: a forwarded request may still wait for a controller.
_UNCERTAIN = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NETWORK_EXCEPTION})
_ALTER_CLUSTER = "Alter on the cluster"


class WireClient(WireAdmin):
    """A client that reads and changes one cluster."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._controllers = Controllers(connection) if connection.controller_servers else None

    def close(self) -> None:
        super().close()
        if self._controllers is not None:
            self._controllers.close()

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, deadline: float, keep_factor: bool
    ) -> Changed[TopicPartition]:
        if not targets:
            return Changed()
        left = countdown(deadline)
        result = self._to_controller(
            lambda offered: alter_reassignments_request(
                offered, targets, keep_factor=keep_factor, timeout_ms=_milliseconds(left)
            ),
            left,
            _not_controller_everywhere,
        )
        sorting = _Sorting(targets, "The reassignment of {} was not accepted", _ALTER_CLUSTER)
        if isinstance(result, Unanswered):
            return sorting.lost(result)
        response: AlterReassignmentsAnswer = result.response
        guarded = keep_factor and response.API_VERSION >= 1
        if response.error_code:
            return sorting.all(response.error_code, response.error_message, guarded=guarded)
        codes = {
            TopicPartition(topic.name, p.partition_index): (p.error_code, p.error_message)
            for topic in response.responses
            for p in topic.partitions
        }
        return sorting.each(codes, guarded=guarded)

    def elect_leaders(self, partitions: Collection[TopicPartition], *, deadline: float) -> Changed[TopicPartition]:
        if not partitions:
            return Changed()
        left = countdown(deadline)
        result = self._to_controller(
            lambda offered: elect_leaders_request(offered, partitions, timeout_ms=_milliseconds(left)),
            left,
            _not_controller_for_each,
        )
        sorting = _Sorting(partitions, "The preferred leader of {} was not elected", _ALTER_CLUSTER)
        if isinstance(result, Unanswered):
            return sorting.lost(result)
        response: ElectLeadersAnswer = result.response
        if response.API_VERSION >= 1 and response.error_code:
            return sorting.all(response.error_code, None)
        codes = {
            TopicPartition(topic.topic, p.partition_id): (p.error_code, p.error_message)
            for topic in response.replica_election_results
            for p in topic.partition_result
        }
        return sorting.each(codes, fine=ELECTION_NOT_NEEDED)

    def alter_configs(self, changes: Sequence[ConfigChange], *, deadline: float) -> Changed[ConfigResource]:
        left = countdown(deadline)
        groups: defaultdict[ConfigResource, list[ConfigChange]] = defaultdict(list)
        for change in changes:
            groups[change.resource].append(change)
        brokers = {r: o for r, o in groups.items() if r.type is ConfigResourceType.BROKER and r != CLUSTER_DEFAULT}
        anywhere = {resource: own for resource, own in groups.items() if resource not in brokers}
        parts: list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]] = []
        if brokers:
            parts += self._alter_brokers(brokers, countdown(left() / 2) if anywhere else left)
        if anywhere:
            ask = _alter_configs(anywhere)
            parts.append((list(anywhere), _sent(lambda: self._forwarded(ask, left))))
        return _joined(
            parts,
            "The configuration of {} was not changed",
            "AlterConfigs on the topic or the cluster",
            _config_codes,
            uncertain=_UNCERTAIN | {NOT_CONTROLLER},  # only a controller that was asked by itself says so
        )

    def _alter_brokers(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], left: Callable[[], float]
    ) -> list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]]:
        """Each through its own broker; those that could not be sent through the active controller, if it is known."""
        asks = [(int(broker.name), _alter_configs({broker: own})) for broker, own in changes.items()]
        through_them = left() if self._controllers is None else left() / 2
        results = outcomes(asks, self._with_wire, through_them)
        unsent = [
            broker
            for broker, result in zip(changes, results, strict=True)
            if isinstance(result, KafkaFailure) and all(harmless(change) for change in changes[broker])
        ]
        if self._controllers is None or not unsent:
            return [([broker], result) for broker, result in zip(changes, results, strict=True)]
        found: list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]] = [
            ([broker], result) for broker, result in zip(changes, results, strict=True) if broker not in unsent
        ]
        controllers, ask = self._controllers, _alter_configs({broker: changes[broker] for broker in unsent})
        through = _sent(
            lambda: controllers.send(ask, self.describe_cluster(deadline=left() / 3).cluster_id, deadline=left())
        )
        if isinstance(through, KafkaFailure):
            failures = (result.message for result in [*results, through] if isinstance(result, KafkaFailure))
            through = Unreachable(join_messages(failures))
        found.append((unsent, through))
        return found

    def place_replicas(self, places: Mapping[ReplicaPlace, str], *, deadline: float) -> Changed[ReplicaPlace]:
        by_broker: defaultdict[int, dict[ReplicaPlace, str]] = defaultdict(dict)
        for place, path in places.items():
            by_broker[place.broker][place] = path
        asks = [(broker, _alter_log_dirs(own)) for broker, own in by_broker.items()]
        results = outcomes(asks, self._with_wire, deadline) if asks else []
        parts: list[tuple[Collection[ReplicaPlace], Result[AlterLogDirsAnswer]]] = [
            (own, result) for own, result in zip(by_broker.values(), results, strict=True)
        ]
        return _joined(
            parts,
            "The directory of {} was not chosen",
            _ALTER_CLUSTER,
            _place_codes,
            fine=REPLICA_NOT_AVAILABLE,
        )

    # ---- routing

    def _forwarded(self, ask: Ask[R], left: Callable[[], float]) -> Answer[R] | Unanswered:
        return outcome(ask, lambda: self._with_wire(lambda wire: wire.ask_controller(ask, deadline=left())))

    def _to_controller(
        self, build: Callable[[ApiRanges], Request], left: Callable[[], float], refused: Callable[[R], bool]
    ) -> Answer[R] | Unanswered:
        """Through any broker, which forwards it; in ZooKeeper mode to the controller, which Metadata names truly.

        NOT_CONTROLLER of a broker in ZooKeeper mode is told before anything is done, so that asking the one that is
        named is safe. A controller of a quorum may also say so of what it had already written when it lost its
        leadership (org.apache.kafka.controller.QuorumController, renounce).
        """
        forwarded = True

        def noted(offered: ApiRanges) -> Request:
            nonlocal forwarded
            forwarded = DESCRIBE_QUORUM in offered
            return build(offered)

        ask: Ask[R] = Ask(noted, Lane.CONTROLLER, Once())
        result = self._forwarded(ask, left)
        if isinstance(result, Unanswered) or not refused(result.response):
            return result
        if forwarded:
            return Unanswered(coded(KafkaErrorCode.LOST_LEADERSHIP, code=code_name(NOT_CONTROLLER)))
        controller = self.describe_cluster(deadline=left()).controller_id
        if controller is None:
            raise QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER)
        named: Ask[R] = Ask(build, Lane.CONTROLLER, Once())
        [again] = outcomes([(controller, named)], self._with_wire, left())
        if isinstance(again, KafkaFailure):
            raise again
        return again


class _Sorting(Generic[T]):
    """Puts each item that was asked for into what was done, refused or lost."""

    def __init__(self, asked: Iterable[T], subject: str, permission: str) -> None:
        self._asked = list(asked)
        self._subject = subject
        self._permission = permission

    def lost(self, result: Unanswered) -> Changed[T]:
        return Changed(lost=dict.fromkeys(self._asked, ItemError(result.why)))

    def unsent(self, failure: KafkaFailure) -> Changed[T]:
        return Changed(refused=dict.fromkeys(self._asked, ItemError(coded(KafkaErrorCode.NOTHING_SENT, why=failure))))

    def all(self, code: int, message: str | None, *, guarded: bool = False) -> Changed[T]:
        return self.each(dict.fromkeys(self._asked, (code, message)), guarded=guarded)

    def each(
        self,
        codes: Codes[T],
        *,
        fine: int = 0,
        uncertain: Collection[int] = _UNCERTAIN,
        guarded: bool = False,
    ) -> Changed[T]:
        done: set[T] = set()
        refused: dict[T, ItemError] = {}
        lost: dict[T, ItemError] = {}
        for item in self._asked:
            if item not in codes:
                lost[item] = ItemError(coded(KafkaErrorCode.CHANGE_NOT_IN_ANSWER, subject=self._subject.format(item)))
                continue
            code, message = codes[item]
            if code in (0, fine):
                done.add(item)
            elif code in uncertain:
                lost[item] = self._error(item, code, message)
            else:
                refused[item] = self._error(item, code, message)
        return Changed(frozenset(done), refused, lost, guarded)

    def _error(self, item: T, code: int, message: str | None) -> ItemError:
        detail = message.strip().rstrip(".") if message else None
        return item_error(code, self._subject.format(item), detail=detail, permission=self._permission, advised=False)


def _joined(
    parts: Sequence[tuple[Collection[T], Result[R]]],
    subject: str,
    permission: str,
    codes: Callable[[Answer[R]], Codes[T]],
    *,
    fine: int = 0,
    uncertain: Collection[int] = _UNCERTAIN,
) -> Changed[T]:
    """What came of several requests of one call. Raises the first KafkaFailure where none of them was sent."""
    done: set[T] = set()
    refused: dict[T, ItemError] = {}
    lost: dict[T, ItemError] = {}
    failures = [result for _, result in parts if isinstance(result, KafkaFailure)]
    if failures and len(failures) == len(parts):
        raise failures[0]
    for asked, result in parts:
        sorting = _Sorting(asked, subject, permission)
        if isinstance(result, KafkaFailure):
            part = sorting.unsent(result)
        elif isinstance(result, Unanswered):
            part = sorting.lost(result)
        else:
            part = sorting.each(codes(result), fine=fine, uncertain=uncertain)
        done |= part.done
        refused.update(part.refused)
        lost.update(part.lost)
    return Changed(frozenset(done), refused, lost)


def _sent(send: Callable[[], Answer[R] | Unanswered]) -> Result[R]:
    try:
        return send()
    except KafkaFailure as failure:
        return failure


def _alter_configs(changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> Ask[AlterConfigsAnswer]:
    return Ask(lambda offered: alter_configs_request(offered, changes), Lane.CONTROLLER, Once())


def _config_codes(answer: Answer[AlterConfigsAnswer]) -> Codes[ConfigResource]:
    return {
        ConfigResource(ConfigResourceType(row.resource_type), row.resource_name): (row.error_code, row.error_message)
        for row in answer.response.responses
    }


def _alter_log_dirs(places: Mapping[ReplicaPlace, str]) -> Ask[AlterLogDirsAnswer]:
    return Ask(lambda offered: alter_log_dirs_request(offered, places), once=Once())


def _place_codes(answer: Answer[AlterLogDirsAnswer]) -> Codes[ReplicaPlace]:
    return {
        ReplicaPlace(int(answer.node), topic.topic_name, p.partition_index): (p.error_code, None)
        for topic in answer.response.results
        for p in topic.partitions
    }


def _milliseconds(left: Callable[[], float]) -> int:
    return max(1, int(left() * 1000))


def _not_controller_everywhere(response: AlterReassignmentsAnswer) -> bool:
    return response.error_code == NOT_CONTROLLER


def _not_controller_for_each(response: ElectLeadersAnswer) -> bool:
    """ZooKeeper mode tells it of each partition, with no error at the top."""
    rows = [p for topic in response.replica_election_results for p in topic.partition_result]
    return bool(rows) and all(row.error_code == NOT_CONTROLLER for row in rows)
