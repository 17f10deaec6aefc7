"""Partitions that a person chooses: typed as ``orders-3``, or ticked on the page of a topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.monitoring.models import TopicState

MOST_PARTITIONS = 1000
_SHOWN = 60

Selection = Mapping[str, Sequence[int]]


def read_selection(cluster: Cluster, typed: str) -> Selection | CodedMessage:
    """Return topic → partitions of names like ``orders-3``, apart by spaces, commas or lines; or what is wrong."""
    names = typed.replace("\0", " ").replace(",", " ").split()
    if not names:
        return coded(ElectionErrorCode.PARTITIONS_MISSING)
    if len(names) > MOST_PARTITIONS:
        return coded(ElectionErrorCode.TOO_MANY_PARTITIONS, partitions=len(names), most=MOST_PARTITIONS)
    found: dict[str, set[int]] = defaultdict(set)
    for name in names:
        topic, hyphen, number = name.rpartition("-")
        partition = read_whole_number(number)
        if not hyphen or not topic or partition is None:
            return coded(ElectionErrorCode.PARTITION_FORMAT, typed=name[:_SHOWN])
        found[topic].add(partition)
    return _check_selection(cluster, {topic: sorted(own) for topic, own in found.items()})


def entitle_selection(chosen: Selection) -> str:
    """Return the title of a change that elects the preferred leaders of these partitions."""
    return f"Elect preferred leaders of {choose_plural('# partition|# partitions', sum(map(len, chosen.values())))}"


def _check_selection(cluster: Cluster, selection: Selection) -> Selection | CodedMessage:
    """Return the selection, or the first partition that the cluster does not have. One query."""
    rows = TopicState.objects.filter(cluster=cluster, name__in=selection)
    counts = dict(rows.values_list("name", "partition_count"))
    for topic, numbers in selection.items():
        for number in numbers:
            if number >= counts.get(topic, 0):
                name = f"{topic}-{number}"[:_SHOWN]
                return coded(ElectionErrorCode.PARTITION_UNKNOWN, cluster=cluster.name, partition=name)
    return selection
