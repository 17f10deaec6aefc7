"""The steps of a connection test, each with its state and its sentence, stored as they happen.

A step is {key, title, state, sentence, items}; ``state`` is "running", or a state of the pages: ok, warning, critical,
unknown. ``items`` are sentences about single addresses or permissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkadash.domain.messages import join_messages, message_text
from kafkadash.domain.wording import count, listed
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.kafka.connection import Connection, Security
from kafkadash.kafka.hidden_topics import hidden_sentence, hidden_topics
from kafkadash.kafka.port import Broker, KafkaAdmin, KafkaFailure, Permissions
from kafkadash.kafka.probe import Probed, Stage, is_ip, probe

MOST_ITEMS = 50

# What is not shown without a permission on the cluster.
_CLUSTER_COSTS = {
    "Describe": "reassignments, the controller quorum, disk sizes and the progress of moves stay unknown",
    "DescribeConfigs": "the brokers' configuration and throttles stay unknown",
}


class Steps:
    """Adds steps to the result of a running job; each ``begin`` is a place where a cancel or the deadline ends it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rows: list[dict[str, Any]] = []

    def begin(self, key: str, title: str, fraction: float) -> None:
        """Raises what ``Run.step`` raises."""
        self.run.step(fraction, title)
        self.rows.append({"key": key, "title": title, "state": "running", "sentence": "", "items": []})
        self.run.claim.show({"steps": self.rows})

    def end(self, state: str, sentence: str, items: Sequence[str] = ()) -> None:
        shown = list(items[:MOST_ITEMS])
        if len(items) > MOST_ITEMS:
            shown.append(f"And {len(items) - MOST_ITEMS} more.")
        self.rows[-1].update(state=state, sentence=sentence, items=shown)
        self.run.claim.show({"steps": self.rows})


def reach_addresses(steps: Steps, connection: Connection) -> None:
    """Name, TCP and TLS of the bootstrap addresses. Raises JobFailed when none of them gets through."""
    addresses = list(connection.bootstrap_servers)
    steps.begin("resolve", "Host names", 0.05)
    probed = probe(addresses, connection.security, deadline=steps.run.kafka_deadline())
    if all(is_ip(address.rpartition(":")[0]) for address in addresses):
        steps.end("ok", "The addresses are numbers: nothing to look up.")
    else:
        found = [f"{p.address.rpartition(':')[0]} is {', '.join(p.ips)}." for p in probed if p.ips]
        _end_stage(steps, probed, Stage.RESOLVE, " ".join(found))
    _stage(steps, probed, Stage.CONNECT, "TCP connection", "accepted the connection")
    if connection.security.protocol.endswith("SSL"):
        _stage(steps, probed, Stage.TLS, "TLS and certificate", "showed a certificate that is trusted")
    if all(p.failed is not None for p in probed):
        raise JobFailed(join_messages(p.why for p in probed))


def reach_brokers(steps: Steps, security: Security, brokers: Sequence[Broker]) -> None:
    """Every address that a broker gives to clients (``advertised.listeners``) must be reachable from the workers."""
    steps.begin("listeners", "Advertised listeners", 0.5)
    live = [broker for broker in brokers if not broker.fenced]
    probed = probe([_address(broker) for broker in live], security, deadline=steps.run.kafka_deadline())
    wrong = [_listener_sentence(b, p) for b, p in zip(live, probed, strict=True) if p.failed is not None]
    reachable = len(live) - len(wrong)
    if not wrong:
        named = ", ".join(_address(broker) for broker in live[:5]) + (" and so on" if len(live) > 5 else "")
        steps.end("ok", f"{_brokers(len(live))} can be reached where they say they are: {named}.")
    else:
        state = "critical" if not reachable else "warning"
        steps.end(
            state,
            message_text(JobErrorCode.LISTENERS_UNREACHABLE, reached=reachable, brokers=_brokers(len(live))),
            wrong,
        )


def permissions(steps: Steps, admin: KafkaAdmin, brokers: Sequence[Broker]) -> list[str]:
    """What the principal is missing for the pages, one sentence for each; [] when nothing is."""
    steps.begin("permissions", "Permissions", 0.85)
    try:
        granted = admin.permissions(deadline=steps.run.kafka_deadline())
    except KafkaFailure as failure:
        steps.end("unknown", message_text(JobErrorCode.RIGHTS_UNKNOWN, why=failure))
        return []
    missing = [*_missing_on_cluster(granted), *_missing_on_topics(granted)]
    missing += _hidden_topics(steps, admin, granted, brokers)
    if missing:
        steps.end(
            "warning", f"{count(len(missing), 'permission')} for what the pages show {_is(missing)} missing.", missing
        )
    else:
        topics = f" and {count(len(granted.topics), 'topic')}" if granted.topics else ""
        steps.end("ok", f"Describe and DescribeConfigs are granted on the cluster{topics}.")
    return missing


def _missing_on_cluster(granted: Permissions) -> list[str]:
    if granted.cluster is None:
        return []
    if "Describe" not in granted.cluster:
        # Without Describe Kafka tells nothing about the others.
        return [message_text(JobErrorCode.MISSING_ON_CLUSTER, permission="Describe", costs=_CLUSTER_COSTS["Describe"])]
    lacking = [name for name in _CLUSTER_COSTS if name not in granted.cluster]
    return [
        message_text(JobErrorCode.MISSING_ON_CLUSTER, permission=name, costs=_CLUSTER_COSTS[name]) for name in lacking
    ]


def _missing_on_topics(granted: Permissions) -> list[str]:
    without = sorted(name for name, may in granted.topics.items() if may is not None and "DescribeConfigs" not in may)
    if not without:
        return []
    which = "all topics" if len(without) == len(granted.topics) else _some(without)
    return [message_text(JobErrorCode.MISSING_ON_TOPICS, permission="DescribeConfigs", which=which)]


def _hidden_topics(steps: Steps, admin: KafkaAdmin, granted: Permissions, brokers: Sequence[Broker]) -> list[str]:
    """Kafka leaves topics that may not be described out of every answer but one: what lies on the disks."""
    if granted.cluster is not None and "Describe" not in granted.cluster:
        return []
    try:
        stored = admin.log_dirs([b.id for b in brokers if not b.fenced], deadline=steps.run.kafka_deadline())
        on_disk = {replica.topic for dirs in stored.brokers.values() for each in dirs for replica in each.replicas}
        hidden = hidden_topics(admin, on_disk - granted.topics.keys(), deadline=steps.run.kafka_deadline())
    except KafkaFailure:
        return []
    return [hidden_sentence(hidden, all_of_them=not granted.topics)] if hidden else []


def _stage(steps: Steps, probed: Sequence[Probed], stage: Stage, title: str, fine: str) -> None:
    if not any(p.tried(stage) for p in probed):
        return
    steps.begin(stage.value, title, 0.1 if stage is Stage.CONNECT else 0.2)
    reached = [p.address for p in probed if p.reached(stage)]
    _end_stage(steps, probed, stage, f"{listed(reached)} {fine}." if reached else "")


def _end_stage(steps: Steps, probed: Sequence[Probed], stage: Stage, fine: str) -> None:
    tried = [p for p in probed if p.tried(stage)]
    wrong = [str(p.why) for p in tried if p.failed is stage]
    if not wrong:
        steps.end("ok", fine)
    elif len(wrong) < len(tried):
        steps.end("warning", fine, wrong)
    elif len(wrong) == 1:
        steps.end("critical", wrong[0])
    else:
        steps.end("critical", message_text(JobErrorCode.NONE_GOT_THIS_FAR), wrong)


def _listener_sentence(broker: Broker, probed: Probed) -> str:
    return message_text(JobErrorCode.LISTENER_UNREACHABLE, broker=broker.id, address=probed.address, why=probed.why)


def _address(broker: Broker) -> str:
    return f"[{broker.host}]:{broker.port}" if ":" in broker.host else f"{broker.host}:{broker.port}"


def _brokers(number: int) -> str:
    return count(number, "broker")


def _some(names: Sequence[str]) -> str:
    shown = listed([f"“{name}”" for name in names[:3]]) if len(names) <= 3 else ", ".join(f"“{n}”" for n in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more topics"


def _is(things: Sequence[str]) -> str:
    return "is" if len(things) == 1 else "are"
