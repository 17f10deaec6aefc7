"""Configuration of playground nodes: small, quick to start, quick to notice a dead broker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.playground.security import Secured

# Values that differ from Kafka's defaults; on controllers too, where sessions and rebalancing are decided.
COMMON: Mapping[str, object] = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "initial.broker.registration.timeout.ms": 120000,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "log.cleaner.threads": 1,
    "log.cleaner.dedupe.buffer.size": 2097152,
    "replica.lag.time.max.ms": 3000,
    "log.segment.bytes": 16777216,
    "log.retention.check.interval.ms": 15000,
    "log.segment.delete.delay.ms": 1000,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
BROKER: Mapping[str, object] = {
    "inter.broker.listener.name": "PLAINTEXT",
    "num.replica.fetchers": 1,
    "replica.fetch.wait.max.ms": 200,
    "num.recovery.threads.per.data.dir": 1,
    "controlled.shutdown.enable": "true",
}


def node_properties(
    *,
    node_id: int,
    broker_port: int | None,
    controller_port: int | None,
    rack: str | None,
    log_dirs: list[Path],
    metadata_dir: Path,
    controller_ports: list[int],
    brokers: int,
    secured: Secured | None = None,
    secured_ports: Mapping[str, int] | None = None,
) -> str:
    """The properties file of one node. A node with both ports is a combined broker and controller."""
    listeners = []
    advertised = []
    roles = []
    values: dict[str, object] = {"node.id": node_id, **COMMON}
    if broker_port is not None:
        roles.append("broker")
        listeners.append(f"PLAINTEXT://{LOOPBACK}:{broker_port}")
        values.update(BROKER)
        if rack is not None:
            values["broker.rack"] = rack
    if controller_port is not None:
        roles.append("controller")
        listeners.append(f"CONTROLLER://{LOOPBACK}:{controller_port}")
    advertised += listeners
    if secured is not None:
        values |= secured.properties()
        values["listener.security.protocol.map"] = ",".join(
            [
                str(COMMON["listener.security.protocol.map"]),
                *(f"{name}:{listener.protocol}" for name, listener in secured.listeners.items()),
            ]
        )
        for name, port in (secured_ports or {}).items():
            listeners.append(f"{name}://{LOOPBACK}:{port}")
            advertised.append(f"{name}://{secured.listeners[name].advertised_host or LOOPBACK}:{port}")
    values["process.roles"] = ",".join(roles)
    values["listeners"] = ",".join(listeners)
    values["advertised.listeners"] = ",".join(advertised)
    values["controller.quorum.bootstrap.servers"] = ",".join(f"{LOOPBACK}:{port}" for port in controller_ports)
    values["log.dirs"] = ",".join(str(folder) for folder in log_dirs)
    values["metadata.log.dir"] = metadata_dir
    values["offsets.topic.replication.factor"] = min(3, brokers)
    return "".join(f"{key}={_escaped(str(value))}\n" for key, value in values.items())


def _escaped(value: str) -> str:
    """Java reads properties as ISO-8859-1 with backslash escapes, here UTF-16 units for everything beyond ASCII."""
    units = value.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)
