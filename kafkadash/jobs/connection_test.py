"""The job "connection_test": reach a cluster as the collectors do, and report the result of each step.

The test uses the stored connection of a cluster, or settings that were typed and not saved. The result is shown while
the job runs, so every step is stored as soon as it is known.

A step is {key, title, state, said, items}; ``state`` is "running", or a state of the pages: ok, warning, critical,
unknown. ``said`` and ``items``, which are about single addresses or permissions, are plain texts or messages as
``pack_value`` stores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.metadata_mode import is_kraft, judge_mode
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.secrets import EncryptedTextField, SealedSecret, SecretError
from kafkadash.clusters.services import (
    CONNECTION_FIELDS,
    IdentityChanged,
    check_identity,
    learn_identity,
    shown_values,
    tried_connection,
)
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.messages import CodedMessage, choose_plural, coded, join_messages, pack_value, unpack_value
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job
from kafkadash.jobs.runner import JobFailed, JobKind, JobRun, enqueue, register_kind
from kafkadash.kafka.api import (
    ApiVersions,
    AuthenticationFailed,
    BrokerInfo,
    ClusterConnection,
    ClusterDescription,
    ConnectionSecurity,
    GrantedPermissions,
    KafkaAdmin,
    KafkaFailure,
    QuorumDescription,
    hidden_message,
    hidden_topics,
)
from kafkadash.kafka.connect import open_zookeeper, own_admin
from kafkadash.kafka.probe import ProbeResult, ProbeStage, is_ip, probe
from kafkadash.kafka.tokens import OAUTHBEARER, fetch_token
from kafkadash.kafka.znodes import BrokerZNode, ZooKeeperFacts, read_brokers, read_facts

Said: TypeAlias = CodedMessage | str
MOST_ITEMS = 50

# Data that is not available without a permission on the cluster.
_CLUSTER_COSTS = {
    "Describe": "reassignments, the controller quorum, disk sizes and the progress of moves",
    "DescribeConfigs": "broker configuration and throttles",
}

# Operations that changes need, and which changes: on the cluster, and on topics.
_CHANGES_ON_CLUSTER = {
    "Alter": "moves and elections",
    "AlterConfigs": "throttles, and configs of brokers",
    "Create": "new topics, unless an ACL on topics allows them",
}
_CHANGES_ON_TOPICS = {
    "AlterConfigs": "throttled replicas, and configs of topics",
    "Alter": "more partitions",
    "Delete": "deletions of topics",
}


class TestSteps:
    """Adds steps to the result of a running job; each ``begin`` is a place where a cancel or the deadline ends it."""

    def __init__(self, run: JobRun) -> None:
        self.run = run
        self.rows: list[dict[str, Any]] = []

    def begin(self, key: str, title: str, fraction: float) -> None:
        """Raises what ``JobRun.step`` raises."""
        self.run.step(fraction, title)
        self.rows.append({"key": key, "title": title, "state": "running", "said": "", "items": []})
        self.run.claim.show({"steps": self.rows})

    def end(self, state: str, message: Said, items: Sequence[Said] = ()) -> None:
        shown = pack_value(items[:MOST_ITEMS])
        if len(items) > MOST_ITEMS:
            shown.append(f"And {len(items) - MOST_ITEMS} more.")
        self.rows[-1].update(state=state, said=pack_value(message), items=shown)
        self.run.claim.show({"steps": self.rows})


def reach_addresses(steps: TestSteps, connection: ClusterConnection) -> None:
    """Name, TCP and TLS of the bootstrap addresses. Raises JobFailed when none of them gets through."""
    addresses = list(connection.bootstrap_servers)
    steps.begin("resolve", "Host names", 0.05)
    probed = probe(addresses, connection.security, deadline=steps.run.kafka_deadline())
    if all(is_ip(address.rpartition(":")[0]) for address in addresses):
        steps.end("ok", "All addresses are IP addresses: no DNS lookup needed.")
    else:
        found = [f"{p.address.rpartition(':')[0]} resolves to {', '.join(p.ips)}." for p in probed if p.ips]
        _end_stage(steps, probed, ProbeStage.RESOLVE, " ".join(found))
    _report_stage(steps, probed, ProbeStage.CONNECT, "TCP connection", "accepted the connection")
    if connection.security.protocol.endswith("SSL"):
        _report_stage(steps, probed, ProbeStage.TLS, "TLS and certificate", "presented a trusted certificate")
    if all(p.failed is not None for p in probed):
        raise JobFailed(join_messages(p.why for p in probed if p.why is not None))


def reach_token_endpoint(steps: TestSteps, connection: ClusterConnection) -> None:
    """Fetch an access token as the wire will. Raises KafkaFailure."""
    steps.begin("token", "Access token", 0.25)
    try:
        token = fetch_token(connection, steps.run.kafka_deadline())
    except KafkaFailure as failure:
        steps.end("critical", failure.message)
        raise
    endpoint = connection.security.oauth_endpoint
    steps.end("ok", f"{endpoint} issued a token for {format_duration(token.lifetime_s)} ({token.claims}).")


def reach_brokers(steps: TestSteps, security: ConnectionSecurity, brokers: Sequence[BrokerInfo]) -> None:
    """Every address that a broker gives to clients (``advertised.listeners``) must be reachable from the workers."""
    steps.begin("listeners", "Advertised listeners", 0.5)
    live = [broker for broker in brokers if not broker.fenced]
    probed = probe([_format_address(broker) for broker in live], security, deadline=steps.run.kafka_deadline())
    wrong = [_listener_message(b, p) for b, p in zip(live, probed, strict=True) if p.failed is not None]
    reachable = len(live) - len(wrong)
    if not wrong:
        named = ", ".join(_format_address(broker) for broker in live[:5]) + (", …" if len(live) > 5 else "")
        steps.end("ok", f"{_count_brokers(len(live))} can be reached at {named}.")
    else:
        state = "critical" if not reachable else "warning"
        steps.end(
            state,
            coded(JobErrorCode.LISTENERS_UNREACHABLE, reached=reachable, brokers=_count_brokers(len(live))),
            wrong,
        )


def check_permissions(steps: TestSteps, admin: KafkaAdmin, brokers: Sequence[BrokerInfo]) -> list[Said]:
    """Return what the principal is missing for the pages, one message for each; [] when nothing is."""
    steps.begin("permissions", "Permissions", 0.85)
    try:
        granted = admin.permissions(deadline=steps.run.kafka_deadline())
    except KafkaFailure as failure:
        steps.end("unknown", coded(JobErrorCode.RIGHTS_UNKNOWN, why=failure.message))
        return []
    missing: list[Said] = [*_missing_on_cluster(granted), *_missing_on_topics(granted)]
    missing += _hidden_topics(steps, admin, granted, brokers)
    if missing:
        texts = "# required permission is missing.|# required permissions are missing."
        steps.end("warning", choose_plural(texts, len(missing)), missing)
    else:
        topics = f" and {choose_plural('# topic|# topics', len(granted.topics))}" if granted.topics else ""
        steps.end("ok", f"Describe and DescribeConfigs are granted on the cluster{topics}.")
    if granted.cluster:
        _report_changes(steps, granted)
    return missing


def _report_changes(steps: TestSteps, granted: GrantedPermissions) -> None:
    """Tell which changes the principal may make. A principal that may make none only watches, which is no fault."""
    steps.begin("changes", "Permissions for changes", 0.95)
    held = granted.cluster or frozenset()
    missing: list[Said] = [
        coded(JobErrorCode.CHANGE_NOT_GRANTED, operation=name, where="the cluster", changes=changes)
        for name, changes in _CHANGES_ON_CLUSTER.items()
        if name not in held
    ]
    for name, changes in _CHANGES_ON_TOPICS.items():
        without = sorted(topic for topic, may in granted.topics.items() if may is not None and name not in may)
        if without:
            which = "all topics" if len(without) == len(granted.topics) else _quote_names(without)
            missing.append(coded(JobErrorCode.CHANGE_NOT_GRANTED, operation=name, where=which, changes=changes))
    if not missing:
        steps.end("ok", "Moves, elections, and changes of configs and topics are granted.")
    elif not held & _CHANGES_ON_CLUSTER.keys():
        steps.end("ok", "No changes are granted: kafkadash can only watch this cluster.")
    else:
        texts = "# permission for changes is missing.|# permissions for changes are missing."
        steps.end("warning", choose_plural(texts, len(missing)), missing)


def _missing_on_cluster(granted: GrantedPermissions) -> list[Said]:
    if granted.cluster is None:
        return []
    if "Describe" not in granted.cluster:
        # Without Describe Kafka tells nothing about the others.
        return [coded(JobErrorCode.MISSING_ON_CLUSTER, permission="Describe", costs=_CLUSTER_COSTS["Describe"])]
    lacking = [name for name in _CLUSTER_COSTS if name not in granted.cluster]
    return [coded(JobErrorCode.MISSING_ON_CLUSTER, permission=name, costs=_CLUSTER_COSTS[name]) for name in lacking]


def _missing_on_topics(granted: GrantedPermissions) -> list[Said]:
    without = sorted(name for name, may in granted.topics.items() if may is not None and "DescribeConfigs" not in may)
    if not without:
        return []
    which = "all topics" if len(without) == len(granted.topics) else _quote_names(without)
    return [coded(JobErrorCode.MISSING_ON_TOPICS, permission="DescribeConfigs", which=which)]


def _hidden_topics(
    steps: TestSteps, admin: KafkaAdmin, granted: GrantedPermissions, brokers: Sequence[BrokerInfo]
) -> list[Said]:
    """Kafka leaves topics that may not be described out of every answer but one: what lies on the disks."""
    if granted.cluster is not None and "Describe" not in granted.cluster:
        return []
    try:
        stored = admin.log_dirs([b.id for b in brokers if not b.fenced], deadline=steps.run.kafka_deadline())
        on_disk = {replica.topic for dirs in stored.brokers.values() for each in dirs for replica in each.replicas}
        hidden = hidden_topics(admin, on_disk - granted.topics.keys(), deadline=steps.run.kafka_deadline())
    except KafkaFailure:
        return []
    return [hidden_message(hidden, all_of_them=not granted.topics)] if hidden else []


def _report_stage(steps: TestSteps, probed: Sequence[ProbeResult], stage: ProbeStage, title: str, fine: str) -> None:
    if not any(p.tried(stage) for p in probed):
        return
    steps.begin(stage.value, title, 0.1 if stage is ProbeStage.CONNECT else 0.2)
    reached = [p.address for p in probed if p.reached(stage)]
    _end_stage(steps, probed, stage, f"{join_items(reached)} {fine}." if reached else "")


def _end_stage(steps: TestSteps, probed: Sequence[ProbeResult], stage: ProbeStage, fine: str) -> None:
    tried = [p for p in probed if p.tried(stage)]
    wrong = [p.why for p in tried if p.failed is stage and p.why is not None]
    if not wrong:
        steps.end("ok", fine)
    elif len(wrong) < len(tried):
        steps.end("warning", fine, wrong)
    elif len(wrong) == 1:
        steps.end("critical", wrong[0])
    else:
        steps.end("critical", coded(JobErrorCode.NONE_GOT_THIS_FAR), wrong)


def _listener_message(broker: BrokerInfo, probed: ProbeResult) -> CodedMessage:
    return coded(JobErrorCode.LISTENER_UNREACHABLE, broker=broker.id, address=probed.address, why=probed.why)


def _format_address(broker: BrokerInfo) -> str:
    return f"[{broker.host}]:{broker.port}" if ":" in broker.host else f"{broker.host}:{broker.port}"


def _count_brokers(number: int) -> str:
    return choose_plural("# broker|# brokers", number)


def _quote_names(names: Sequence[str]) -> str:
    shown = (
        join_items([f"“{name}”" for name in names[:3]]) if len(names) <= 3 else ", ".join(f"“{n}”" for n in names[:3])
    )
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more topics"


KIND = "connection_test"
DEADLINE_S = 60.0


def start_test(
    actor: User, cluster: Cluster | None, typed: Mapping[str, Any], *, request: HttpRequest | None = None
) -> Job:
    """A job that tries the connection of a cluster with what was typed; secrets that were not typed are the stored.

    The row carries secrets encrypted as the cluster's own row does, and loses them when the test has ended. It is
    audited, because stored secrets are used with whatever address was typed. Raises Refused and SecretError.
    """
    tried = tried_connection(cluster, typed)
    stored = {name: _pack_field(tried, name) for name in CONNECTION_FIELDS}
    with transaction.atomic():
        job = enqueue(KIND, cluster=cluster, requested_by=actor, input={"connection": stored})
        record(
            actor,
            "cluster.connection_tested",
            cluster or ("job", str(job.pk)),
            cluster=cluster.slug if cluster else "",
            after=shown_values(tried, CONNECTION_FIELDS),
            request=request,
        )
    return job


def connection_test(run: JobRun) -> dict[str, Any]:
    """Reach the addresses, ask for the brokers, what they speak, who leads the controllers, what we may do.

    The result: steps (see ``connection_steps``), kafka_id, mode, brokers (id, host, port, rack, fenced), racks (names,
    sorted), brokers_without_rack, controller (id of the active one, None if not known), voters, and problems, a list
    like the items of a step. What fails in part is a problem; without brokers, or with another cluster behind the
    addresses, the job fails, and the result has the steps until then. A cluster's identity is kept only from its stored
    settings.
    """
    typed = run.job.input.get("connection")
    cluster = run.job.cluster
    try:
        target = cluster if typed is None else _unpack_cluster(cluster, typed)
        if target is None or (cluster is not None and cluster.removed_at is not None):
            raise JobFailed(JobErrorCode.WITHOUT_CLUSTER)
        with own_admin(target.connection()) as admin:
            return _run_test(run, target, admin, keep=typed is None)
    finally:
        _forget_secrets(run.job.pk)


def _run_test(run: JobRun, target: Cluster, admin: KafkaAdmin, *, keep: bool) -> dict[str, Any]:
    steps = TestSteps(run)
    connection = target.connection()
    reach_addresses(steps, connection)
    if connection.security.protocol.startswith("SASL") and connection.security.sasl_mechanism == OAUTHBEARER:
        reach_token_endpoint(steps, connection)
    described = _first_answer(steps, target, admin)
    reach_brokers(steps, connection.security, described.brokers)
    steps.begin("versions", "API versions", 0.6)
    versions = admin.api_versions(deadline=run.kafka_deadline())
    problems = _list_unanswered(described, versions)
    mode = judge_mode(versions, ClusterMode(target.mode)) if versions.brokers else ClusterMode.UNKNOWN
    quorum = None
    if mode == ClusterMode.KRAFT:
        steps.end("ok", _describe_modes(versions), problems)
        steps.begin("quorum", "Active controller", 0.7)
        quorum = _read_quorum(admin, run, steps, problems)
    elif mode == ClusterMode.ZOOKEEPER and not target.zookeeper:
        problems.append(coded(ClusterErrorCode.WITH_ZOOKEEPER))
        steps.end("warning", problems[-1])
    elif mode == ClusterMode.ZOOKEEPER:
        steps.end("ok", _describe_modes(versions), problems)
    else:
        steps.end("critical", coded(JobErrorCode.NO_VERSIONS), problems)
    if target.zookeeper and mode != ClusterMode.UNKNOWN:
        problems += _check_zookeeper(steps, target, described.cluster_id, mode)
    problems += check_permissions(steps, admin, described.brokers)
    if keep:
        try:
            with run.write():
                learn_identity("jobs", target.pk, kafka_id=described.cluster_id, mode=mode)
        except IdentityChanged as error:  # it was learned by somebody else since the first look
            raise JobFailed(error.message) from error
    problems += [unpack_value(each) for step in steps.rows if step["key"] == "listeners" for each in step["items"]]
    return {"steps": steps.rows, **_facts(described, mode, quorum, problems)}


def _first_answer(steps: TestSteps, target: Cluster, admin: KafkaAdmin) -> ClusterDescription:
    """The brokers, as the first one tells them; who else answers than before fails the job. Raises KafkaFailure."""
    login = "SASL" in target.security_protocol
    words = f"as {target.sasl_username} with {target.sasl_mechanism}"
    if login:
        steps.begin("sasl", "Login", 0.3)
    else:
        steps.begin("kafka", "Kafka response", 0.3)
    try:
        described = admin.describe_cluster(deadline=steps.run.kafka_deadline())
    except KafkaFailure as failure:
        if login and not isinstance(failure, AuthenticationFailed):
            steps.end(
                "unknown",
                coded(JobErrorCode.LOGIN_UNANSWERED, user=target.sasl_username, mechanism=target.sasl_mechanism),
            )
            steps.begin("kafka", "Kafka response", 0.3)
        steps.end("critical", failure.message)
        raise
    if login:
        steps.end("ok", f"Logged in {words}.")
        steps.begin("kafka", "Kafka response", 0.4)
    try:
        check_identity(target, described.cluster_id)
    except IdentityChanged as error:
        steps.end("critical", error.message)
        raise JobFailed(error.message) from error
    steps.end("ok", f"Kafka cluster ID: {described.cluster_id}.")
    return described


def _describe_modes(versions: ApiVersions) -> str:
    """Say which mode the brokers responded in; where they differ, as in a migration, name those of each mode."""
    kraft = [str(broker) for broker, offered in sorted(versions.brokers.items()) if is_kraft(offered)]
    others = [str(broker) for broker, offered in sorted(versions.brokers.items()) if not is_kraft(offered)]
    if kraft and others:
        texts = "Broker {} responds|Brokers {} respond"
        named = [choose_plural(texts, len(ids)).format(join_items(ids)) for ids in (kraft, others)]
        return f"{named[0]} in KRaft mode. {named[1]} in ZooKeeper mode."
    return f"The brokers respond in {'KRaft' if kraft else 'ZooKeeper'} mode."


def _list_unanswered(described: ClusterDescription, versions: ApiVersions) -> list[Said]:
    problems: list[Said] = [f"Broker {broker}: {error.text}" for broker, error in sorted(versions.errors.items())]
    queried = versions.brokers.keys() | versions.errors.keys()
    problems += [
        coded(JobErrorCode.NOT_ASKED, broker=b.id, address=f"{b.host}:{b.port}")
        for b in described.brokers
        if b.id not in queried
    ]
    problems += [coded(JobErrorCode.TAKES_NO_PART, broker=b.id) for b in described.brokers if b.fenced]
    return problems


def _read_quorum(admin: KafkaAdmin, run: JobRun, steps: TestSteps, problems: list[Said]) -> QuorumDescription | None:
    try:
        quorum = admin.quorum(deadline=run.kafka_deadline())
    except KafkaFailure as failure:
        problems.append(coded(JobErrorCode.QUORUM_UNREAD, why=failure.message))
        steps.end("warning", problems[-1])
        return None
    voters = join_items([str(voter.id) for voter in quorum.voters])
    several = f"the voters are {voters}" if len(quorum.voters) > 1 else f"{voters} is the only voter"
    steps.end("ok", f"Controller {quorum.leader_id} is active; {several}.")
    return quorum


def _check_zookeeper(steps: TestSteps, target: Cluster, kafka_id: str, mode: ClusterMode) -> list[Said]:
    """Read who the controller is; brokers in KRaft mode use ZooKeeper only until a migration is finished."""
    steps.begin("zookeeper", "ZooKeeper", 0.75)
    try:
        facts, brokers = _read_zookeeper(target, kafka_id, steps.run.kafka_deadline())
    except (KafkaFailure, SecretError) as failure:
        used = mode == ClusterMode.ZOOKEEPER
        wrong = (
            coded(JobErrorCode.ZOOKEEPER_UNREAD, why=failure.message)
            if used
            else coded(ClusterErrorCode.ZOOKEEPER_UNUSED)
        )
    else:
        controller = facts.controller
        if controller is not None and controller.migrating:
            wrong = coded(JobErrorCode.MIGRATES, controller=controller.broker_id)
        elif mode == ClusterMode.KRAFT:
            wrong = coded(ClusterErrorCode.ZOOKEEPER_UNUSED)
        else:
            leads = (
                f"broker {controller.broker_id} is the controller" if controller else "no broker is the controller now"
            )
            steps.end("ok", f"ZooKeeper has {_count_brokers(len(brokers))}; {leads}.")
            return []
    steps.end("warning", wrong)
    return [wrong]


def _read_zookeeper(target: Cluster, kafka_id: str, deadline: float) -> tuple[ZooKeeperFacts, Sequence[BrokerZNode]]:
    """Raises KafkaFailure and SecretError."""
    connection = target.zookeeper_connection()
    assert connection is not None
    with open_zookeeper(replace(connection, kafka_id=kafka_id), deadline=deadline) as session:
        return read_facts(session), read_brokers(session)


def _facts(
    described: ClusterDescription, mode: ClusterMode, quorum: QuorumDescription | None, problems: list[Said]
) -> dict[str, Any]:
    brokers = sorted(described.brokers, key=lambda broker: broker.id)
    return {
        "kafka_id": described.cluster_id,
        "mode": mode.value,
        "brokers": [_pack_broker(broker) for broker in brokers],
        "racks": sorted({broker.rack for broker in brokers if broker.rack is not None}),
        "brokers_without_rack": sum(broker.rack is None for broker in brokers),
        "controller": quorum.leader_id if quorum else None,
        "voters": sorted(voter.id for voter in quorum.voters) if quorum else None,
        "problems": pack_value(problems),
    }


def _pack_broker(broker: BrokerInfo) -> dict[str, Any]:
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "fenced": broker.fenced,
    }


def _pack_field(cluster: Cluster, name: str) -> Any:
    field = cluster._meta.get_field(name)
    value = field.sealed(cluster) if isinstance(field, EncryptedTextField) else cluster.__dict__[name]
    return value.ciphertext if isinstance(value, SealedSecret) else value


def _unpack_cluster(cluster: Cluster | None, packed: Mapping[str, Any]) -> Cluster:
    tried = Cluster(name=cluster.name if cluster else "The cluster")
    if cluster is not None:
        tried.pk, tried.kafka_id, tried.mode = cluster.pk, cluster.kafka_id, cluster.mode
    for name, value in packed.items():
        secret = isinstance(Cluster._meta.get_field(name), EncryptedTextField)
        setattr(tried, name, SealedSecret(value) if secret and value else value)
    return tried


def _forget_secrets(job_id: UUID) -> None:
    job = Job.objects.filter(pk=job_id).first()
    if job is None or "connection" not in job.input:
        return
    plain = {
        name: value
        for name, value in job.input["connection"].items()
        if not isinstance(Cluster._meta.get_field(name), EncryptedTextField)
    }
    Job.objects.filter(pk=job_id).update(input={"connection": plain})


def make_known() -> None:
    register_kind(JobKind(KIND, connection_test, deadline_s=DEADLINE_S, attempts=1, forget=_forget_secrets))
