"""What is asked for, in words, as it is stored, and as the planner gets it."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import pytest

from kafkadash.domain.planner.request import PlanRequest
from kafkadash.reassign.asked import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    FINISH,
    LEADERS,
    REPAIR_RACKS,
    REPLACE,
    ROLLBACK,
    SET_RF,
    Asked,
)

FIRST_RELEASE = {
    "mode": "drain",
    "brokers": [3],
    "upload": "",
    "name": "",
    "ignore_racks": False,
    "accept_fewer_racks": False,
    "change_rf": False,
    "disk_limit": 0.8,
    "of": 0,
    "since": "",
}
"""As the release before wrote it, and all that it reads."""


def test_what_the_release_before_stored_is_read_and_what_it_knows_is_stored_as_before() -> None:
    asked = Asked.from_json(FIRST_RELEASE)
    assert asked == Asked(DRAIN, brokers=(3,))
    assert asked.as_json() == FIRST_RELEASE


def test_everything_that_is_asked_for_is_stored_and_read_again() -> None:
    full: dict[str, Any] = {
        "brokers": (1, 3),
        "replacements": (8, 7),
        "targets": (4, 5),
        "factor": 3,
        "topics": ("orders",),
        "pattern": "pay.*",
        "excluded": ".*-dlq",
        "eps": 0.05,
        "most_replicas": 900,
        "rebalance": True,
        "leaders": False,
    }
    asked = Asked(REPLACE, **full)
    stored = asked.as_json()
    assert Asked.from_json(stored) == asked
    assert stored["targets"] == [4, 5]
    assert Asked.from_json({**stored, "of the next release": 1}) == asked


def test_no_target_at_all_is_not_the_same_as_all_that_can() -> None:
    assert Asked.from_json(Asked(DRAIN, brokers=(3,), targets=()).as_json()).targets == ()
    assert Asked.from_json(Asked(DRAIN, brokers=(3,)).as_json()).targets is None


def test_the_planner_gets_all_of_it() -> None:
    asked = Asked(REPLACE, brokers=(1, 3), replacements=(8, 7), targets=(7, 8), pattern="pay.*", most_replicas=900)
    request = asked.request()
    assert (request.brokers, request.replacements, request.targets) == ((1, 3), (7, 8), (7, 8))
    shared = {f.name for f in fields(PlanRequest)} & {f.name for f in fields(Asked)} - {"replacements", "change_rf"}
    assert shared == {f.name for f in fields(PlanRequest)} - {"replacements", "change_rf"}
    assert all(asdict(request)[name] == asdict(asked)[name] for name in shared)


@pytest.mark.parametrize(("mode", "resizes"), [(SET_RF, True), (FINISH, True), (EXPLICIT, False), (DRAIN, False)])
def test_a_mode_that_changes_the_factor_says_so_to_whoever_approves(mode: str, resizes: bool) -> None:
    assert Asked(mode).resizes == Asked(mode).request().change_rf == resizes


def test_the_rows_of_a_rollback_are_brought() -> None:
    assert Asked(ROLLBACK, of=42).request().mode == EXPLICIT


@pytest.mark.parametrize(
    ("asked", "title", "words", "sentence"),
    [
        (
            Asked(ADD, brokers=(7, 8)),
            "Add brokers 7 and 8",
            "add 7, 8",
            "Give brokers 7 and 8 their share of the replicas. Nothing else moves.",
        ),
        (
            Asked(ADD, brokers=(7,), rebalance=True),
            "Add broker 7",
            "add 7",
            "Give broker 7 its share of the replicas. Others may move too, until all brokers hold about as many.",
        ),
        (
            Asked(DRAIN, brokers=(3,)),
            "Drain broker 3",
            "drain 3",
            "Move every replica off broker 3. Nothing else moves.",
        ),
        (
            Asked(DRAIN, brokers=(3,), topics=("orders",)),
            "Drain broker 3 of orders",
            "drain 3",
            "Move every replica of orders off broker 3. Nothing else moves.",
        ),
        (
            Asked(REPLACE, brokers=(3,), replacements=(7,)),
            "Replace broker 3 with 7",
            "replace 3 with 7",
            "Move every replica from broker 3 to broker 7. Nothing else moves.",
        ),
        (
            Asked(REPAIR_RACKS),
            "Repair racks",
            "repair racks",
            (
                "Spread the replicas of every partition of all topics evenly over the racks. Only partitions that are "
                "spread wrongly move."
            ),
        ),
        (
            Asked(SET_RF, factor=3, topics=tuple("abcdefghijkl")),
            "Set replication factor 3 of 12 topics",
            "factor 3, some topics",
            "Give every partition of 12 topics 3 replicas. Nothing else moves.",
        ),
        (
            Asked(SET_RF, factor=1, pattern="pay.*", excluded=".*-dlq"),
            "Set replication factor 1 of topics like “pay.*”, without “.*-dlq”",
            "factor 1, some topics",
            "Give every partition of topics like “pay.*”, without “.*-dlq” 1 replica. Nothing else moves.",
        ),
        (
            Asked(BALANCE, eps=0.05, leaders=False),
            "Balance replicas and disks",
            "replicas and disks",
            (
                "Even out how many replicas brokers hold and their disks to within 5 % of the mean of their rack, for "
                "all topics, with as little as that takes."
            ),
        ),
        (
            Asked(LEADERS),
            "Even out leaders",
            "leaders",
            "Even out who leads by another order of replicas. No data moves.",
        ),
        (
            Asked(FINISH, upload="0" * 64, name="plan.json"),
            "Finish plan.json",
            "plan.json",
            "Give the partitions named in plan.json the replicas that stand there, where that is not done yet.",
        ),
        (
            Asked(EXPLICIT, upload="0" * 64),
            "Reassign as given",
            "pasted",
            "Give the partitions named in the JSON that was brought the replicas that stand there. Nothing else moves.",
        ),
    ],
)
def test_it_is_told(asked: Asked, title: str, words: str, sentence: str) -> None:
    assert asked.complete
    assert (asked.title, asked.words, asked.sentence) == (title, words, sentence)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        (Asked(ADD), "Add brokers"),
        (Asked(DRAIN), "Drain brokers"),
        (Asked(REPLACE), "Replace brokers"),
        (Asked(REPLACE, brokers=(3,)), "Replace broker 3"),
        (Asked(SET_RF), "Change the replication factor"),
        (Asked(EXPLICIT), "Reassign as given"),
        (Asked(FINISH), "Finish an earlier plan"),
    ],
)
def test_what_is_not_complete_has_a_title_and_no_words_yet(asked: Asked, title: str) -> None:
    assert not asked.complete
    assert (asked.title, asked.words) == (title, "")


def test_many_brokers_and_a_long_pattern_are_cut_short() -> None:
    asked = Asked(DRAIN, brokers=tuple(range(40)), pattern="x" * 300)
    assert asked.title.startswith("Drain brokers 0, 1, 2, 3, 4, 5, 6, 7, … (40 of them) of topics like “xxx")
    assert len(asked.title) < 200
    assert asked.words == "drain 0, 1, 2, 3, 4, 5, 6, 7 and 32 more"
