"""API versions: how the cluster keeps its metadata, and how new its software is at least."""

from __future__ import annotations

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.versions import at_least, is_kraft
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import ClusterState


def read(asking: Asking) -> Reading:
    """Asks every broker. With brokers of different age the oldest one speaks for the cluster."""
    asking.step()
    answer = asking.admin.api_versions(deadline=asking.deadline)
    releases = {at_least(offered) for offered in answer.brokers.values()}
    oldest = min(releases, key=_release_order, default="")
    modes = {Mode.KRAFT if is_kraft(offered) else Mode.ZOOKEEPER for offered in answer.brokers.values()}

    def write(_: Stamp) -> None:
        if len(modes) == 1:
            Cluster.objects.filter(pk=asking.cluster.pk).update(mode=modes.pop())
        if releases:
            ClusterState.objects.update_or_create(
                cluster=asking.cluster, defaults={"kafka_version": f"{oldest} or newer" if oldest else ""}
            )

    return Reading(
        taken_at=moment(answer.taken_at),
        rows=len(answer.brokers),
        write=write,
        not_answered=sorted(answer.errors),
        errors=[f"broker {broker}: {error.message}" for broker, error in sorted(answer.errors.items())],
    )


def _release_order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part)
