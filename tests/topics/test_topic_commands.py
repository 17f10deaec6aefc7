"""``manage.py topics`` and ``manage.py elect``: what they print, what they refuse, and the changes they propose."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorRun, TopicState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of
from kafkadash.topics.errors import TopicErrorCode
from tests.topics.conftest import TopicWorld

pytestmark = pytest.mark.django_db
REASON = ["--reason", "The billing service starts."]


def run(*arguments: str) -> tuple[int, str]:
    """Return exit code and everything that was printed."""
    out = io.StringIO()
    try:
        call_command(*arguments, "--cluster", "demo", stdout=out, stderr=out)
    except SystemExit as exit_:
        return int(exit_.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


@pytest.fixture
def by(world: TopicWorld) -> list[str]:
    return ["--user", world.operator.username, *REASON]


def test_describe__prints_the_lines_of_kafkas_tool(world: TopicWorld) -> None:
    TopicState.objects.filter(name="clicks").update(config={"retention.ms": ["60000", "topic"]})
    code, said = run("topics", "describe", "clicks")
    age, topic, *partitions = said.splitlines()
    assert (code, age.startswith("As of ")) == (0, True)
    assert topic.split("\t") == [
        *("Topic: clicks", "TopicId: none", "PartitionCount: 2", "ReplicationFactor: 2", "Configs: retention.ms=60000"),
    ]
    assert partitions == [
        "\tTopic: clicks\tPartition: 0\tLeader: 3\tReplicas: 3,5\tIsr: 3,5",
        "\tTopic: clicks\tPartition: 1\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
    ]
    assert run("topics", "list")[1].splitlines()[1:] == ["clicks", "orders"]


def test_describe__as_json__has_null_for_what_nobody_read(world: TopicWorld) -> None:
    TopicState.objects.filter(name="clicks").update(config=None, size_bytes=None)
    [topic] = json.loads(run("topics", "describe", "clicks", "--json")[1])["topics"]
    assert (topic["configs"], topic["size_bytes"], topic["partition_count"]) == (None, None, 2)
    assert topic["partitions"][0] == {"partition": 0, "leader": 3, "leader_epoch": 5, "replicas": [3, 5], "isr": [3, 5]}


def test_nothing_collected__is_an_error_and_not_an_empty_list(world: TopicWorld) -> None:
    CollectorRun.objects.update(succeeded_at=None)
    code, said = run("topics", "list", "--json")
    assert (code, json.loads(said)["code"]) == (2, CollectionErrorCode.NOT_COLLECTED)


def test_create__proposes_the_topics_and_prints_the_address(world: TopicWorld, by: list[str]) -> None:
    draw = ["--start", "1", "--shift", "0", "--config", "retention.ms=60000"]
    code, said = run("topics", "create", "bills", "--partitions", "2", "--replication-factor", "3", *draw, *by)
    change = ChangeRequest.objects.get()
    assert (code, said.splitlines()[0]) == (0, f"#{change.pk} Create topic bills, proposed: /changes/{change.pk}/")
    assert (change.state, change.author, change.why) == (ChangeState.PROPOSED, world.operator, REASON[1])
    [item] = items_of(change)
    assert (item.subject, item.content["configs"]) == ("bills", {"retention.ms": "60000"})


def test_growth_and_election__are_proposed(world: TopicWorld, by: list[str]) -> None:
    code, said = run("topics", "add-partitions", "clicks", "--partitions", "4", *by, "--json")
    told = json.loads(said)
    assert (code, told["state"], told["items"][0]["content"]["first"]) == (0, "proposed", 2)
    TopicState.objects.filter(name="clicks").update(partitions=[[0, 5, 5, [3, 5], [3, 5], []]], preferred_leaders=0)
    assert run("elect", "--topic", "clicks", *by)[0] == 0
    told = json.loads(run("elect", "-p", "clicks-0", "clicks-0", *by, "--json")[1])
    assert [item["item"] for item in told["items"]] == ["clicks-0"]
    assert [change.kind for change in ChangeRequest.objects.order_by("pk")] == ["topic-grow", "election", "election"]


def test_deletion__takes_the_text_that_the_page_asks_for(world: TopicWorld, by: list[str]) -> None:
    assert_refused(run("topics", "delete", "clicks", *by, "--confirm", "orders"), ShortRunErrorCode.NOT_CONFIRMED)
    assert ChangeRequest.objects.get().state == ChangeState.DRAFT
    told = json.loads(run("topics", "delete", "clicks", *by, "--json")[1])
    assert (told["state"], told["refused"]["code"]) == ("draft", ShortRunErrorCode.NOT_CONFIRMED)
    assert run("topics", "delete", "clicks", "orders", *by, "--confirm", "2")[0] == 0
    assert ChangeRequest.objects.latest("pk").state == ChangeState.PROPOSED


def test_bad_input__is_refused_with_its_code(world: TopicWorld, by: list[str], viewer: User) -> None:
    new = ["topics", "create", "orders", "--partitions", "0", "--replication-factor", "3"]
    code, said = run(*new, *by)
    assert code == 2
    for refusal in (TopicErrorCode.NAME_TAKEN, TopicErrorCode.PARTITIONS_WRONG, ShortRunErrorCode.NOT_PROPOSED):
        assert f"({refusal})" in said
    election = ["elect", "--all-topic-partitions"]
    assert_refused(run(*election, "--user", "nobody", *REASON), ShortRunErrorCode.NO_PROPOSER)
    assert_refused(run(*election, *by), ShortRunErrorCode.NOTHING_TO_DO)
    assert_refused(run("elect", "--broker", "9", *by), ElectionErrorCode.SCOPE_UNKNOWN)
    assert_refused(run("elect", "-p", "clicks-7", *by), ElectionErrorCode.PARTITION_UNKNOWN)
    assert_refused(run("elect", "-p", "clicks", *by), ElectionErrorCode.PARTITION_FORMAT)
    assert_refused(run("topics", "delete", "nowhere", *by), CollectionErrorCode.TOPIC_NOT_SEEN)
    TopicState.objects.filter(name="orders").update(internal=True)
    assert_refused(run("topics", "delete", "clicks", "orders", *by), TopicErrorCode.NOT_DELETABLE)
    code, _ = run("topics", "add-partitions", "clicks", "--partitions", "4", "--user", viewer.username, *REASON)
    assert code == 2
    assert not ChangeRequest.objects.exists()


def assert_refused(answer: tuple[int, str], refusal: str) -> None:
    code, said = answer
    assert (code, said.endswith(f"({refusal})")) == (2, True), said
