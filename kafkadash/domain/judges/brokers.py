"""Brokers that are down or away, their leaders and their versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from kafkadash.domain.facts import Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.words import are
from kafkadash.domain.wording import capital, count, listed

EMPTY_BROKER_WARNS = timedelta(days=1)
"""A broker that left and holds no replica was taken out on purpose; that is worth a warning for a day."""

SKEW_MIN_PARTITIONS = 50
SKEW_PERCENT = 20.0
"""Leaders of a broker above or below the mean, in percent of it; on few partitions a percentage says nothing."""

UNSEEN = "unseen"
"""Scope of brokers that hold replicas but were never alive since the cluster is watched."""


def broker_down(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    down = [b for b in facts.brokers if b.away and b.replicas]
    for broker in down:
        how = "fenced: registered, but it sends no heartbeat" if broker.fenced and not broker.gone else "not registered"
        detail = f"The controller has it {how}" if facts.kraft else f"It is {how.split(':', maxsplit=1)[0]}"
        if broker.silent:
            detail = f"The cluster still lists it as alive · {count(broker.leaders, 'partition')} led by it not served"
        yield Finding(
            FindingKind.BROKER_DOWN,
            f"Broker {broker.id} {'does not answer' if broker.silent else 'is down'} and hosts "
            f"{count(broker.replicas, 'replica')}.",
            f"has broker {broker.id} {'that does not answer' if broker.silent else 'down'}",
            at,
            scope=str(broker.id),
            detail=detail,
            value=broker.replicas,
            unit="replicas",
            threshold=0,
            measured=count(broker.replicas, "replica"),
            limit="on a broker that is down",
            since=broker.since,
        )
    unseen = (facts.brokers_gone or 0) - sum(b.gone for b in down)
    if unseen > 0:
        yield Finding(
            FindingKind.BROKER_DOWN,
            f"{count(unseen, 'broker')} {are(unseen)} down and {'hosts' if unseen == 1 else 'host'} replicas.",
            f"has {count(unseen, 'broker')} down",
            at,
            scope=UNSEEN,
            detail="never seen alive since the cluster is watched",
            value=unseen,
            unit="brokers",
            threshold=0,
            measured=count(unseen, "broker"),
            limit="limit 0",
        )


def broker_away(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker in facts.brokers:
        recently = broker.since is not None and now - broker.since < EMPTY_BROKER_WARNS
        if broker.away and not broker.replicas and (not broker.gone or recently):
            yield Finding(
                FindingKind.BROKER_AWAY,
                f"Broker {broker.id} {'does not answer' if broker.silent else 'is away'}; no replica is hosted there.",
                f"misses broker {broker.id}, which hosts nothing",
                at,
                scope=str(broker.id),
                detail="no longer registered"
                if broker.gone
                else "the cluster still lists it as alive"
                if broker.silent
                else "fenced: registered, but it sends no heartbeat",
                value=0,
                unit="replicas",
                measured="0 replicas",
                limit="on a broker that is away",
                since=broker.since,
            )


def leader_skew(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    """Nothing while a broker is away: its leaders are elsewhere, and that is what the finding about it says."""
    hosting = [b for b in facts.brokers if b.replicas]
    if (facts.partitions or 0) < SKEW_MIN_PARTITIONS or len(hosting) < 2 or any(b.away for b in hosting):
        return
    mean = sum(b.leaders for b in hosting) / len(hosting)
    # Within one leader of the mean no other spread would be better.
    uneven = [b for b in hosting if mean and not math.floor(mean) <= b.leaders <= math.ceil(mean)]
    worst = max(uneven, key=lambda b: (abs(b.leaders - mean), -b.id), default=None)
    if worst is None:
        return
    skew = 100 * (worst.leaders - mean) / mean
    if abs(skew) >= SKEW_PERCENT:
        more = "more" if skew > 0 else "fewer"
        yield Finding(
            FindingKind.LEADER_SKEW,
            f"Broker {worst.id} leads {abs(skew):.0f} % {more} partitions than the mean of all brokers.",
            f"has uneven leaders: broker {worst.id} leads {abs(skew):.0f} % {more} than the mean",
            at,
            detail=f"{count(worst.leaders, 'leader')}, the mean is {mean:,.1f}",
            value=round(skew, 1),
            unit="%",
            threshold=SKEW_PERCENT,
            measured=f"{'+' if skew > 0 else '−'}{abs(skew):.0f} %",
            limit=f"of the mean, limit {SKEW_PERCENT:.0f} %",
        )


def mixed_versions(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    releases = Counter(b.release for b in facts.brokers if b.release and not b.away)
    if len(releases) > 1:
        parts = [f"{release} on {count(number, 'broker')}" for release, number in sorted(releases.items())]
        yield Finding(
            FindingKind.MIXED_VERSIONS,
            f"The brokers run {len(releases)} different versions of Kafka.",
            f"runs {len(releases)} versions of Kafka at once",
            at,
            detail=f"{capital(listed(parts))}, as far as API versions tell",
            value=len(releases),
            unit="versions",
            threshold=1,
            measured=f"{len(releases)} versions",
            limit="limit 1",
        )
