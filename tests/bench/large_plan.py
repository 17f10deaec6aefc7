"""A plan of 50,000 rows on a cluster of 60,000 partitions and 60 brokers: from the upload to the review, and submitted.

Rows instead of Kafka; pages come from the real server over HTTP, and the plan is made by a real worker that the tick
hands the job to, as in production. Nobody collects: intervals are so long that what is stored stays fresh.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database
from tests.smoke.browser import CSRF_FIELD, Browser

TOPICS, PARTITIONS_OF_EACH, BROKERS, RACKS = 600, 100, 60, 3
MOVED = 50_000
PASSWORD = "correct horse battery staple"
UPLOAD_TO_REVIEW_S, REVIEW_P95_S, REVIEW_QUERIES, SUBMIT_S, DIGEST_S = 20, 0.3, 15, 2, 1
READINGS = 40
POLL_S = 0.2
_KINDS = ("METADATA", "LOG_DIRS", "REASSIGNMENTS", "QUORUM", "CONFIGS", "VERSIONS")
_DIGEST = f"""
import json, sys, time
from kafkadash.changes.plan import PartitionMove, RunOptions, canonical_bytes, compute_digest, hash_artifact
from tests.bench.large_plan import moves
rows = {{PartitionMove(topic, "id-" + topic, n, now, then) for topic, n, now, then in moves({MOVED})}}
began = time.perf_counter()
named = compute_digest("4L6g3nShT-eMCtK--X86K4", hash_artifact(canonical_bytes(rows)), RunOptions(60, 20, 80))
print(json.dumps([named, time.perf_counter() - began, [row.topic for row in list(rows)[:9]]]))
"""


def measure() -> list[Bar]:
    os.environ.update({f"INTERVAL_{kind}": "86400" for kind in _KINDS})
    bars = _digests()
    with empty_database() as folder:
        _people()
        _rows()
        with _product(folder) as base:
            return [*bars, *_proposed(base)]


def placement(topic: int, partition: int) -> tuple[int, int, int]:
    """Three brokers in three racks (a broker's rack is its id modulo 3)."""
    first = (7 * topic + partition) % BROKERS
    return first, (first + 1 + 3 * (partition % 5)) % BROKERS, (first + 2 + 3 * (topic % 7)) % BROKERS


def moves(number: int) -> Iterator[tuple[str, int, tuple[int, ...], tuple[int, ...]]]:
    """(topic, partition, now, then): the last replica goes to another broker of its rack."""
    for n in range(number):
        topic, partition = n % TOPICS, n // TOPICS
        now = placement(topic, partition)
        then = next(b for b in ((now[2] + 3 * step) % BROKERS for step in range(1, 20)) if b not in now)
        yield f"orders.{topic:03}", partition, now, (*now[:2], then)


def plan_file() -> bytes:
    entries = [{"topic": t, "partition": p, "replicas": list(then)} for t, p, _, then in moves(MOVED)]
    return json.dumps({"version": 1, "partitions": entries}, indent=1).encode()


def _digests() -> list[Bar]:
    """In two processes whose sets have different orders."""
    found = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        )
        found.append(json.loads(done.stdout))
    (first, took, order), (second, again, other_order) = found
    if order == other_order:
        raise RuntimeError("the two processes had their rows in the same order, so equal digests show nothing")
    equal = first == second
    return [
        at_most("digest of 50,000 rows", max(took, again), DIGEST_S, "s"),
        Bar("digests that differ between hash seeds", int(not equal), "digests", "≤ 0", equal),
    ]


def _proposed(base: str) -> list[Bar]:
    """What alice does, and what bob reads."""
    alice, content = _Person(base), plan_file()
    alice.sign_in("alice", PASSWORD)
    alice.post("/changes/new/", {"cluster": "large", "mode": "explicit", "brokers": ""})
    draft = re.findall(r"/changes/(\d+)/draft/", alice.address)[0]
    what, limits, plan, why = (f"/changes/{draft}/draft/{step}/" for step in ("what", "limits", "plan", "why"))

    version = alice.version(what)
    began = time.perf_counter()
    uploaded = alice.post(what, {"version": version}, file=("plan.json", content))
    alice.post(limits, {**alice.fields(limits), "throttle": "60", "throttle_min": "20", "throttle_max": "80"})
    alice.post(plan, {"version": alice.version(plan)})
    seen = alice.wait_for_plan(plan)
    planned = time.perf_counter() - began
    review = alice.get(f"/changes/{draft}/")
    took = time.perf_counter() - began
    if f"{MOVED:,}" not in review:
        raise RuntimeError(f"the review page does not say that {MOVED:,} partitions move")

    submitted = alice.post(why, {**alice.fields(why), "why": "The bench asks for it."})
    if f"/changes/{draft}/" not in alice.address or "/draft/" in alice.address:
        raise RuntimeError(f"it was not submitted: {alice.address}")
    return [
        at_most("upload to review page", took, UPLOAD_TO_REVIEW_S, "s"),
        Bar("of it the upload of the file", round(uploaded, 3), "s"),
        Bar("of it until the plan is there", round(planned, 3), "s"),
        Bar("progress updates seen", seen, "updates", "≥ 5", seen >= 5),
        at_most("submit and its page", submitted, SUBMIT_S, "s"),
        *_read(base, f"/changes/{draft}/"),
    ]


def _read(base: str, review: str) -> list[Bar]:
    """The review as its approver reads it, over HTTP; queries are counted in this process."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from kafkadash.accounts.models import User

    bob = _Person(base)
    bob.sign_in("bob", PASSWORD)
    readings, size = [], 0
    for _ in range(READINGS):
        began = time.perf_counter()
        size = len(bob.get(review))
        readings.append(time.perf_counter() - began)
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username="bob"))
    client.get(review)
    with CaptureQueriesContext(connection) as queries:
        client.get(review)
    return [
        at_most("review page, p95", percentile(readings, 95), REVIEW_P95_S, "s"),
        Bar("review page, median", round(percentile(readings, 50), 3), "s"),
        Bar("review page, size", round(size / 1000), "kB"),
        at_most("review page, queries", len(queries), REVIEW_QUERIES, "queries"),
    ]


class _Person(Browser):
    """Fills in forms as a browser does; ``address`` is where the last one led."""

    address = ""

    def fields(self, path: str) -> dict[str, str]:
        """What the page's form would send if nothing were typed."""
        return dict(re.findall(r'<input[^>]*?\bname="([a-z_]+)"[^>]*?\bvalue="([^"]*)"', self.get(path)))

    def version(self, path: str) -> str:
        return self.fields(path)["version"]

    def post(self, path: str, fields: Mapping[str, str], file: tuple[str, bytes] | None = None) -> float:
        """Returns the seconds from sending the form to having the page it leads to. Raises RuntimeError."""
        token = re.findall(rf'name="{CSRF_FIELD}" value="([^"]+)"', self.get(path))[0]
        sent = {**fields, CSRF_FIELD: token}
        body, kind = urllib.parse.urlencode(sent).encode(), "application/x-www-form-urlencoded"
        if file is not None:
            body, kind = _multipart(sent, *file)
        headers = {"Referer": f"{self.base}{path}", "Content-Type": kind}
        request = urllib.request.Request(self.base + path, body, headers)  # noqa: S310  loopback
        began = time.perf_counter()
        with self._opener.open(request, timeout=60) as answer:
            self.address, html = answer.url, answer.read().decode()
        took = time.perf_counter() - began
        for mark in ('id="wrong"', 'id="refused"', 'id="conflict"'):
            if mark in html:
                said = " ".join(re.sub(r"<[^>]*>", " ", html.split(mark, 1)[1][:600]).split())
                raise RuntimeError(f"{path} was refused: {said}")
        return took

    def wait_for_plan(self, path: str) -> int:
        """Asks as the open page does; returns how many different states of progress were shown."""
        seen: set[str] = set()
        end = time.monotonic() + 120
        while time.monotonic() < end:
            request = urllib.request.Request(self.base + path, headers={"HX-Request": "true"})  # noqa: S310  loopback
            with self._opener.open(request, timeout=20) as answer:
                if answer.headers.get("HX-Redirect"):
                    return len(seen)
                html = answer.read().decode()
            seen.add(str(re.findall(r'<h2[^>]*>(.*?)</h2>|aria-valuenow="(\d+)"', html)))
            time.sleep(POLL_S)
        raise RuntimeError(f"no plan within two minutes; the last said {seen}")


def _multipart(fields: Mapping[str, str], name: str, content: bytes) -> tuple[bytes, str]:
    edge = "kafkadash-bench-edge"
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    parts.append(f"{head}Content-Type: application/json\r\n\r\n".encode() + content + b"\r\n")
    return b"".join([*parts, f"--{edge}--\r\n".encode()]), f"multipart/form-data; boundary={edge}"


@contextmanager
def _product(folder: Path) -> Iterator[str]:
    """Web, tick and a worker for jobs as the demo runs them, without a collector; yields the address of the pages."""
    from kafkadash.devtools.demo.folder import DemoFolder
    from kafkadash.devtools.demo.supervisor import start_process, wait_for_pages, web_service, workers_and_beat
    from kafkadash.devtools.embedded.ports import LOOPBACK, free_port

    place, port = DemoFolder(folder), free_port()
    started = []
    try:
        for service in (web_service(port), *workers_and_beat()):
            if service.name == "worker-collect":
                continue
            started.append(start_process(service.name, service.arguments, place, dict(os.environ), stage=service.stage))
        wait_for_pages(started[0], port)
        yield f"http://{LOOPBACK}:{port}"
    finally:
        for child in reversed(started):
            child.stop()


def _people() -> None:
    from django.contrib.auth.hashers import make_password

    from kafkadash.accounts.models import User
    from kafkadash.clusters.models import ClusterRole, Role

    for name, role in (("alice", Role.OPERATOR), ("bob", Role.APPROVER)):
        user = User.objects.create(username=name, password=make_password(PASSWORD))
        ClusterRole.objects.create(user=user, role=role)


def _rows() -> None:
    """The cluster as collectors leave it, fresh."""
    from kafkadash.monitoring.models import BrokerState, BrokerWeights, ClusterState, TopicState
    from tests.factories import GB, BrokerFactory, BrokerWeightsFactory, TopicFactory, directory, watched

    now = datetime.now(UTC)
    cluster = watched("large", now)
    ClusterState.objects.filter(cluster=cluster).update(
        partitions=TOPICS * PARTITIONS_OF_EACH, topics=TOPICS, brokers=BROKERS
    )
    BrokerState.objects.filter(cluster=cluster).delete()
    BrokerWeights.objects.filter(cluster=cluster).delete()
    sizes: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    topics = []
    for number in range(TOPICS):
        name = f"orders.{number:03}"
        placed = [placement(number, n) for n in range(PARTITIONS_OF_EACH)]
        for n, replicas in enumerate(placed):
            for broker in replicas:
                sizes[broker][name][str(n)] = GB // 10 + 1_000_000 * (n + number)
        partitions = [[n, r[0], 5, list(r), list(r), []] for n, r in enumerate(placed)]
        topics.append(
            TopicFactory.build(
                cluster=cluster, topic_id=f"id-{number}", name=name, partitions=partitions, changed_at=now
            )
        )
    TopicState.objects.bulk_create(topics, batch_size=100)
    BrokerState.objects.bulk_create(
        BrokerFactory.build(cluster=cluster, broker_id=n, rack=f"rack-{n % RACKS}", changed_at=now)
        for n in range(BROKERS)
    )
    BrokerWeights.objects.bulk_create(
        BrokerWeightsFactory.build(
            cluster=cluster,
            broker_id=n,
            taken_at=now,
            dirs=[directory(total=8000 * GB, usable=6000 * GB)],
            data=zlib.compress(json.dumps(sizes[n]).encode()),
        )
        for n in range(BROKERS)
    )
