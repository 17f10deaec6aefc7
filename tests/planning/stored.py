"""Clusters as collectors leave them, small enough to be planned in a moment, and drafts on them."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import unescape
from typing import Any
from unittest import mock

from django.test import Client
from django.utils import timezone

from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.runner import attempt_job
from kafkadash.monitoring.models import TopicState
from kafkadash.planning import forms
from tests.factories import GB, BrokerFactory, BrokerNode, BrokerWeightsFactory, TopicFactory, directory, watched
from tests.pages.conftest import Page

TOPICS: Mapping[str, Sequence[Sequence[int]]] = {
    "orders": [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [3, 1, 2]],
    "clicks": [[3, 5], [1, 2]],
}
RACKS = {1: "eu-1a", 2: "eu-1b", 3: "eu-1c", 4: "eu-1a", 5: "eu-1b", 6: "eu-1c"}
LIMITS = {
    "throttle": "60",
    "throttle_min": "20",
    "throttle_max": "80",
    "per_broker": "5",
    "per_cluster": "50",
    "not_before": "",
    "not_after": "",
    "disk_limit": "80",
    "elect_leaders": "on",
}


def stored(
    name: str = "demo",
    *,
    topics: Mapping[str, Sequence[Sequence[int]]] = TOPICS,
    racks: Mapping[int, str | None] = RACKS,
    size: int = 3 * GB,
    usable: int = 1333 * GB,
) -> Cluster:
    """Fresh: brokers in these racks, every replica in sync and of ``size`` bytes, ``usable`` of 2 TB left on disks."""
    now = timezone.now()

    def nodes(cluster: Cluster, taken_at: datetime) -> list[BrokerNode]:
        return [_node(cluster, id_, rack, topics, size, usable, taken_at) for id_, rack in racks.items()]

    figures = {"partitions": sum(map(len, topics.values())), "topics": len(topics), "brokers": len(racks)}
    cluster = watched(name, now, nodes=nodes, **figures)
    TopicState.objects.bulk_create(
        TopicFactory.build(
            cluster=cluster,
            name=topic,
            topic_id=f"id-of-{topic}",
            internal=topic.startswith("__"),
            partitions=[[n, replicas[0], 5, list(replicas), list(replicas), []] for n, replicas in enumerate(placed)],
            replication_factor=max(map(len, placed)),
            changed_at=now,
        )
        for topic, placed in topics.items()
    )
    return cluster


def _node(
    cluster: Cluster,
    id_: int,
    rack: str | None,
    topics: Mapping[str, Sequence[Sequence[int]]],
    size: int,
    usable: int,
    taken_at: datetime,
) -> BrokerNode:
    held = {
        topic: {str(n): size for n, replicas in enumerate(placed) if id_ in replicas}
        for topic, placed in topics.items()
    }
    every = [replicas for placed in topics.values() for replicas in placed]
    in_all = sum(sum(sizes.values()) for sizes in held.values())
    broker = BrokerFactory.build(
        cluster=cluster,
        broker_id=id_,
        rack=rack,
        replicas=sum(id_ in replicas for replicas in every),
        leaders=sum(id_ == replicas[0] for replicas in every),
    )
    weights = BrokerWeightsFactory.build(
        cluster=cluster,
        broker_id=id_,
        data=zlib.compress(json.dumps(held).encode()),
        dirs=[directory("/data/a", usable=usable, replica_bytes=in_all)],
        replica_bytes=in_all,
        taken_at=taken_at,
    )
    return broker, weights


def kafka_json(*rows: tuple[str, int, Sequence[int]], version: object = 1) -> str:
    """One partition a line; the first is on line 2."""
    lines = ",\n".join(json.dumps({"topic": t, "partition": p, "replicas": list(r)}) for t, p, r in rows)
    return f'{{"version":{json.dumps(version)},"partitions":[\n{lines}\n]}}'


class Wizard:
    """A person in the wizard, as a browser sends it: what the page held, and what was changed in it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.number = 0

    def begins(self, cluster: Cluster, mode: str, **more: str) -> Wizard:
        answer = self.client.post("/changes/new/", {"cluster": cluster.slug, "mode": mode, **more})
        assert answer.status_code == 302, answer.content.decode()
        self.number = int(re.search(r"/changes/(\d+)/", answer["location"])[1])  # type: ignore[index]
        return self

    def url(self, step: str) -> str:
        return f"/changes/{self.number}/draft/{step}/"

    def sees(self, step: str) -> str:
        answer = self.client.get(self.url(step))
        assert answer.status_code == 200, (step, answer.status_code, answer.get("location"))
        return str(answer.content.decode())

    def sends(self, step: str, fields: Mapping[str, Any] | None = None, *, version: int | None = None) -> Any:
        seen = self.change.version if version is None else version
        return self.client.post(self.url(step), {"version": str(seen), **(fields or {})})

    def drains(self, *brokers: int, **flags: str) -> Any:
        return self.sends("what", {"brokers": [str(b) for b in brokers], **flags})

    def limits(self, **changed: str | list[str]) -> Any:
        return self.sends("limits", {**LIMITS, **changed})

    def plans(self) -> ChangeRequest:
        """Plan, unless that is under way already; as the worker does it, with the real child process."""
        answer = self.sends("plan")
        assert answer.status_code == 302, answer.content.decode()
        job = self.change.job
        assert job is not None
        attempt_job(job.pk)
        return self.change

    def submits(self, title: str, why: str) -> ChangeRequest:
        """To be approved; of one that is refused the page says why."""
        answer = self.sends("why", {"title": title, "why": why})
        assert answer.status_code == 302, text(answer.content.decode())
        return self.change

    @property
    def change(self) -> ChangeRequest:
        return ChangeRequest.objects.select_related("cluster", "job").get(pk=self.number)


def text(html: str) -> str:
    return Page(html).text


def problems_of(wizard: Wizard) -> list[InputProblem]:
    """Return the problems of the job's row, which the page has to list as they are."""
    html = wizard.sees("plan")
    listed = re.search(r'<ol class="panel-body problem-list".*?</ol>', html, re.DOTALL)
    shown = re.findall(r"<li>(.*?)\s*</li>", listed[0], re.DOTALL) if listed else []
    change = wizard.change
    assert change.artifact is None
    found = [InputProblem.from_json(one) for one in ((change.job and change.job.result) or {}).get("problems", [])]
    assert [unescape(re.sub(r"<[^>]+>", "", one)) for one in shown] == [f"{each} {each.code}" for each in found]
    return found


def plan_unchecked(wizard: Wizard, cluster: Cluster, json_text: str, **flags: str) -> ChangeRequest:
    """Plan JSON that the first step did not check, as that of a large file."""
    with mock.patch.object(forms, "CHECKED_BYTES", 0):
        return plan_explicit(wizard, cluster, json_text, **flags)


def plan_explicit(wizard: Wizard, cluster: Cluster, json_text: str, **flags: str) -> ChangeRequest:
    wizard.begins(cluster, "explicit").sends("what", {"text": json_text, **flags})
    wizard.limits()
    return wizard.plans()
