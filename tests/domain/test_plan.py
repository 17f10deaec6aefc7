"""What is approved has one name: the same rows and options give the same digest, in every order and every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.plan import BadPlan, Options, Row, canonical, digest, read, sha256, way_back

OPTIONS = Options(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)
KAFKA_ID = "4L6g3nShT-eMCtK--X86sw"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
brokers = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(tuple)
rows = st.builds(
    Row,
    topic=names,
    topic_id=names | st.just(""),
    partition=st.integers(0, 2**31 - 1),
    current=brokers,
    target=brokers,
    log_dirs=st.lists(names, max_size=3).map(tuple),
)
plans = st.lists(rows, max_size=12, unique_by=lambda row: (row.topic, row.partition))

# Sets and dictionaries of text have another order in each process with another seed.
OF_A_SET = """
from kafkadash.domain.plan import Options, Row, canonical, digest, sha256
rows = {Row(f"topic-{n % 7}-ü", f"id-{n % 7}", n, (1, 2, 3), (2, 3, 4)) for n in range(500)}
options = {name: name for name in {"throttle", "parallel", "window", "elect_leaders", "change_rf"}}
artifact = sha256(canonical(rows))
print(artifact, digest("id", artifact, options), digest("id", artifact, Options(1, 1, 2)))
"""


def in_a_process(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run(
        [sys.executable, "-c", OF_A_SET], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_every_process_gives_the_same_names() -> None:
    said = {in_a_process(seed) for seed in (1, 2, 77)}
    assert len(said) == 1
    assert [len(word) for word in said.pop().split()] == [64, 64, 64]


@given(plans, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(plan: list[Row], chance: Any) -> None:
    shuffled = list(plan)
    chance.shuffle(shuffled)
    assert canonical(shuffled) == canonical(plan)


@given(plans)
def test_what_is_stored_is_read_again(plan: list[Row]) -> None:
    again = read(canonical(plan))
    assert list(again) == sorted(plan, key=lambda row: (row.topic, row.partition))
    assert canonical(again) == canonical(plan)


@given(plans, plans)
def test_different_plans_have_different_names(one: list[Row], other: list[Row]) -> None:
    same = sorted(one, key=repr) == sorted(other, key=repr)
    assert (sha256(canonical(one)) == sha256(canonical(other))) == same


@given(plans)
def test_the_way_back_of_the_way_back_is_the_way(plan: Sequence[Row]) -> None:
    without_dirs = [replace(row, log_dirs=()) for row in plan]
    assert list(way_back(way_back(without_dirs))) == without_dirs


def test_it_is_text_that_people_can_read() -> None:
    artifact = canonical([Row("bestellungen-ü", "", 1, (1, 2), (2, 1)), Row("a", "x", 0, (1,), (2,), ("any",))])
    assert artifact.decode() == (
        '{"format":1,"rows":[["a","x",0,[1],[2],["any"]],["bestellungen-ü","",1,[1,2],[2,1],[]]]}'
    )


def test_the_order_of_replicas_matters() -> None:
    row = Row("a", "x", 0, (1, 2), (2, 1))
    assert canonical([row]) != canonical([replace(row, target=(1, 2))])
    assert canonical([row]) != canonical([replace(row, current=(2, 1))])


@pytest.mark.parametrize(
    "changed",
    [
        {"throttle_min": 10_000_000},
        {"throttle_max": 90_000_000},
        {"per_broker": 6},
        {"per_cluster": 51},
        {"not_before": "2026-11-24T22:00:00Z"},
        {"not_after": "2026-11-25T04:00:00Z"},
        {"elect_leaders": False},
        {"change_rf": True},
    ],
)
def test_every_option_that_is_approved_is_in_the_digest(changed: dict[str, Any]) -> None:
    assert digest(KAFKA_ID, "a" * 64, replace(OPTIONS, **changed)) != digest(KAFKA_ID, "a" * 64, OPTIONS)


def test_the_rate_that_it_starts_with_is_not() -> None:
    """It may be changed within the bounds while it runs."""
    assert digest(KAFKA_ID, "a" * 64, replace(OPTIONS, throttle=70_000_000)) == digest(KAFKA_ID, "a" * 64, OPTIONS)


def test_the_cluster_and_the_artifact_are() -> None:
    one = digest(KAFKA_ID, "a" * 64, OPTIONS)
    assert digest("another", "a" * 64, OPTIONS) != one
    assert digest(KAFKA_ID, "b" * 64, OPTIONS) != one


def test_options_as_values_and_as_json_are_the_same() -> None:
    stored = json.loads(json.dumps(OPTIONS.as_json()))
    assert digest(KAFKA_ID, "a" * 64, stored) == digest(KAFKA_ID, "a" * 64, OPTIONS)


@pytest.mark.parametrize(
    "artifact",
    [b"", b"[]", b"{}", b'{"format":2,"rows":[]}', b'{"format":1}', b'{"format":1,"rows":[[1]]}', b"\xff", b"null"],
)
def test_what_is_no_plan_is_refused_with_a_sentence(artifact: bytes) -> None:
    with pytest.raises(BadPlan, match=r"The (stored plan cannot be read: .+|plan has format 2.+)\."):
        read(artifact)


def test_fifty_thousand_rows_take_less_than_a_second() -> None:
    many = [Row(f"topic-{n // 50}", f"id-{n // 50}", n % 50, (1, 2, 3), (2, 3, 4)) for n in range(50_000)]
    began = time.process_time()
    name = digest(KAFKA_ID, sha256(canonical(many)), OPTIONS)
    assert time.process_time() - began <= 1.0
    assert len(name) == 64


def test_directories_are_told_apart_by_whether_the_replica_is_new() -> None:
    row = Row("t", "", 0, (1, 2, 3), (4, 2, 3), ("/new", "/kept", "any"))
    assert row.directories == ((4, "/new"),)
    assert row.kept_directories == ((2, "/kept"),)
    assert replace(row, log_dirs=()).directories == ()
