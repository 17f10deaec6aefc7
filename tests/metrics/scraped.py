"""A scrape as Prometheus reads it, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.test import Client, override_settings
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Scrape:
    """Samples by name and labels."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    @classmethod
    def read(cls, content: bytes) -> Scrape:
        return cls.of(text_string_to_metric_families(content.decode()))

    @classmethod
    def of(cls, families: Iterable[Metric]) -> Scrape:
        found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in families:
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in found, f"{sample.name} {sample.labels} is there twice"
                found[key] = sample.value
        return cls(found)

    @property
    def labels(self) -> dict[str, set[tuple[str, ...]]]:
        """Names of the labels of each series."""
        found: dict[str, set[tuple[str, ...]]] = {}
        for name, labels in self.samples:
            found.setdefault(name, set()).add(tuple(sorted(label for label, _ in labels)))
        return found

    def get(self, name: str, **labels: str) -> float | None:
        """None where it is absent."""
        return self.samples.get((f"kafkadash_{name}", frozenset(labels.items())))

    def find(self, name: str, **labels: str) -> list[dict[str, str]]:
        """Return the labels of all samples that have at least these."""
        wanted = labels.items()
        return [dict(own) for key, own in self.samples if key == f"kafkadash_{name}" and own >= wanted]


def scrape_page(**headers: str) -> Scrape:
    """Scrape as a client of an allowed network."""
    with override_settings(METRICS_NETWORKS=["127.0.0.1"]):
        response = Client().get("/metrics", headers=headers)
    assert response.status_code == 200
    return Scrape.read(response.content)
