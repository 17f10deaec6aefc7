"""API versions and features: how the cluster keeps its metadata, what all brokers can do, how new they are at least."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.versions import at_least, common_apis, common_features, is_kraft
from kafkadash.kafka.port import ApiVersions
from kafkadash.observe.collectors.metadata import store_figures
from kafkadash.observe.collectors.reading import Asking, Reading, moment, refuse_nothing, silent
from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, Capabilities


def read(asking: Asking) -> Reading:
    """Asks every broker. With brokers of different age the oldest one speaks for the cluster."""
    asking.step()
    answer = asking.admin.api_versions(deadline=asking.deadline)
    refuse_nothing(answer.brokers, answer.errors)
    cluster, taken_at = asking.cluster, moment(answer.taken_at)
    releases = {broker: at_least(offered) for broker, offered in answer.brokers.items()}
    modes = {Mode.KRAFT if is_kraft(offered) else Mode.ZOOKEEPER for offered in answer.brokers.values()}
    known = {
        b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster).only("broker_id", "release", "gone_at")
    }
    changed = {
        known[broker].pk: {"release": release}
        for broker, release in sorted(releases.items())
        if broker in known and known[broker].release != release
    }
    # A broker that did not answer is what it was the last time.
    others = {b.broker_id: b.release for b in known.values() if b.release and b.gone_at is None}
    oldest = min({**others, **releases}.values(), key=_release_order, default="")
    capable = _capabilities(answer, {**others, **releases})

    def write(_: Stamp) -> None:
        one_writer_of_shapes(cluster.pk)
        if len(modes) == 1:
            _learn_mode(cluster, modes.pop())
        if releases:
            store_figures(cluster, {"kafka_version": f"{oldest} or newer" if oldest else ""})
            _store_capabilities(cluster, capable, taken_at)
        update_rows(BrokerState, changed)

    return Reading(
        taken_at=taken_at,
        rows=len(answer.brokers),
        write=write,
        not_answered=sorted(silent(answer.errors)),
        errors=[f"broker {broker}: {error.text}" for broker, error in sorted(answer.errors.items())],
    )


def _capabilities(answer: ApiVersions, releases: Mapping[int, str]) -> dict[str, object]:
    """The packed columns of ``Capabilities``."""
    newest = max(answer.features.values(), key=lambda told: -1 if told.epoch is None else told.epoch, default=None)
    supported = common_features([told.supported for told in answer.features.values()])
    finalized = newest.finalized if newest else {}
    return {
        "apis": {str(key): list(versions) for key, versions in common_apis(list(answer.brokers.values())).items()},
        "features": {
            name: {"finalized": finalized.get(name), "supported": list(supported[name]) if name in supported else None}
            for name in sorted({*supported, *finalized})
        },
        "releases": {str(broker): release for broker, release in sorted(releases.items())},
    }


def _store_capabilities(cluster: Cluster, capable: Mapping[str, object], taken_at: datetime) -> None:
    known = Capabilities.objects.filter(cluster=cluster).values(*capable).first()
    if known != capable:
        Capabilities.objects.update_or_create(cluster=cluster, defaults={**capable, "changed_at": taken_at})


def _learn_mode(cluster: Cluster, mode: Mode) -> None:
    if cluster.mode != mode:
        Cluster.objects.filter(pk=cluster.pk).update(mode=mode)


def _release_order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part)
