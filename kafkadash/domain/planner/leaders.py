"""Choosing preferred leaders so that brokers lead about as many partitions each."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence


def spread_leaders(fixed: Mapping[int, int], choices: Sequence[Sequence[int]]) -> list[int]:
    """For every partition one broker of its choices, such that no other answer is more even.

    ``fixed``: broker → partitions it leads anyhow. The first of the choices is taken where it makes no difference at
    first sight. Greedy, and then along paths from brokers that lead many to such that lead at least two less: a convex
    flow without such a path is optimal.
    """
    leads = Counter(fixed)
    chosen: list[int] = []
    for options in choices:
        _, place = min((leads[broker], place) for place, broker in enumerate(options))
        chosen.append(options[place])
        leads[options[place]] += 1
    # from → to → partitions led by the one that the other could lead, in order of their first mention
    could: defaultdict[int, defaultdict[int, dict[int, None]]] = defaultdict(lambda: defaultdict(dict))
    for partition, leader in enumerate(chosen):
        for other in choices[partition]:
            if other != leader:
                could[leader][other][partition] = None
    settled: set[int] = set()
    while open_ := [broker for broker in could if broker not in settled]:
        source = max(open_, key=lambda broker: (leads[broker], -broker))
        came_from = _reach(source, could, settled)
        target = min(came_from, key=lambda broker: (leads[broker], broker))
        if leads[target] > leads[source] - 2:
            # What can be reached from here leads as many or one less, so nothing there can be improved either.
            settled.update(came_from)
            continue
        leads[source] -= 1
        leads[target] += 1
        while target != source:
            before = came_from[target]
            partition = next(iter(could[before][target]))
            for other in choices[partition]:
                could[before][other].pop(partition, None)
                if other != target:
                    could[target][other][partition] = None
            chosen[partition] = target
            target = before
    return chosen


def _reach(source: int, could: Mapping[int, Mapping[int, Mapping[int, None]]], settled: set[int]) -> dict[int, int]:
    """Broker → the one before it on a shortest way from ``source``, for all that can be reached."""
    came_from = {source: source}
    queue = deque([source])
    while queue:
        broker = queue.popleft()
        for other, partitions in sorted(could.get(broker, {}).items()):
            if partitions and other not in came_from and other not in settled:
                came_from[other] = broker
                queue.append(other)
    return came_from
