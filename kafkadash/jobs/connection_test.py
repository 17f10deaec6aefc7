"""The job "connection_test": reach a cluster as the collectors do, and say what answered and what did not.

It tries what is stored for a cluster, or settings that somebody typed and did not save. Its result is shown while it
grows, so every step is stored as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.clusters.secrets import EncryptedTextField, Sealed
from kafkadash.clusters.services import (
    CONNECTION_FIELDS,
    IdentityChanged,
    check_identity,
    learn_identity,
    shown_values,
    tried_connection,
)
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import listed
from kafkadash.jobs.connection_steps import Steps, permissions, reach_addresses, reach_brokers
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import Kind, register
from kafkadash.jobs.models import Job
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.jobs.services import enqueue
from kafkadash.kafka.connect import own_admin
from kafkadash.kafka.port import (
    ApiVersions,
    AuthenticationFailed,
    Broker,
    ClusterDescription,
    KafkaAdmin,
    KafkaFailure,
    Quorum,
)

KIND = "connection_test"
DEADLINE_S = 60.0

# DescribeQuorum (KIP-595): brokers in KRaft mode offer it, brokers with ZooKeeper do not.
DESCRIBE_QUORUM = 55


def start_test(
    actor: User, cluster: Cluster | None, typed: Mapping[str, Any], *, request: HttpRequest | None = None
) -> Job:
    """A job that tries the connection of a cluster with what was typed; secrets that were not typed are the stored.

    The row carries secrets encrypted as the cluster's own row does, and loses them when the test has ended. It is
    audited, because stored secrets are used with whatever address was typed. Raises Refused and SecretError.
    """
    tried = tried_connection(cluster, typed)
    stored = {name: _packed(tried, name) for name in CONNECTION_FIELDS}
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


def connection_test(run: Run) -> dict[str, Any]:
    """Reach the addresses, ask for the brokers, what they speak, who leads the controllers, what we may do.

    The result: steps (see ``connection_steps``), kafka_id, mode, brokers (id, host, port, rack, fenced), racks (names,
    sorted), brokers_without_rack, controller (id of the active one, None if not known), voters, and problems, a list of
    sentences. What fails in part is a problem; without brokers, or with another cluster behind the addresses, the job
    fails, and the result has the steps until then. A cluster's identity is kept only from its stored settings.
    """
    typed = run.job.input.get("connection")
    cluster = run.job.cluster
    try:
        target = cluster if typed is None else _unpacked(cluster, typed)
        if target is None or (cluster is not None and cluster.removed_at is not None):
            raise JobFailed(JobErrorCode.WITHOUT_CLUSTER)
        with own_admin(target.connection()) as admin:
            return _test(run, target, admin, keep=typed is None)
    finally:
        _forget_secrets(run.job.pk)


def mode_of(versions: ApiVersions) -> Mode:
    """KRaft if any broker offers DescribeQuorum, ZooKeeper if those that answered do not, unknown if none answered."""
    if not versions.brokers:
        return Mode.UNKNOWN
    offered = any(DESCRIBE_QUORUM in keys for keys in versions.brokers.values())
    return Mode.KRAFT if offered else Mode.ZOOKEEPER


def _test(run: Run, target: Cluster, admin: KafkaAdmin, *, keep: bool) -> dict[str, Any]:
    steps = Steps(run)
    connection = target.connection()
    reach_addresses(steps, connection)
    described = _first_answer(steps, target, admin)
    reach_brokers(steps, connection.security, described.brokers)
    steps.begin("versions", "What the brokers speak", 0.6)
    versions = admin.api_versions(deadline=run.kafka_deadline())
    problems = _unanswered(described, versions)
    mode = mode_of(versions)
    quorum = None
    if mode == Mode.KRAFT:
        steps.end("ok", "Brokers in KRaft mode answer.", problems)
        steps.begin("quorum", "Active controller", 0.7)
        quorum = _quorum(admin, run, steps, problems)
    elif mode == Mode.ZOOKEEPER:
        problems.append(message_text(ClusterErrorCode.WITH_ZOOKEEPER))
        steps.end("warning", problems[-1])
    else:
        steps.end("critical", message_text(JobErrorCode.NO_VERSIONS), problems)
    problems += permissions(steps, admin, described.brokers)
    if keep:
        try:
            with run.write():
                learn_identity("jobs", target.pk, kafka_id=described.cluster_id, mode=mode)
        except IdentityChanged as error:  # it was learned by somebody else since the first look
            raise JobFailed(str(error)) from error
    problems += [each for step in steps.rows if step["key"] == "listeners" for each in step["items"]]
    return {"steps": steps.rows, **_facts(described, mode, quorum, problems)}


def _first_answer(steps: Steps, target: Cluster, admin: KafkaAdmin) -> ClusterDescription:
    """The brokers, as the first one tells them; who else answers than before fails the job. Raises KafkaFailure."""
    login = "SASL" in target.security_protocol
    words = f"as {target.sasl_username} with {target.sasl_mechanism}"
    if login:
        steps.begin("sasl", "Login", 0.3)
    else:
        steps.begin("kafka", "Kafka answers", 0.3)
    try:
        described = admin.describe_cluster(deadline=steps.run.kafka_deadline())
    except KafkaFailure as failure:
        if login and not isinstance(failure, AuthenticationFailed):
            steps.end(
                "unknown",
                message_text(JobErrorCode.LOGIN_UNANSWERED, user=target.sasl_username, mechanism=target.sasl_mechanism),
            )
            steps.begin("kafka", "Kafka answers", 0.3)
        steps.end("critical", str(failure))
        raise
    if login:
        steps.end("ok", f"Logged in {words}.")
        steps.begin("kafka", "Kafka answers", 0.4)
    try:
        check_identity(target, described.cluster_id)
    except IdentityChanged as error:
        steps.end("critical", str(error))
        raise JobFailed(str(error)) from error
    steps.end("ok", f"It is the Kafka cluster {described.cluster_id}.")
    return described


def _unanswered(described: ClusterDescription, versions: ApiVersions) -> list[str]:
    problems = [f"Broker {broker}: {error.text}" for broker, error in sorted(versions.errors.items())]
    asked = versions.brokers.keys() | versions.errors.keys()
    problems += [
        message_text(JobErrorCode.NOT_ASKED, broker=b.id, address=f"{b.host}:{b.port}")
        for b in described.brokers
        if b.id not in asked
    ]
    problems += [message_text(JobErrorCode.TAKES_NO_PART, broker=b.id) for b in described.brokers if b.fenced]
    return problems


def _quorum(admin: KafkaAdmin, run: Run, steps: Steps, problems: list[str]) -> Quorum | None:
    try:
        quorum = admin.quorum(deadline=run.kafka_deadline())
    except KafkaFailure as failure:
        problems.append(message_text(JobErrorCode.QUORUM_UNREAD, why=failure))
        steps.end("warning", problems[-1])
        return None
    voters = listed([str(voter.id) for voter in quorum.voters])
    several = f"the voters are {voters}" if len(quorum.voters) > 1 else f"{voters} is the only voter"
    steps.end("ok", f"Controller {quorum.leader_id} is active; {several}.")
    return quorum


def _facts(described: ClusterDescription, mode: Mode, quorum: Quorum | None, problems: list[str]) -> dict[str, Any]:
    brokers = sorted(described.brokers, key=lambda broker: broker.id)
    return {
        "kafka_id": described.cluster_id,
        "mode": mode.value,
        "brokers": [_broker(broker) for broker in brokers],
        "racks": sorted({broker.rack for broker in brokers if broker.rack is not None}),
        "brokers_without_rack": sum(broker.rack is None for broker in brokers),
        "controller": quorum.leader_id if quorum else None,
        "voters": sorted(voter.id for voter in quorum.voters) if quorum else None,
        "problems": problems,
    }


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "fenced": broker.fenced,
    }


def _packed(cluster: Cluster, name: str) -> Any:
    field = cluster._meta.get_field(name)
    value = field.sealed(cluster) if isinstance(field, EncryptedTextField) else cluster.__dict__[name]
    return value.ciphertext if isinstance(value, Sealed) else value


def _unpacked(cluster: Cluster | None, packed: Mapping[str, Any]) -> Cluster:
    tried = Cluster(name=cluster.name if cluster else "The cluster")
    if cluster is not None:
        tried.pk, tried.kafka_id = cluster.pk, cluster.kafka_id
    for name, value in packed.items():
        secret = isinstance(Cluster._meta.get_field(name), EncryptedTextField)
        setattr(tried, name, Sealed(value) if secret and value else value)
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
    register(Kind(KIND, connection_test, deadline_s=DEADLINE_S, attempts=1, forget=_forget_secrets))
