"""Which maintenance window or silence covers which finding."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.findings.facts import ClusterFacts, PartitionFacts
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.quiet import QuietRule, find_quiet
from tests.factories import NOW

END = NOW + timedelta(hours=1)
FACTS = ClusterFacts(
    under_replicated=PartitionFacts(2, absent=frozenset({3})), at_min_isr=PartitionFacts(2, absent=frozenset({2, 3}))
)
OF_CLUSTER = QuietRule("cluster", END)
OF_BROKER = QuietRule("broker", END, brokers=frozenset({3}))
OF_RACK = QuietRule("rack", END, brokers=frozenset({2, 3}))


def silence(kind: str = "", *subjects: str) -> QuietRule[str]:
    return QuietRule("silence", END, silence=True, kind=kind, subjects=frozenset(subjects))


@pytest.mark.parametrize(
    ("kind", "scope", "covered_by"),
    [
        (FindingKind.BROKER_DOWN, "3", {"cluster", "broker", "rack"}),
        (FindingKind.BROKER_DOWN, "2", {"cluster", "rack"}),
        (FindingKind.BROKER_DOWN, "more", {"cluster"}),
        (FindingKind.BROKER_DOWN, "1", {"cluster"}),
        (FindingKind.FAILED_DIRECTORY, "3:/data", {"cluster", "broker", "rack"}),
        (FindingKind.UNDER_REPLICATED, "", {"cluster", "broker", "rack"}),
        (FindingKind.AT_MIN_ISR, "", {"cluster", "rack"}),
        (FindingKind.LEADER_SKEW, "1", {"cluster", "broker", "rack"}),
        (FindingKind.OFFLINE, "", {"cluster"}),
        (FindingKind.UNDER_MIN_ISR, "", {"cluster"}),
        (FindingKind.QUORUM_MARGIN, "", {"cluster"}),
        (FindingKind.CONSUMER_LAG, "3", {"cluster"}),
        (FindingKind.UNREACHABLE, "", {"cluster"}),
        (FindingKind.RUN_TROUBLE, "3:stuck", set()),
        (FindingKind.ANOTHER_CLUSTER, "", set()),
        (FindingKind.PIPELINE_STILL, "", set()),
    ],
)
def test_window__of_a_cluster_broker_or_rack__covers_what_is_expected_of_it(
    kind: FindingKind, scope: str, covered_by: set[str]
) -> None:
    rules = (OF_CLUSTER, OF_BROKER, OF_RACK)
    assert {found for rule in rules if (found := find_quiet(kind, scope, FACTS, [rule]))} == covered_by


def test_window__of_a_broker__covers_no_partitions_of_which_nobody_knows_what_is_missing() -> None:
    facts = replace(FACTS, under_replicated=PartitionFacts(2))
    assert find_quiet(FindingKind.UNDER_REPLICATED, "", facts, [OF_BROKER]) is None


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        (silence("broker-down"), True),
        (silence("broker-down", "3"), True),
        (silence("", "3"), True),
        (silence("broker-down", "2"), False),
        (silence("disk-full"), False),
    ],
)
def test_silence__of_a_kind_a_subject_or_both__covers_only_that(rule: QuietRule[str], covered: bool) -> None:
    assert (find_quiet(FindingKind.BROKER_DOWN, "3", FACTS, [rule]) is not None) == covered


def test_silence__of_a_broker__covers_its_directories_and_no_group_of_that_name() -> None:
    rule = silence("", "3")
    assert find_quiet(FindingKind.DISK_FULL, "3:/data", FACTS, [rule]) == "silence"
    assert find_quiet(FindingKind.CONSUMER_LAG, "3:orders", FACTS, [rule]) is None


def test_rules__that_overlap__cover_until_the_last_one_ends_and_windows_come_first() -> None:
    later = QuietRule("later", END + timedelta(hours=1), brokers=frozenset({3}))
    longest = replace(silence("broker-down"), ends_at=END + timedelta(days=1))
    assert find_quiet(FindingKind.BROKER_DOWN, "3", FACTS, [OF_BROKER, later, longest]) == "later"
    assert find_quiet(FindingKind.BROKER_DOWN, "3", FACTS, [OF_BROKER, longest]) == "broker"
