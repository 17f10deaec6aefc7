"""Configs that are not Kafka's defaults, as the pages of topics and brokers list them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.monitoring.models import ConfigSource

_SOURCES: Mapping[str, str] = dict(ConfigSource.choices)


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """Config key with its value and source. ``value`` is None for a sensitive config, which Kafka does not return."""

    key: str
    value: str | None
    source: str

    @property
    def source_words(self) -> str:
        return source_words(self.source)

    @property
    def own(self) -> bool:
        """Set on the topic or broker itself, not inherited."""
        return self.source in (ConfigSource.TOPIC, ConfigSource.BROKER)


def config_rows(config: Mapping[str, Sequence[str | None]] | None) -> list[ConfigRow]:
    """Return the rows, those set on the resource itself first, then by key; [] for a config that was not read."""
    rows = [ConfigRow(key, value, str(source)) for key, (value, source) in (config or {}).items()]
    return sorted(rows, key=lambda row: (not row.own, row.key))


def source_words(source: str) -> str:
    return _SOURCES.get(source, source)
