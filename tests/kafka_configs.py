"""Configs of a real Kafka, set and read quicker than by Kafka's tool, which starts a JVM each time."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkadash.devtools.playground.cluster import KafkaPlayground


def alter(playground: KafkaPlayground, owner: str | int, **configs: str | None) -> None:
    """Sets configs of a topic or a broker, deletes those that are None; underscores in the names stand for dots.

    Raises KafkaException where the cluster refuses.
    """
    entries = [
        ConfigEntry(
            name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in configs.items()
    ]
    kind = ResourceType.TOPIC if isinstance(owner, str) else ResourceType.BROKER
    resource = ConfigResource(kind, str(owner), incremental_configs=entries)
    admin = _admin(playground)  # calls of a client without a name would end with it
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=30)


def applied(playground: KafkaPlayground, broker: int, name: str) -> str | None:
    """Return the config's value as the broker itself tells it; None where it has none."""
    admin = _admin(playground)
    [future] = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))]).values()
    entry = future.result(timeout=30).get(name)
    return None if entry is None else entry.value


def _admin(playground: KafkaPlayground) -> AdminClient:
    return AdminClient({"bootstrap.servers": playground.bootstrap})
