"""What is asked for, in words, as it is stored, and as the planner gets it.

The limits of a draft: each thing that is wrong has its sentence at its field.

Throttles as people type them.

Kafka's JSON on its way into a draft: how much is taken, and what its name may be.

How many queries a step of the wizard needs: pinned, and the same with twice the brokers, topics and rows.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import coded, message_text
from kafkadash.planning import proposal as uploads
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.errors import ReassignmentErrorCode as Code
from kafkadash.planning.forms import LimitsForm
from kafkadash.planning.options import BadRate, bytes_per_second, format_megabytes, format_rate
from kafkadash.planning.proposal import (
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
    PlanInput,
    TooLarge,
    from_file,
    from_text,
    shown_name,
)
from kafkadash.planning.solver.request import PlanRequest
from tests.factories import NOW
from tests.planning.stored import Wizard, stored
from tests.raised_codes import raises_code


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
    asked = PlanInput(REPLACE, **full)
    stored = pack_dataclass(asked)
    assert unpack_dataclass(PlanInput, stored) == asked


def test_no_target_at_all_is_not_the_same_as_all_that_can() -> None:
    assert unpack_dataclass(PlanInput, pack_dataclass(PlanInput(DRAIN, brokers=(3,), targets=()))).targets == ()
    assert unpack_dataclass(PlanInput, pack_dataclass(PlanInput(DRAIN, brokers=(3,)))).targets is None


def test_the_planner_gets_all_of_it() -> None:
    asked = PlanInput(REPLACE, brokers=(1, 3), replacements=(8, 7), targets=(7, 8), pattern="pay.*", most_replicas=900)
    request = asked.request()
    assert (request.brokers, request.replacements, request.targets) == ((1, 3), (7, 8), (7, 8))
    shared = {f.name for f in fields(PlanRequest)} & {f.name for f in fields(PlanInput)} - {"replacements", "change_rf"}
    assert shared == {f.name for f in fields(PlanRequest)} - {"replacements", "change_rf"}
    assert all(asdict(request)[name] == asdict(asked)[name] for name in shared)


@pytest.mark.parametrize(("mode", "resizes"), [(SET_RF, True), (FINISH, True), (EXPLICIT, False), (DRAIN, False)])
def test_a_mode_that_changes_the_factor_says_so_to_whoever_approves(mode: str, resizes: bool) -> None:
    assert PlanInput(mode).resizes == PlanInput(mode).request().change_rf == resizes


def test_the_rows_of_a_rollback_are_brought() -> None:
    assert PlanInput(ROLLBACK, of=42).request().mode == EXPLICIT


@pytest.mark.parametrize(
    ("asked", "title", "words", "sentence"),
    [
        (
            PlanInput(ADD, brokers=(7, 8)),
            "Add brokers 7 and 8",
            "add 7, 8",
            "Move an even share of the replicas to brokers 7 and 8. No other replicas move.",
        ),
        (
            PlanInput(ADD, brokers=(7,), rebalance=True),
            "Add broker 7",
            "add 7",
            (
                "Move an even share of the replicas to broker 7. Other replicas may move too, to rebalance counts "
                "within each rack."
            ),
        ),
        (
            PlanInput(DRAIN, brokers=(3,)),
            "Drain broker 3",
            "drain 3",
            "Move all replicas off broker 3. No other replicas move.",
        ),
        (
            PlanInput(DRAIN, brokers=(3,), topics=("orders",)),
            "Drain broker 3 of orders",
            "drain 3",
            "Move all replicas of orders off broker 3. No other replicas move.",
        ),
        (
            PlanInput(REPLACE, brokers=(3,), replacements=(7,)),
            "Replace broker 3 with 7",
            "replace 3 with 7",
            "Move all replicas from broker 3 to broker 7. No other replicas move.",
        ),
        (
            PlanInput(REPAIR_RACKS),
            "Repair racks",
            "repair racks",
            (
                "Spread the replicas of all partitions of all topics evenly over the racks. Only partitions that "
                "violate rack awareness move."
            ),
        ),
        (
            PlanInput(SET_RF, factor=3, topics=tuple("abcdefghijkl")),
            "Set replication factor 3 of 12 topics",
            "factor 3, some topics",
            "Set replication factor 3 for 12 topics. No other replicas move.",
        ),
        (
            PlanInput(SET_RF, factor=1, pattern="pay.*", excluded=".*-dlq"),
            "Set replication factor 1 of topics matching “pay.*”, except “.*-dlq”",
            "factor 1, some topics",
            "Set replication factor 1 for topics matching “pay.*”, except “.*-dlq”. No other replicas move.",
        ),
        (
            PlanInput(BALANCE, eps=0.05, leaders=False),
            "Balance replicas and disks",
            "replicas and disks",
            (
                "Balance replica counts and disk usage (within 5 % of the rack mean) for all topics, with minimal data "
                "movement."
            ),
        ),
        (
            PlanInput(LEADERS),
            "Balance leaders",
            "leaders",
            "Balance leaders by reordering replicas. No data moves.",
        ),
        (
            PlanInput(FINISH, upload="0" * 64, name="plan.json"),
            "Finish plan.json",
            "plan.json",
            "Assign the replicas given in plan.json, where not done yet.",
        ),
        (
            PlanInput(EXPLICIT, upload="0" * 64),
            "Reassign as given",
            "pasted",
            "Assign the replicas given in the uploaded JSON. No other replicas move.",
        ),
    ],
)
def test_it_is_told(asked: PlanInput, title: str, words: str, sentence: str) -> None:
    assert asked.complete
    assert (asked.title, asked.words, asked.sentence) == (title, words, sentence)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        (PlanInput(ADD), "Add brokers"),
        (PlanInput(DRAIN), "Drain brokers"),
        (PlanInput(REPLACE), "Replace brokers"),
        (PlanInput(REPLACE, brokers=(3,)), "Replace broker 3"),
        (PlanInput(SET_RF), "Change replication factor"),
        (PlanInput(EXPLICIT), "Reassign as given"),
        (PlanInput(FINISH), "Finish an earlier plan"),
    ],
)
def test_what_is_not_complete_has_a_title_and_no_words_yet(asked: PlanInput, title: str) -> None:
    assert not asked.complete
    assert (asked.title, asked.words) == (title, "")


def test_many_brokers_and_a_long_pattern_are_cut_short() -> None:
    asked = PlanInput(DRAIN, brokers=tuple(range(40)), pattern="x" * 300)
    named = ", ".join(map(str, range(8)))
    for words, left in ((asked.title, "40"), (asked.words, "32")):
        assert named in words
        assert left in words
        assert "8," not in words
    assert "xxx" in asked.title
    assert len(asked.title) < 200


GOOD = {
    "version": "3",
    "throttle": "60",
    "throttle_min": "20",
    "throttle_max": "80",
    "per_broker": "5",
    "per_cluster": "50",
    "not_before": "2026-11-21T22:00",
    "not_after": "2026-11-22T04:00",
    "disk_limit": "80",
    "elect_leaders": "on",
}

SLOW = {"throttle": "0.01", "throttle_min": "0.01"}


def form_of(changed: Mapping[str, str] | None = None, inbound: float | None = None) -> LimitsForm:
    with time_machine.travel(NOW, tick=False):
        form = LimitsForm({**GOOD, **(changed or {})}, now=timezone.now(), inbound=inbound)
        form.is_valid()
    return form


def sentences(form: LimitsForm) -> dict[str, Any]:
    return {name: " ".join(map(str, errors)) for name, errors in form.errors.items()}


def test_good_limits_are_options_in_bytes_per_second_and_utc() -> None:
    form = form_of()
    assert sentences(form) == {}
    options = form.options(PlanInput(DRAIN))
    assert (options.throttle, options.throttle_min, options.throttle_max) == (60_000_000, 20_000_000, 80_000_000)
    assert (options.not_before, options.not_after) == ("2026-11-21T22:00:00Z", "2026-11-22T04:00:00Z")
    assert (options.per_broker, options.per_cluster, options.elect_leaders) == (5, 50, True)
    assert form.cleaned_data["disk_limit"] == 0.8


@pytest.mark.parametrize(
    ("changed", "field", "code", "params"),
    [
        ({"throttle": "0"}, "throttle", Code.RATE_ZERO, {}),
        ({"throttle_max": "fast"}, "throttle_max", Code.RATE_NO_NUMBER, {"typed": "fast"}),
        ({"throttle_min": "-1"}, "throttle_min", Code.RATE_NEGATIVE, {}),
        ({"throttle_min": "90"}, "throttle_min", Code.LOWEST_ABOVE_HIGHEST, {"low": "90", "high": "80"}),
        ({"throttle": "10"}, "throttle", Code.STARTS_BELOW, {"low": "20"}),
        ({"throttle": "81"}, "throttle", Code.STARTS_ABOVE, {"high": "80"}),
        ({"per_broker": "0"}, "per_broker", Code.NO_WHOLE_NUMBER, {"example": "5"}),
        ({"per_cluster": "many"}, "per_cluster", Code.NO_WHOLE_NUMBER, {"example": "50"}),
        ({"per_cluster": "1001"}, "per_cluster", Code.TOO_MANY_AT_ONCE, {"typed": 1001, "most": 1000}),
        ({"per_broker": "6", "per_cluster": "5"}, "per_broker", Code.MORE_THAN_THE_CLUSTER, {"most": 5}),
        ({"not_before": "tonight"}, "not_before", Code.TIME_UNREADABLE, {}),
        ({"not_before": "0001-01-01T00:00+14:00"}, "not_before", Code.TIME_UNREADABLE, {}),
        ({"not_before": "0001-01-01T00:00"}, "not_before", Code.TIME_UNREADABLE, {}),
        ({"not_after": "9999-12-31T23:59-14:00"}, "not_after", Code.TIME_UNREADABLE, {}),
        ({"not_after": "2026-11-21T22:00"}, "not_after", ChangeErrorCode.WINDOW_TURNED_ROUND, {}),
        ({"not_before": "", "not_after": "2026-11-20T00:00"}, "not_after", Code.TIME_PASSED, {"now": "21 Nov 02:03"}),
        ({"disk_limit": "0"}, "disk_limit", Code.PERCENT_OUTSIDE, {}),
        ({"disk_limit": "101"}, "disk_limit", Code.PERCENT_OUTSIDE, {}),
        ({"disk_limit": "most"}, "disk_limit", Code.PERCENT_UNREADABLE, {}),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    changed: dict[str, str], field: str, code: StrEnum, params: dict[str, Any]
) -> None:
    assert sentences(form_of(changed)) == {field: message_text(code, **params)}


def test_less_than_a_megabyte_a_second_is_asked_for_twice() -> None:
    asked = form_of(SLOW)
    said = message_text(Code.VERY_SLOW, rate="0.01 MB/s (10,000 bytes/s)", hours="27.8 h")
    assert sentences(asked) == {"confirmed": said}
    assert sentences(form_of({**SLOW, "confirmed": "on"})) == {}


def test_a_lowest_rate_below_what_producers_write_is_asked_for_twice_because_it_can_never_finish() -> None:
    asked = form_of(inbound=25e6)
    rate = "20 MB/s (20,000,000 bytes/s)"
    said = message_text(Code.NEVER_FINISHES, rate=rate, inbound="25.0")
    assert sentences(asked) == {"confirmed": said}
    assert sentences(form_of({"confirmed": "on"}, inbound=25e6)) == {}
    assert sentences(form_of(inbound=15e6)) == {}


@pytest.mark.parametrize(
    ("typed", "rate"),
    [("60", 60_000_000), (" 2.5 ", 2_500_000), ("0.01", 10_000), ("60 MB/s", 60_000_000), ("0.0000015", 2)],
)
def test_a_number_of_megabytes_is_bytes_per_second(typed: str, rate: int) -> None:
    assert bytes_per_second(typed) == rate


@pytest.mark.parametrize(
    ("typed", "code", "params"),
    [
        ("", Code.RATE_MISSING, {}),
        ("0", Code.RATE_ZERO, {}),
        ("0.0000001", Code.RATE_ZERO, {}),
        ("-5", Code.RATE_NEGATIVE, {}),
        ("−5", Code.RATE_NEGATIVE, {}),
        ("fast", Code.RATE_NO_NUMBER, {"typed": "fast"}),
        ("1,000", Code.RATE_NO_NUMBER, {"typed": "1,000"}),
        ("1e3", Code.RATE_NO_NUMBER, {"typed": "1e3"}),
        ("nan", Code.RATE_NO_NUMBER, {"typed": "nan"}),
        ("٦٠x", Code.RATE_NO_NUMBER, {"typed": "٦٠x"}),
        ("60000000", Code.RATE_TOO_LARGE, {"most": 100_000}),
    ],
)
def test_what_is_no_throttle_is_refused(typed: str, code: Code, params: dict[str, Any]) -> None:
    with raises_code(code, BadRate, **params):
        bytes_per_second(typed)


def test_a_rate_is_shown_exactly_and_without_zeros_behind_it() -> None:
    assert [format_megabytes(rate) for rate in (60_000_000, 2_500_000, 10_000, 1)] == ["60", "2.5", "0.01", "0.000001"]
    assert format_rate(10_000) == "0.01 MB/s (10,000 bytes/s)"


CONTENT = b'{"version":1,"partitions":[]}\n' * 1000


def test_a_file_is_kept_compressed_with_its_name_size_and_digest() -> None:
    brought = from_file(SimpleUploadedFile("plan.json", CONTENT))
    assert (brought.name, brought.size, brought.sha256) == ("plan.json", 30_000, hashlib.sha256(CONTENT).hexdigest())
    assert zlib.decompress(brought.data) == CONTENT
    assert len(brought.data) < 1000


def test_a_file_that_is_too_large_is_not_read_at_all() -> None:
    file = SimpleUploadedFile("plan.json", CONTENT)
    file.size = 50_000_001
    with mock.patch.object(file, "chunks") as chunks, pytest.raises(TooLarge) as refused:
        from_file(file)
    assert not chunks.called
    assert refused.value.message == coded(ReassignmentErrorCode.FILE_TOO_LARGE, size="50.0", most=50)


def test_a_file_that_says_it_is_smaller_than_it_is_ends_where_it_gets_too_large() -> None:
    file = SimpleUploadedFile("plan.json", CONTENT)
    file.size = 10
    with mock.patch.object(uploads, "LARGEST_BYTES", 20_000), pytest.raises(TooLarge):
        from_file(file)


def test_a_pasted_text_counts_in_bytes_not_in_characters() -> None:
    with mock.patch.object(uploads, "LARGEST_BYTES", 10), pytest.raises(TooLarge):
        from_text("é" * 6)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plan.json", "plan.json"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\plan.json", "plan.json"),
        ("<img src=x>.json", "<img src=x>.json"),
        ("a\x00b\n.json", "ab.json"),
        ("x" * 300, "x" * 119 + "…"),
    ],
)
def test_of_a_name_its_last_part_is_shown_and_nothing_that_cannot_be_printed(name: str, shown: str) -> None:
    assert shown_name(name) == shown


PINNED: dict[str, int] = json.loads((Path(__file__).parent.parent / "query_counts.json").read_text())
STEPS = ("new", "what", "limits", "plan", "why")


def counts(wizard: Wizard, name: str, size: int) -> dict[str, int]:
    """Of each step of a drain on a cluster of this size."""
    racks = {n: f"eu-1{'abc'[n % 3]}" for n in range(1, 6 * size + 1)}
    topics = {f"topic-{n}": [[1, 2, 3], [2, 3, 4], [3, 4, 5]] for n in range(4 * size)}
    cluster = stored(name, topics=topics, racks=racks)
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    found = {}
    for step in STEPS:
        where = f"/changes/new/?cluster={name}" if step == "new" else wizard.url(step)
        with CaptureQueriesContext(connection) as queries:
            assert wizard.client.get(where).status_code == 200
        found[f"wizard_{step}"] = len(queries)
    return found


@pytest.mark.django_db
def test_it_is_as_pinned_and_does_not_grow_with_rows(operator: User, client_of: Callable[[User], Client]) -> None:
    wizard = Wizard(client_of(operator))
    small, large = counts(wizard, "small", 1), counts(wizard, "large", 2)
    assert small == large, "the number of queries grows with the rows"
    assert small == {name: PINNED.get(name) for name in small}
