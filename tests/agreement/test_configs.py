"""Configs that the product changes on real Kafka, and what kafka-configs says of them."""

from __future__ import annotations

import io
import json
import re

from django.core.management import call_command

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.configs.kind import KIND
from kafkadash.configs.stored import OwnerKind, load_keys, load_owners
from kafkadash.kafka.api import ConfigType
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.short_runs.reasons import ItemReasonCode
from kafkadash.short_runs.rollback import propose_rollback
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.short_runs import queue, step_until
from tests.agreement.tools import Tools

LARGEST = "message.max.bytes"


def told(tools: Tools, *entity: str) -> dict[str, str]:
    """Return the dynamic configs that kafka-configs describes of a topic, a broker or the default of all brokers."""
    text = tools.run("configs", "--describe", *entity)
    return dict(re.findall(r"^\s+([a-z.]+)=(\S*) sensitive=false synonyms=\{DYNAMIC_[A-Z_]+:", text, re.MULTILINE))


def test_configs__are_set_as_approved__and_rolled_back(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[1, 2]])
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    of_broker, of_all = (
        ("--entity-type", "brokers", "--entity-name", "2"),
        ("--entity-type", "brokers", "--entity-default"),
    )
    tools.set_config(topic, preallocate="true")
    before = told(tools, *of_topic)
    for kind in READ:
        refresh(kind)
    topic_id = TopicState.objects.get(cluster=cluster, name=topic).topic_id
    edits = [
        {"of": "topic", "ids": [topic_id], "key": key, "value": value}
        for key, value in {
            "retention.ms": "+3600000",
            "cleanup.policy": "compact, delete",
            "min.cleanable.dirty.ratio": "0.0001",
            "preallocate": None,
        }.items()
    ]
    edits.append({"of": "broker", "ids": ["2"], "key": LARGEST, "value": "1048600"})
    edits.append({"of": "default", "ids": [""], "key": LARGEST, "value": "1048600"})
    change = queue(cluster, KIND, {"edits": edits}, operator)
    run = step_until(change, RequestState.DONE, RequestState.STALE)
    assert run is not None, change.stale_reasons
    assert (run.outcome, run.counts) == ("clean", {"done": 6})
    changed = {"retention.ms": "3600000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "1.0E-4"}
    after = told(tools, *of_topic)
    assert after == {key: value for key, value in {**before, **changed}.items() if key != "preallocate"}
    assert told(tools, *of_broker)[LARGEST] == "1048600"
    assert told(tools, *of_all)[LARGEST] == "1048600"

    refresh(CollectorKind.CONFIGS)
    [stored] = load_owners(cluster, OwnerKind.TOPIC, [topic_id]).values()
    assert {key: stored.own_value(key) for key in stored.config or {} if stored.own_value(key)} == after
    out = io.StringIO()
    call_command("configs", "describe", "--topic", topic, "--cluster", cluster.slug, "--json", stdout=out)
    [described] = json.loads(out.getvalue())["owners"]
    assert {config["key"]: config["value"] for config in described["configs"]} == after
    back = queue(cluster, KIND, propose_rollback(change, operator).input, operator)
    run = step_until(back, RequestState.DONE, RequestState.STALE)
    assert run is not None, back.stale_reasons
    assert (run.outcome, run.counts) == ("clean", {"done": 6})
    assert told(tools, *of_topic) == before
    assert LARGEST not in told(tools, *of_broker) | told(tools, *of_all)


def test_configs__kafka_refuses_one__nothing_is_changed(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[1, 2]])
    for kind in READ:
        refresh(kind)
    keys = load_keys(cluster, OwnerKind.TOPIC)
    ratio = keys["min.cleanable.dirty.ratio"]
    assert (ratio.type, ratio.inherited) == (ConfigType.DOUBLE, ("0.5", "default"))
    assert load_keys(cluster, OwnerKind.BROKER)["node.id"].read_only
    topic_id = TopicState.objects.get(cluster=cluster, name=topic).topic_id
    for of, identity, key, value in (
        ("topic", topic_id, "min.cleanable.dirty.ratio", "1.5"),
        ("broker", "2", "node.id", "7"),
        ("default", "", "advertised.listeners", "PLAINTEXT://127.0.0.1:1"),
    ):
        edits = [
            {"of": "topic", "ids": [topic_id], "key": "retention.ms", "value": "3600000"},
            {"of": of, "ids": [identity], "key": key, "value": value},
        ]
        change = queue(cluster, KIND, {"edits": edits}, operator)
        assert step_until(change, RequestState.STALE) is None
        assert {reason["params"]["why"]["code"] for reason in change.stale_reasons} == {ItemReasonCode.REFUSED_BY_KAFKA}
        assert key in str(change.stale_reasons)
    assert told(tools, "--entity-type", "topics", "--entity-name", topic)["retention.ms"] != "3600000"


def test_configs__kafkas_tool_was_quicker__turns_stale(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[1, 2]])
    for kind in READ:
        refresh(kind)
    topic_id = TopicState.objects.get(cluster=cluster, name=topic).topic_id
    edits = [{"of": "topic", "ids": [topic_id], "key": "retention.ms", "value": "3600000"}]
    change = queue(cluster, KIND, {"edits": edits}, operator)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools.set_config(topic, retention_ms="7200000")
    assert step_until(change, RequestState.STALE) is None
    assert told(tools, *entity)["retention.ms"] == "7200000"
