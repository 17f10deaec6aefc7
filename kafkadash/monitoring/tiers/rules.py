"""Tiered topics (KIP-405): older records are in remote storage, and the disks of brokers hold the newer ones."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.kafka.config_values import REMOTE_STORAGE

Config = Mapping[str, tuple[str | None, str]]


def is_tiered(config: Config | None) -> bool:
    """Return whether segments of the topic go to remote storage; False where its configs were not read."""
    return ((config or {}).get(REMOTE_STORAGE) or ("false", ""))[0] == "true"
