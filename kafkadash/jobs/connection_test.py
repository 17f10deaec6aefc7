"""The job "connection_test": reach a cluster as the collectors do, and say what answered and what did not."""

from __future__ import annotations

from typing import Any

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.clusters.services import IdentityChanged, check_identity, learn_identity
from kafkadash.jobs.kinds import Kind, register
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.kafka.connect import admin_for
from kafkadash.kafka.port import ApiVersions, Broker, ClusterDescription, KafkaAdmin, KafkaFailure, Quorum

KIND = "connection_test"
DEADLINE_S = 45.0

# DescribeQuorum (KIP-595): brokers in KRaft mode offer it, brokers with ZooKeeper do not.
DESCRIBE_QUORUM = 55


def connection_test(run: Run) -> dict[str, Any]:
    """Ask for the brokers, what they speak and who leads the controllers; keep the cluster's identity.

    The result: kafka_id, mode, brokers (id, host, port, rack, fenced), racks (names, sorted), brokers_without_rack,
    controller (id of the active one, None if not known), voters, and problems, a list of sentences. What fails in
    part is a problem; without brokers, or with another cluster behind the addresses, the job fails.
    """
    cluster = run.job.cluster
    if cluster is None:
        raise JobFailed("The cluster to test is not registered any more.")
    run.step(0.0, f"connecting to {cluster.bootstrap_servers}")
    admin = admin_for(cluster.connection())
    described = admin.describe_cluster(deadline=run.kafka_deadline())
    _same_cluster(cluster, described.cluster_id)
    run.step(0.4, f"asking {len(described.brokers)} brokers what they speak")
    versions = admin.api_versions(deadline=run.kafka_deadline())
    problems = _unanswered(described, versions)
    mode = mode_of(versions)
    quorum = None
    if mode == Mode.KRAFT:
        run.step(0.7, "asking who leads the controllers")
        quorum = _quorum(admin, run, problems)
    run.step(0.9, "keeping what was learned")
    try:
        with run.write():
            learn_identity("jobs", cluster.pk, kafka_id=described.cluster_id, mode=mode)
    except IdentityChanged as error:  # it was learned by somebody else since the first look
        raise JobFailed(str(error)) from error
    return _result(described, mode, quorum, problems)


def mode_of(versions: ApiVersions) -> Mode:
    """KRaft if any broker offers DescribeQuorum, ZooKeeper if those that answered do not, unknown if none answered."""
    if not versions.brokers:
        return Mode.UNKNOWN
    offered = any(DESCRIBE_QUORUM in keys for keys in versions.brokers.values())
    return Mode.KRAFT if offered else Mode.ZOOKEEPER


def _same_cluster(cluster: Cluster, kafka_id: str) -> None:
    try:
        check_identity(cluster, kafka_id)
    except IdentityChanged as error:
        raise JobFailed(str(error)) from error


def _unanswered(described: ClusterDescription, versions: ApiVersions) -> list[str]:
    problems = [f"Broker {broker}: {error.message}" for broker, error in sorted(versions.errors.items())]
    asked = versions.brokers.keys() | versions.errors.keys()
    problems += [f"Broker {b.id} at {b.host}:{b.port} was not asked." for b in described.brokers if b.id not in asked]
    problems += [f"Broker {b.id} is fenced: it takes part in nothing." for b in described.brokers if b.fenced]
    return problems


def _quorum(admin: KafkaAdmin, run: Run, problems: list[str]) -> Quorum | None:
    try:
        return admin.quorum(deadline=run.kafka_deadline())
    except KafkaFailure as failure:
        problems.append(f"The controller quorum could not be read: {failure}")
        return None


def _result(described: ClusterDescription, mode: Mode, quorum: Quorum | None, problems: list[str]) -> dict[str, Any]:
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


def make_known() -> None:
    register(Kind(KIND, connection_test, deadline_s=DEADLINE_S, attempts=2))
