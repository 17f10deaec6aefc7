"""Comparison of the brokers' configs: keys whose values should be the same everywhere, and are not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from kafkadash.monitoring.models import ConfigSource

MOST_KEYS, MOST_VALUES, LONGEST_VALUE = 200, 20, 500
"""Bounds of what is stored of one cluster; values are compared in full and shortened afterwards."""

Packed = Mapping[str, Sequence[str | None]]
Drift = dict[str, list[Any]]
_ValueOfSource = tuple[str | None, str]

_OF_ONE_BROKER = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "advertised.port",
        "broker.id",
        "broker.rack",
        "cordoned.log.dirs",
        "follower.replication.throttled.rate",
        "host.name",
        "leader.replication.throttled.rate",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "port",
        "process.roles",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
    }
)
"""Keys that belong to one broker: its identity, its place, its disks, its certificate, and throttles of moves."""

_OF_LISTENER = "listener.name."


def is_of_one_broker(key: str) -> bool:
    """Return whether brokers may differ in this key, also in the form ``listener.name.NAME.KEY``."""
    plain = key.split(".", 3)[-1] if key.startswith(_OF_LISTENER) else key
    return plain in _OF_ONE_BROKER


def compare_configs(
    configs: Mapping[int, Packed],
    catalog: Mapping[str, Sequence[object]],
    before: Drift,
    taken_at: datetime,
    unread: Collection[int] = (),
) -> Drift:
    """Return the keys in which brokers differ, as ``ConfigDrift.keys``; ``before`` tells since when.

    ``configs`` have no defaults of Kafka: these are in the ``catalog``. A broker of which no value is known, because it
    is sensitive, is not compared. Where Kafka's default is no value, a broker without one is "not set". While a broker
    that differed is ``unread``, and its default is not known any more, it counts as it was.
    """
    found: Drift = {}
    for key in sorted({key for config in configs.values() for key in config}):
        _, _, sensitive, inherited = catalog.get(key, (0, True, False, None))
        if sensitive or is_of_one_broker(key):
            continue
        default = inherited if isinstance(inherited, list) and inherited[1] == ConfigSource.DEFAULT else (None, "")
        is_default = default[1] == ConfigSource.DEFAULT
        groups: dict[_ValueOfSource, list[int]] = {}
        for broker, config in sorted(configs.items()):
            value, source = config.get(key, default)
            if value is not None or (key not in config and is_default):
                groups.setdefault((value, str(source)), []).append(broker)
        if len({value for value, _ in groups}) > 1:
            since = before.get(key, [round(taken_at.timestamp(), 3)])[0]
            found[key] = [since, _pack_values(groups)]
        elif key in before and {broker for _, _, brokers in before[key][1] for broker in brokers} & {*unread}:
            found[key] = before[key]
        if len(found) == MOST_KEYS:
            break
    return found


def _pack_values(groups: Mapping[_ValueOfSource, list[int]]) -> list[list[Any]]:
    largest_first = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
    return [
        [None if value is None else value[:LONGEST_VALUE], source, brokers]
        for (value, source), brokers in largest_first[:MOST_VALUES]
    ]
