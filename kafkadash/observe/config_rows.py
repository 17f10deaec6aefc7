"""Configs that are not Kafka's defaults, as the pages of topics and brokers list them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.observe.models import ConfigSource

_SOURCES: Mapping[str, str] = dict(ConfigSource.choices)


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One key with its value and where that comes from. ``value`` is None where Kafka keeps it secret."""

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
    """Those set on the thing itself first, then by key; none for a config that was not read."""
    rows = [ConfigRow(key, value, str(source)) for key, (value, source) in (config or {}).items()]
    return sorted(rows, key=lambda row: (not row.own, row.key))


def source_words(source: str) -> str:
    return _SOURCES.get(source, source)
