"""``WireClient``: the calls that change a cluster, each sent at most once, with an outcome for each item.

A change that may have arrived is never sent again, because the copy could undo a later change. If an answer is missing,
or does not say whether Kafka did it, the item is lost, and the caller looks at the cluster.

``ControllerClient`` are the controllers' own listeners, which can change the configs of a broker that is down
(KIP-919). They have no Metadata, and each answers for itself; only the active one executes anything. Unlike a broker,
the controller checks no value of a broker config, so a value that the broker would not accept must not be sent here.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Generic, TypeVar, cast

from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import coded, join_messages
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    QUORUM_TOPIC,
    ClusterConnection,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ItemChanged,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    NewPartitions,
    NewTopic,
    QuorumUnavailable,
    ReplicaPlace,
    TopicPartition,
    ZooKeeperConnection,
)
from kafkadash.kafka.connections import NodeId
from kafkadash.kafka.dispatch import (
    AtMostOnce,
    BrokerAnswer,
    BrokerRequest,
    ConnectionPool,
    UnknownOutcome,
    send_each_once,
    send_once,
)
from kafkadash.kafka.error_codes import (
    COORDINATOR_MOVES,
    ELECTION_NOT_NEEDED,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    REPLICA_NOT_AVAILABLE,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    call_failure,
    code_name,
    item_error,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_reads import CoordinatorReading
from kafkadash.kafka.messages import (
    DESCRIBE_QUORUM,
    AlterConfigsAnswer,
    AlterLogDirsAnswer,
    AlterReassignmentsAnswer,
    ApiRanges,
    ClusterAnswer,
    CreatePartitionsAnswer,
    CreateTopicsAnswer,
    DeleteGroupsAnswer,
    DeleteTopicsAnswer,
    ElectLeadersAnswer,
    KafkaResponse,
    OffsetCommitAnswer,
    OffsetDeleteAnswer,
    QuorumAnswer,
    Request,
    UnregisterBrokerAnswer,
    alter_configs_request,
    alter_log_dirs_request,
    alter_reassignments_request,
    commit_offsets_request,
    controllers_request,
    create_partitions_request,
    create_topics_request,
    delete_groups_request,
    delete_offsets_request,
    delete_topics_request,
    elect_leaders_request,
    quorum_request,
    unregister_broker_request,
)
from kafkadash.kafka.reads import MALFORMED, WireAdmin, start_countdown
from kafkadash.kafka.znodes import WriteUnanswered, remove_broker_configs
from kafkadash.kafka.zookeeper import open_session

RATES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


def is_harmless(change: ConfigChange) -> bool:
    """Return whether any broker understands the change: a rate set to whole bytes per second, or one deleted."""
    if change.key not in RATES:
        return False
    if change.operation is ConfigOperation.DELETE:
        return True
    return change.operation is ConfigOperation.SET and read_whole_number(change.value or "") is not None


def _removes_rate(change: ConfigChange) -> bool:
    return change.operation is ConfigOperation.DELETE and change.key in RATES


class ControllerClient(WireAdmin):
    """``connection.controller_servers`` as a client of their own."""

    def __init__(self, connection: ClusterConnection) -> None:
        own = replace(connection, key=f"{connection.key}-controllers", bootstrap_servers=connection.controller_servers)
        super().__init__(own)

    def send(
        self, ask: BrokerRequest[AlterConfigsAnswer], cluster_id: str, *, deadline: float
    ) -> BrokerAnswer[AlterConfigsAnswer] | UnknownOutcome:
        """To the active controller of this cluster, once. Raises KafkaFailure where it certainly was not sent."""
        left = start_countdown(deadline)
        node = self._active(left() / 3)
        self._refuse_another(node, cluster_id, left() / 2)
        return send_once(ask, lambda: self._with_wire(lambda wire: wire.ask_bootstrap(node, ask, deadline=left())))

    def _refuse_another(self, node: NodeId, cluster_id: str, deadline: float) -> None:
        """Brokers are numbered alike everywhere: what is meant for one must not reach its namesake elsewhere."""
        ask: BrokerRequest[ClusterAnswer] = BrokerRequest(controllers_request, ConnectionPool.CONTROLLER)
        response = self._with_wire(lambda wire: wire.ask_bootstrap(node, ask, deadline=deadline)).response
        if response.error_code:
            raise call_failure(
                response.error_code,
                "DescribeCluster",
                permission="Describe on the cluster",
                detail=response.error_message,
            )
        if not cluster_id or response.cluster_id != cluster_id:
            raise KafkaUnreachable(
                KafkaErrorCode.ANOTHER_QUORUM,
                answered=response.cluster_id,
                expected=cluster_id or "that of the brokers, which is unknown",
            )

    def _active(self, deadline: float) -> NodeId:
        """The one that describes the quorum: a standby answers NOT_LEADER_OR_FOLLOWER in the partition."""
        # The lane of the changes: bootstrap servers are numbered by each lane for itself.
        ask: BrokerRequest[QuorumAnswer] = BrokerRequest(quorum_request, ConnectionPool.CONTROLLER)
        results = self._with_wire(lambda wire: wire.ask_each_bootstrap(ask, deadline=deadline))
        for result in results:
            if isinstance(result, BrokerAnswer) and _has_leader(result.response):
                return result.node
        failures = (result.message for result in results if isinstance(result, KafkaFailure))
        raise QuorumUnavailable(join_messages([coded(KafkaErrorCode.NO_LEADER_THERE), *failures]))


def _has_leader(response: QuorumAnswer) -> bool:
    partitions = [p for topic in response.topics if topic.topic_name == QUORUM_TOPIC for p in topic.partitions]
    return not response.error_code and any(not p.error_code and p.leader_id >= 0 for p in partitions)


log = logging.getLogger(__name__)
C = TypeVar("C", bound=Callable[..., ItemChanged[Any]])
T = TypeVar("T")
R = TypeVar("R", bound=KafkaResponse)
Codes = Mapping[T, tuple[int, str | None]]  # item → Kafka's code and words
Result = BrokerAnswer[R] | UnknownOutcome | KafkaFailure

# Kafka does not know either whether it was done, or will be: a forwarded request may still wait for a controller.
_UNCERTAIN = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NETWORK_EXCEPTION})
# A coordinator whose write timed out, or that lost its leadership meanwhile, says that it is none: it may be done
# (org.apache.kafka.coordinator.group.GroupCoordinatorService, handleOperationException).
_UNCERTAIN_OF_GROUPS = _UNCERTAIN | COORDINATOR_MOVES
_ALTER_CLUSTER = "Alter on the cluster"


def loses_malformed(list_items: Callable[..., Iterable[Any]]) -> Callable[[C], C]:
    """Have a change tell its items, which ``list_items`` returns of its arguments, as lost where the answer lacks
    fields, or has others, than its version says: it may have been done.
    """

    def decorate(change: C) -> C:
        @wraps(change)
        def checked(client: WireClient, /, *args: Any, **kwargs: Any) -> ItemChanged[Any]:
            try:
                return change(client, *args, **kwargs)
            except MALFORMED:
                log.exception("kafka.answer_malformed")
                error = ItemError(coded(KafkaErrorCode.ANSWER_MALFORMED))
                return ItemChanged(lost=dict.fromkeys(list_items(*args, **kwargs), error))

        return cast("C", checked)

    return decorate


class WireClient(WireAdmin):
    """A client that reads and changes one cluster."""

    def __init__(self, connection: ClusterConnection) -> None:
        super().__init__(connection)
        self._controllers = ControllerClient(connection) if connection.controller_servers else None
        self._zookeeper = connection.zookeeper

    def close(self) -> None:
        super().close()
        if self._controllers is not None:
            self._controllers.close()

    @loses_malformed(lambda targets, **_: targets)
    def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, deadline: float, keep_factor: bool
    ) -> ItemChanged[TopicPartition]:
        if not targets:
            return ItemChanged()
        left = start_countdown(deadline)
        result = self._to_controller(
            lambda offered: alter_reassignments_request(
                offered, targets, keep_factor=keep_factor, timeout_ms=_milliseconds(left)
            ),
            left,
            _not_controller_everywhere,
        )
        sorting = _AnswerSorting(targets, "The reassignment of {} was not accepted", _ALTER_CLUSTER)
        if isinstance(result, UnknownOutcome):
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

    @loses_malformed(lambda partitions, **_: partitions)
    def elect_leaders(
        self, partitions: Collection[TopicPartition], *, deadline: float, unclean: bool = False
    ) -> ItemChanged[TopicPartition]:
        if not partitions:
            return ItemChanged()
        left = start_countdown(deadline)
        result = self._to_controller(
            lambda offered: elect_leaders_request(offered, partitions, unclean=unclean, timeout_ms=_milliseconds(left)),
            left,
            _not_controller_for_each,
        )
        which = "A leader" if unclean else "The preferred leader"
        sorting = _AnswerSorting(partitions, which + " of {} was not elected", _ALTER_CLUSTER)
        if isinstance(result, UnknownOutcome):
            return sorting.lost(result)
        response: ElectLeadersAnswer = result.response
        if response.API_VERSION >= 1 and response.error_code:
            return sorting.all(response.error_code, None)
        codes = {
            TopicPartition(topic.topic, p.partition_id): (p.error_code, p.error_message)
            for topic in response.replica_election_results
            for p in topic.partition_result
        }
        return sorting.each(codes, fine=0 if unclean else ELECTION_NOT_NEEDED)

    @loses_malformed(lambda topics, **_: [topic.name for topic in topics])
    def create_topics(
        self, topics: Collection[NewTopic], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        if not topics:
            return ItemChanged()
        left = start_countdown(deadline)
        result = self._to_controller(
            lambda offered: create_topics_request(
                offered, topics, timeout_ms=_milliseconds(left), validate_only=validate_only
            ),
            left,
            _not_controller_for_topics,
        )
        sorting = _AnswerSorting(
            [topic.name for topic in topics], "Topic {} was not created", "Create on the cluster or on the topic"
        )
        if isinstance(result, UnknownOutcome):
            return sorting.lost(result)
        response: CreateTopicsAnswer = result.response
        return sorting.each({topic.name: (topic.error_code, topic.error_message) for topic in response.topics})

    @loses_malformed(lambda topics, **_: [new.topic for new in topics])
    def create_partitions(
        self, topics: Collection[NewPartitions], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        if not topics:
            return ItemChanged()
        left = start_countdown(deadline)
        result = self._to_controller(
            lambda offered: create_partitions_request(
                offered, topics, timeout_ms=_milliseconds(left), validate_only=validate_only
            ),
            left,
            _not_controller_for_new_partitions,
        )
        sorting = _AnswerSorting([new.topic for new in topics], "Topic {} got no partitions", "Alter on the topic")
        if isinstance(result, UnknownOutcome):
            return sorting.lost(result)
        response: CreatePartitionsAnswer = result.response
        return sorting.each({topic.name: (topic.error_code, topic.error_message) for topic in response.results})

    @loses_malformed(lambda topic_ids, **_: topic_ids)
    def delete_topics(self, topic_ids: Collection[str], *, deadline: float) -> ItemChanged[str]:
        if not topic_ids:
            return ItemChanged()
        left = start_countdown(deadline)
        result = self._to_controller(
            lambda offered: delete_topics_request(offered, topic_ids, timeout_ms=_milliseconds(left)),
            left,
            _not_controller_for_deleted,
        )
        sorting = _AnswerSorting(topic_ids, "The topic with ID {} was not deleted", "Delete on the topic")
        if isinstance(result, UnknownOutcome):
            return sorting.lost(result)
        response: DeleteTopicsAnswer = result.response
        return sorting.each({str(row.topic_id): (row.error_code, row.error_message) for row in response.responses})

    @loses_malformed(lambda changes, **_: [change.resource for change in changes])
    def alter_configs(
        self, changes: Sequence[ConfigChange], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[ConfigResource]:
        left = start_countdown(deadline)
        groups: defaultdict[ConfigResource, list[ConfigChange]] = defaultdict(list)
        for change in changes:
            groups[change.resource].append(change)
        brokers = {r: o for r, o in groups.items() if r.type is ConfigResourceType.BROKER and r != CLUSTER_DEFAULT}
        anywhere = {resource: own for resource, own in groups.items() if resource not in brokers}
        parts: list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]] = []
        removed: set[ConfigResource] = set()
        if brokers:
            through_them = start_countdown(left() / 2) if anywhere else left
            parts += self._alter_brokers(brokers, through_them, validate_only=validate_only)
            if self._zookeeper and not validate_only:
                parts, removed = self._remove_in_zookeeper(self._zookeeper, brokers, parts, through_them)
        if anywhere:
            ask = _alter_configs(anywhere, validate_only=validate_only)
            parts.append((list(anywhere), _try_send(lambda: self._forwarded(ask, left))))
        if removed and all(isinstance(result, KafkaFailure) for _, result in parts):
            failed = ((items, result) for items, result in parts if isinstance(result, KafkaFailure))
            refused = {item: ItemError(result.message) for items, result in failed for item in items}
            return ItemChanged(frozenset(removed), refused)
        changed = _join_results(
            parts,
            "The configuration of {} was not changed",
            "AlterConfigs on the topic or the cluster",
            _config_codes,
            uncertain=_UNCERTAIN | {NOT_CONTROLLER},  # only a controller that was asked by itself says so
        )
        return replace(changed, done=changed.done | removed)

    def _remove_in_zookeeper(
        self,
        zookeeper: ZooKeeperConnection,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        parts: Sequence[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]],
        left: Callable[[], float],
    ) -> tuple[list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]], set[ConfigResource]]:
        """Remove rates of brokers that could not be asked from their znodes; the other results, and what was removed.

        A broker that is not registered reads its znode when it starts.
        """
        others: list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]] = []
        removed: set[ConfigResource] = set()
        for brokers, result in parts:
            [broker, *more] = brokers
            own = changes[broker]
            if more or not isinstance(result, KafkaFailure) or not all(map(_removes_rate, own)):
                others.append((brokers, result))
                continue
            try:
                described = self.describe_cluster(deadline=left() / 2)
                with open_session(replace(zookeeper, kafka_id=described.cluster_id), deadline=left()) as session:
                    keys = {change.key for change in own}
                    remove_broker_configs(session, int(broker.name), keys, described.controller_id)
                removed.add(broker)
            except WriteUnanswered as failure:
                others.append((brokers, UnknownOutcome(failure.message)))
            except KafkaFailure as failure:
                others.append((brokers, KafkaUnreachable(join_messages([result.message, failure.message]))))
        return others, removed

    def _alter_brokers(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        left: Callable[[], float],
        *,
        validate_only: bool,
    ) -> list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]]:
        """Each through its own broker; those that could not be sent through the active controller, if it is known."""
        asks = [
            (int(broker.name), _alter_configs({broker: own}, validate_only=validate_only))
            for broker, own in changes.items()
        ]
        through_them = left() if self._controllers is None else left() / 2
        results = send_each_once(asks, self._with_wire, through_them)
        unsent = [
            broker
            for broker, result in zip(changes, results, strict=True)
            if isinstance(result, KafkaFailure) and all(is_harmless(change) for change in changes[broker])
        ]
        if self._controllers is None or not unsent:
            return [([broker], result) for broker, result in zip(changes, results, strict=True)]
        found: list[tuple[Collection[ConfigResource], Result[AlterConfigsAnswer]]] = [
            ([broker], result) for broker, result in zip(changes, results, strict=True) if broker not in unsent
        ]
        controllers = self._controllers
        ask = _alter_configs({broker: changes[broker] for broker in unsent}, validate_only=validate_only)
        through = _try_send(
            lambda: controllers.send(ask, self.describe_cluster(deadline=left() / 3).cluster_id, deadline=left())
        )
        if isinstance(through, KafkaFailure):
            failures = (result.message for result in [*results, through] if isinstance(result, KafkaFailure))
            through = KafkaUnreachable(join_messages(failures))
        found.append((unsent, through))
        return found

    @loses_malformed(lambda places, **_: places)
    def place_replicas(self, places: Mapping[ReplicaPlace, str], *, deadline: float) -> ItemChanged[ReplicaPlace]:
        by_broker: defaultdict[int, dict[ReplicaPlace, str]] = defaultdict(dict)
        for place, path in places.items():
            by_broker[place.broker][place] = path
        asks = [(broker, _alter_log_dirs(own)) for broker, own in by_broker.items()]
        results = send_each_once(asks, self._with_wire, deadline) if asks else []
        parts: list[tuple[Collection[ReplicaPlace], Result[AlterLogDirsAnswer]]] = [
            (own, result) for own, result in zip(by_broker.values(), results, strict=True)
        ]
        return _join_results(
            parts,
            "The log directory of {} was not set",
            _ALTER_CLUSTER,
            _place_codes,
            fine=REPLICA_NOT_AVAILABLE,
        )

    @loses_malformed(lambda broker, **_: [broker])
    def unregister_broker(self, broker: int, *, deadline: float) -> ItemChanged[int]:
        result: BrokerAnswer[UnregisterBrokerAnswer] | UnknownOutcome = self._to_controller(
            lambda offered: unregister_broker_request(offered, broker),
            start_countdown(deadline),
            lambda response: response.error_code == NOT_CONTROLLER,
        )
        sorting = _AnswerSorting([broker], "Broker {} was not unregistered", _ALTER_CLUSTER)
        if isinstance(result, UnknownOutcome):
            return sorting.lost(result)
        return sorting.all(result.response.error_code, result.response.error_message)

    @loses_malformed(lambda _, offsets, **__: offsets)
    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        if not offsets:
            return ItemChanged()
        sent: list[tuple[list[str], Result[OffsetCommitAnswer]]] = self._to_coordinators(
            [group], lambda offered, _: commit_offsets_request(offered, group, offsets), deadline
        )
        return _join_results(
            [(offsets, result) for _, result in sent],
            "The offset of {} was not committed",
            "Read on the group and on the topic",
            _commit_codes,
            uncertain=_UNCERTAIN_OF_GROUPS,
        )

    @loses_malformed(lambda _, partitions, **__: partitions)
    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        if not partitions:
            return ItemChanged()
        sent: list[tuple[list[str], Result[OffsetDeleteAnswer]]] = self._to_coordinators(
            [group], lambda offered, _: delete_offsets_request(offered, group, partitions), deadline
        )
        return _join_results(
            [(partitions, result) for _, result in sent],
            "The offset of {} was not deleted",
            "Delete on the group and Read on the topic",
            lambda answer: _deleted_offset_codes(answer, partitions),
            uncertain=_UNCERTAIN_OF_GROUPS,
        )

    @loses_malformed(lambda groups, **_: groups)
    def delete_groups(self, groups: Collection[str], *, deadline: float) -> ItemChanged[str]:
        if not groups:
            return ItemChanged()
        sent: list[tuple[list[str], Result[DeleteGroupsAnswer]]] = self._to_coordinators(
            groups, delete_groups_request, deadline
        )
        return _join_results(
            sent, "Group {} was not deleted", "Delete on the group", _group_codes, uncertain=_UNCERTAIN_OF_GROUPS
        )

    # ---- routing

    def _to_coordinators(
        self, groups: Collection[str], build: Callable[[ApiRanges, Collection[str]], Request], deadline: float
    ) -> list[tuple[list[str], Result[R]]]:
        """Send each coordinator the request about its groups, once; the results, with the groups of each.

        Nothing is sent about a group whose coordinator is not known.
        """
        left = start_countdown(deadline)
        found, errors = self._talk(lambda talk: CoordinatorReading(talk).read(groups), left() / 2)
        asks = [(broker, _about_groups(build, own)) for broker, own in found.items()]
        results: list[BrokerAnswer[R] | UnknownOutcome | KafkaFailure] = (
            send_each_once(asks, self._with_wire, left()) if asks else []
        )
        unsent: list[tuple[list[str], Result[R]]] = [
            ([group], KafkaUnreachable(error.message)) for group, error in errors.items()
        ]
        return [*zip(found.values(), results, strict=True), *unsent]

    def _forwarded(self, ask: BrokerRequest[R], left: Callable[[], float]) -> BrokerAnswer[R] | UnknownOutcome:
        return send_once(ask, lambda: self._with_wire(lambda wire: wire.ask_controller(ask, deadline=left())))

    def _to_controller(
        self, build: Callable[[ApiRanges], Request], left: Callable[[], float], refused: Callable[[R], bool]
    ) -> BrokerAnswer[R] | UnknownOutcome:
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

        ask: BrokerRequest[R] = BrokerRequest(noted, ConnectionPool.CONTROLLER, AtMostOnce())
        result = self._forwarded(ask, left)
        if isinstance(result, UnknownOutcome) or not refused(result.response):
            return result
        if forwarded:
            return UnknownOutcome(coded(KafkaErrorCode.LOST_LEADERSHIP, code=code_name(NOT_CONTROLLER)))
        controller = self.describe_cluster(deadline=left()).controller_id
        if controller is None:
            raise QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER)
        named: BrokerRequest[R] = BrokerRequest(build, ConnectionPool.CONTROLLER, AtMostOnce())
        [again] = send_each_once([(controller, named)], self._with_wire, left())
        if isinstance(again, KafkaFailure):
            raise again
        return again


class _AnswerSorting(Generic[T]):
    """Puts each item that was asked for into what was done, refused or lost."""

    def __init__(self, items: Iterable[T], subject: str, permission: str) -> None:
        self._asked = list(items)
        self._subject = subject
        self._permission = permission

    def lost(self, result: UnknownOutcome) -> ItemChanged[T]:
        return ItemChanged(lost=dict.fromkeys(self._asked, ItemError(result.why)))

    def unsent(self, failure: KafkaFailure) -> ItemChanged[T]:
        return ItemChanged(
            refused=dict.fromkeys(self._asked, ItemError(coded(KafkaErrorCode.NOTHING_SENT, why=failure)))
        )

    def all(self, code: int, message: str | None, *, guarded: bool = False) -> ItemChanged[T]:
        return self.each(dict.fromkeys(self._asked, (code, message)), guarded=guarded)

    def each(
        self,
        codes: Codes[T],
        *,
        fine: int = 0,
        uncertain: Collection[int] = _UNCERTAIN,
        guarded: bool = False,
    ) -> ItemChanged[T]:
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
        return ItemChanged(frozenset(done), refused, lost, guarded)

    def _error(self, item: T, code: int, message: str | None) -> ItemError:
        detail = message.strip().rstrip(".") if message else None
        return item_error(code, self._subject.format(item), detail=detail, permission=self._permission)


def _join_results(
    parts: Sequence[tuple[Collection[T], Result[R]]],
    subject: str,
    permission: str,
    codes: Callable[[BrokerAnswer[R]], Codes[T]],
    *,
    fine: int = 0,
    uncertain: Collection[int] = _UNCERTAIN,
) -> ItemChanged[T]:
    """Join the results of several requests of one call. Raises the first KafkaFailure where none of them was sent."""
    done: set[T] = set()
    refused: dict[T, ItemError] = {}
    lost: dict[T, ItemError] = {}
    failures = [result for _, result in parts if isinstance(result, KafkaFailure)]
    if failures and len(failures) == len(parts):
        raise failures[0]
    for items, result in parts:
        sorting = _AnswerSorting(items, subject, permission)
        if isinstance(result, KafkaFailure):
            part = sorting.unsent(result)
        elif isinstance(result, UnknownOutcome):
            part = sorting.lost(result)
        else:
            part = sorting.each(codes(result), fine=fine, uncertain=uncertain)
        done |= part.done
        refused.update(part.refused)
        lost.update(part.lost)
    return ItemChanged(frozenset(done), refused, lost)


def _try_send(send: Callable[[], BrokerAnswer[R] | UnknownOutcome]) -> Result[R]:
    try:
        return send()
    except KafkaFailure as failure:
        return failure


def _alter_configs(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> BrokerRequest[AlterConfigsAnswer]:
    return BrokerRequest(
        lambda offered: alter_configs_request(offered, changes, validate_only=validate_only),
        ConnectionPool.CONTROLLER,
        AtMostOnce(),
    )


def _config_codes(answer: BrokerAnswer[AlterConfigsAnswer]) -> Codes[ConfigResource]:
    return {
        ConfigResource(ConfigResourceType(row.resource_type), row.resource_name): (row.error_code, row.error_message)
        for row in answer.response.responses
    }


def _alter_log_dirs(places: Mapping[ReplicaPlace, str]) -> BrokerRequest[AlterLogDirsAnswer]:
    return BrokerRequest(lambda offered: alter_log_dirs_request(offered, places), once=AtMostOnce())


def _place_codes(answer: BrokerAnswer[AlterLogDirsAnswer]) -> Codes[ReplicaPlace]:
    return {
        ReplicaPlace(int(answer.node), topic.topic_name, p.partition_index): (p.error_code, None)
        for topic in answer.response.results
        for p in topic.partitions
    }


def _about_groups(
    build: Callable[[ApiRanges, Collection[str]], Request], groups: Collection[str]
) -> BrokerRequest[Any]:
    return BrokerRequest(lambda offered: build(offered, groups), once=AtMostOnce())


def _commit_codes(answer: BrokerAnswer[OffsetCommitAnswer]) -> Codes[TopicPartition]:
    return {
        TopicPartition(topic.name, p.partition_index): (p.error_code, None)
        for topic in answer.response.topics
        for p in topic.partitions
    }


def _deleted_offset_codes(
    answer: BrokerAnswer[OffsetDeleteAnswer], partitions: Collection[TopicPartition]
) -> Codes[TopicPartition]:
    if answer.response.error_code:
        return dict.fromkeys(partitions, (answer.response.error_code, None))
    return {
        TopicPartition(topic.name, p.partition_index): (p.error_code, None)
        for topic in answer.response.topics
        for p in topic.partitions
    }


def _group_codes(answer: BrokerAnswer[DeleteGroupsAnswer]) -> Codes[str]:
    return {row.group_id: (row.error_code, None) for row in answer.response.results}


def _milliseconds(left: Callable[[], float]) -> int:
    return max(1, int(left() * 1000))


def _not_controller_everywhere(response: AlterReassignmentsAnswer) -> bool:
    return response.error_code == NOT_CONTROLLER


def _not_controller_for_each(response: ElectLeadersAnswer) -> bool:
    """ZooKeeper mode tells it of each partition, with no error at the top."""
    rows = [p for topic in response.replica_election_results for p in topic.partition_result]
    return bool(rows) and all(row.error_code == NOT_CONTROLLER for row in rows)


def _not_controller_for_topics(response: CreateTopicsAnswer) -> bool:
    """CreateTopics has no error at the top."""
    return bool(response.topics) and all(topic.error_code == NOT_CONTROLLER for topic in response.topics)


def _not_controller_for_new_partitions(response: CreatePartitionsAnswer) -> bool:
    """CreatePartitions has no error at the top."""
    return bool(response.results) and all(topic.error_code == NOT_CONTROLLER for topic in response.results)


def _not_controller_for_deleted(response: DeleteTopicsAnswer) -> bool:
    """DeleteTopics has no error at the top."""
    return bool(response.responses) and all(row.error_code == NOT_CONTROLLER for row in response.responses)
