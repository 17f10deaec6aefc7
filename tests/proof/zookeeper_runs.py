"""Scenes of the part "zookeeper", one after the other on one cluster, carried out by the stack's own processes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from django.db.models import QuerySet
from django.db.models.functions import Now
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy, RequestState
from kafkadash.changes.plan import RunOptions
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.services import update_connection
from kafkadash.core.messages import pack_value
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.execution.models import Move
from kafkadash.execution.rollback import propose_back
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import JobState
from kafkadash.jobs.runner import enqueue
from kafkadash.kafka import znodes
from kafkadash.kafka.api import ConfigChange, ConfigOperation, ConfigResource, KafkaFailure, KafkaUnreachable
from kafkadash.kafka.connect import own_admin
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.throttles import FOLLOWER_RATE
from kafkadash.kafka.zookeeper import open_session
from kafkadash.monitoring.models import CollectorKind, CollectorRun, ThrottleState, ZooKeeperState
from kafkadash.planning import proposal as drafts
from kafkadash.planning.proposal import DRAIN, PlanInput
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.plans import plan_draft
from kafkadash.throttle_removal.kind import KIND as REMOVAL
from tests.agreement.runs import Run
from tests.agreement.tools import Tools
from tests.chaos.referee import Place, throttles_of
from tests.contract.certificates import Authority, new_authority
from tests.contract.test_zookeeper import write_batch
from tests.kafka_configs import alter
from tests.stack.stack import Stack
from tests.waiting import wait_until

DRAINED = 3
ROWS = 4
ROW_BYTES = 8 * 1024 * 1024
LOWEST, SLOW, QUICKLY = 100_000, 500_000, 4_000_000
RUN_S, READ_S, PLAN_S = 300.0, 60.0, 120.0
ASKED = PlanInput(DRAIN, brokers=(DRAINED,), disk_limit=1.0)
DEADLINE_S = 5.0
READ = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.LOG_DIRS, CollectorKind.CONFIGS)


class Scenes:
    """Every scene raises AssertionError where something does not hold, and leaves the cluster as it found it."""

    def __init__(self, stack: Stack, authority: Authority) -> None:
        self._stack, self._authority = stack, authority
        self._playground = stack.playground
        self._tools = Tools(self._playground)
        self._cluster = Cluster.objects.get()
        self._alice, self._bob = User.objects.get(username="alice"), User.objects.get(username="bob")
        Policy.objects.update_or_create(cluster=self._cluster, defaults={"approvals_high": 1})

    def play_all(self, folder: Path) -> bool:
        """Return whether all hold; what follows a scene that does not hold is not played."""
        scenes: Sequence[tuple[str, Callable[[], None]]] = (
            ("listed and described", lambda: self._list_and_describe(folder)),
            ("drain cancelled", self._cancel_drain),
            ("drain completed, rolled back", self._complete_drain),
            ("drained broker is killed", self._lose_broker),
            ("rate of a broker that is down", self._remove_rate_of_absent),
            ("servers stopped in turn", self._stop_servers_in_turn),
            ("no quorum", self._stop_majority),
            ("TLS", self._ask_over_tls),
            ("migration to KRaft", self._migrate),
        )
        for words, play in scenes:
            began = time.monotonic()
            try:
                play()
            except AssertionError as failed:
                print(f"  {words:<30} WRONG: {failed}", flush=True)  # noqa: T201
                return False
            print(f"  {words:<30} held {time.monotonic() - began:>4.0f} s", flush=True)  # noqa: T201
        return True

    # --- scenes ---

    def _list_and_describe(self, folder: Path) -> None:
        """One move through the API, one through the legacy znode."""
        self._cluster.refresh_from_db()
        assert self._cluster.mode == ClusterMode.ZOOKEEPER, self._cluster.mode
        self._make_topics("listed-api", "listed-znode", placement=[[1, 2]], size=ROW_BYTES)
        for topic in ("listed-api", "listed-znode"):
            alter(self._playground, topic, follower_replication_throttled_replicas="*")
        alter(self._playground, DRAINED, follower_replication_throttled_rate="100000")
        plan = folder / "listed.json"
        rows = [{"topic": "listed-api", "partition": 0, "replicas": [1, 3]}]
        plan.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
        self._tools.run("reassign", "--reassignment-json-file", str(plan), "--execute")
        with self._raw_client() as raw:
            write_batch(raw, [("listed-znode", 0, [1, 3])])
            wait_until(lambda: len(self._tools.moves()) == 2, "Kafka's tool lists both", READ_S)
            self._compare_listing("listed-")
            batch, topic = raw.get(znodes.REASSIGN)[1], raw.get(f"{znodes.TOPICS}/listed-api")[1]
            started = {name: self._describe(f"{name}-0")["started"] for name in ("listed-api", "listed-znode")}
            expected = {
                "listed-api": ("api", None, "zk_mtime", _format_ms(topic.mtime)),
                "listed-znode": ("znode", f"{batch.czxid:#x}", "zk_ctime", _format_ms(batch.ctime)),
            }
            found = {
                name: (each["through"], each["batch"], each["from"], each["not_after"])
                for name, each in started.items()
            }
            assert found == expected, (found, expected)
        plan.write_text(
            json.dumps({"version": 1, "partitions": [*rows, {**rows[0], "topic": "listed-znode"}]}), encoding="utf-8"
        )
        self._tools.run("reassign", "--reassignment-json-file", str(plan), "--cancel")
        wait_until(lambda: self._tools.moves() == [], "nothing moves", READ_S)
        alter(self._playground, DRAINED, follower_replication_throttled_rate=None)
        self._delete_topics("listed-api", "listed-znode")

    def _cancel_drain(self) -> None:
        self._make_topics("cancelled", placement=[[1, 3]] * ROWS, size=ROWS * ROW_BYTES)
        before, throttles = self._assignment("cancelled"), throttles_of(self._tools)
        run = self._drain(SLOW).start()
        moving = self._moves_of(run, "moving")
        wait_until(moving.exists, "a row moves", RUN_S)
        set_now = throttles_of(self._tools)
        assert any(key == FOLLOWER_RATE for _, _, key in set_now), set_now
        assert set_now == self._raw_throttles(), (set_now, self._raw_throttles())
        services.cancel(run.change, self._alice, "All complain.")
        self._ends(run, RequestState.CANCELLED)
        assert {key: set(row) for key, row in self._assignment("cancelled").items()} == {
            key: set(row) for key, row in before.items()
        }, self._assignment("cancelled")
        self._nothing_left(throttles)
        self._delete_topics("cancelled")

    def _complete_drain(self) -> None:
        self._make_topics("drained", placement=[[1, 3], [3, 1]] * (ROWS // 2), size=ROWS * ROW_BYTES)
        before, throttles = self._assignment("drained"), throttles_of(self._tools)
        run = self._drain(QUICKLY).start()
        self._ends(run, RequestState.DONE)
        drained = self._assignment("drained")
        assert all(DRAINED not in row for row in drained.values()), drained
        assert self._raw_assignment("drained") == drained, (self._raw_assignment("drained"), drained)
        self._nothing_left(throttles)
        back = self._approved(propose_back(ChangeRequest.objects.get(pk=run.change.pk), self._alice)).start()
        self._ends(back, RequestState.DONE)
        assert self._assignment("drained") == before, (self._assignment("drained"), before)
        assert self._raw_assignment("drained") == before
        self._nothing_left(throttles)
        self._delete_topics("drained")

    def _lose_broker(self) -> None:
        """Its throttle is removed through its znode, and it starts without one."""
        self._make_topics("orphaned", placement=[[1, 3]] * ROWS, size=ROWS * ROW_BYTES)
        throttles = throttles_of(self._tools)
        run = self._drain(2 * SLOW).start()
        moving = self._moves_of(run, "moving")
        wait_until(moving.exists, "a row moves", RUN_S)
        with self._raw_client() as raw:
            path = f"{znodes.BROKER_CONFIGS}/{DRAINED}"
            assert any("throttled" in key for key in json.loads(raw.get(path)[0])["config"])
            with self._broker_down(raw):
                self._ends(run, RequestState.DONE)
                assert json.loads(raw.get(path)[0])["config"] == {}, raw.get(path)
        assert all(DRAINED not in row for row in self._assignment("orphaned").values())
        self._nothing_left(throttles)
        self._delete_topics("orphaned")

    def _remove_rate_of_absent(self) -> None:
        """Somebody's rate that nothing needs is read from the broker's znode, and removed there by a change."""
        place: Place = ("broker", str(DRAINED), FOLLOWER_RATE)
        throttles = throttles_of(self._tools)
        self._tools.set_config(DRAINED, follower_replication_throttled_rate="100000")
        row = ThrottleState.objects.filter(cluster=self._cluster, name=str(DRAINED), key=FOLLOWER_RATE)
        wait_until(row.filter(orphan=True).exists, "it is an orphan", READ_S)
        with self._raw_client() as raw, self._broker_down(raw):
            self._refresh(CollectorKind.METADATA)
            raw_config = {"version": 1, "config": {FOLLOWER_RATE: "200000"}}
            raw.set(f"{znodes.BROKER_CONFIGS}/{DRAINED}", json.dumps(raw_config).encode())
            wait_until(row.filter(orphan=True, value="200000").exists, "the znode is read", READ_S)
            assert self._raw_throttles()[place] == "200000"
            wanted = {"resource": "broker", "name": str(DRAINED)}
            draft = services.create_draft(self._cluster, REMOVAL, self._alice, title="Proof", input=wanted, options={})
            change = services.start(self._approved(plan_draft(draft)).change, self._alice, "Now.")
            run = ShortRun.objects.filter(request=change)
            wait_until(run.filter(outcome="clean").exists, f"#{change.pk} is done", RUN_S)
            assert place not in self._raw_throttles()
        self._nothing_left(throttles)

    def _stop_servers_in_turn(self) -> None:
        """Whichever server a session would have been with, the next one tells the same."""
        for server in self._playground.cluster.zookeepers:
            self._playground.kill_zookeeper(server.server_id)
            try:
                wait_until(lambda: self._controller_by_raw() is not None, "the others lead", READ_S)
                since = datetime.now(UTC)
                took = self._refresh(CollectorKind.REASSIGNMENTS)
                state = ZooKeeperState.objects.get(cluster=self._cluster)
                assert state.error_code == "", state.error
                assert state.taken_at is not None
                assert state.taken_at >= since.replace(microsecond=0), state.taken_at
                assert state.controller_id == self._controller_by_raw(), state.controller_id
                assert took < READ_S / 2, took
            finally:
                self._playground.start_zookeeper(server.server_id)

    def _stop_majority(self) -> None:
        """Kafka's listing goes on, what ZooKeeper would tell is unknown."""
        stopped = [server.server_id for server in self._playground.cluster.zookeepers[:2]]
        for server in stopped:
            self._playground.kill_zookeeper(server)
        try:
            connection, began = self._cluster.zookeeper_connection(), time.monotonic()
            assert connection is not None
            with pytest.raises(KafkaFailure) as failure, open_session(connection, deadline=DEADLINE_S):
                pass
            assert failure.value.message.code == KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM
            took = time.monotonic() - began
            assert took < DEADLINE_S + 1, took
            self._refresh(CollectorKind.REASSIGNMENTS)
            state = ZooKeeperState.objects.get(cluster=self._cluster)
            assert state.failed_at is not None
            assert state.error_code, "nothing is said"
        finally:
            for server in stopped:
                self._playground.start_zookeeper(server)
        wait_until(self._is_whole, "all brokers are back", READ_S)
        self._refresh(CollectorKind.REASSIGNMENTS)
        state.refresh_from_db()
        assert state.error_code == "", state.error
        assert state.controller_id == self._controller_by_raw()

    def _ask_over_tls(self) -> None:
        """The stored cluster itself is asked over TLS; another authority and another host are refused."""
        secured = self._playground.cluster.secured_zookeeper
        plain = self._cluster.zookeeper
        self._change_connection(zookeeper=secured, zookeeper_tls=True, ca_pem=self._authority.pem)
        since = datetime.now(UTC)
        read = ZooKeeperState.objects.filter(cluster=self._cluster, taken_at__gt=since, error_code="")
        # The first handshakes of a server that just started may take longer than a refresh gives it.
        wait_until(read.exists, "ZooKeeper is read over TLS", READ_S)
        assert read.get().controller_id == self._controller_by_raw()
        self._change_connection(ca_pem=new_authority().pem)
        self._check_tls_refused("signature")
        self._change_connection(zookeeper=secured.replace("127.0.0.1", "localhost"), ca_pem=self._authority.pem)
        self._check_tls_refused("ostname")
        self._change_connection(zookeeper=plain, zookeeper_tls=False, ca_pem="")
        self._refresh(CollectorKind.REASSIGNMENTS)

    def _migrate(self) -> None:
        """The controller of KRaft took the cluster over, its brokers still use ZooKeeper."""
        controller = self._playground.begin_migration()
        for broker in self._brokers:
            self._restart(broker)
        with self._raw_client() as raw:
            wait_until(lambda: self._migrating_by_raw(raw), "the controller of KRaft took over", READ_S)
            wait_until(lambda: raw.exists("/migration") is not None, "the migration is under way", READ_S)
            elected = json.loads(raw.get(znodes.CONTROLLER)[0])
            assert elected["brokerid"] == controller, elected
            self._refresh(CollectorKind.VERSIONS)
            self._refresh(CollectorKind.REASSIGNMENTS)
            self._cluster.refresh_from_db()
            state = ZooKeeperState.objects.get(cluster=self._cluster)
            assert self._cluster.mode == ClusterMode.ZOOKEEPER, self._cluster.mode
            assert (state.migrating, state.controller_id) == (True, controller), (
                state.kraft_epoch,
                state.controller_id,
            )
            assert state.kraft_epoch == elected["kraftControllerEpoch"]
            assert JobErrorCode.MIGRATES in self._said_by_connection_test()
            self._list_while_migrating()
            self._write_nothing(raw)

    def _list_while_migrating(self) -> None:
        self._make_topics("migrating", placement=[[1, 3]], size=ROW_BYTES)
        run = self._drain(LOWEST).start()
        wait_until(lambda: self._moves_of(run, "moving").exists(), "a row moves", RUN_S)
        self._compare_listing("migrating-")
        run.raise_throttle("8")
        self._ends(run, RequestState.DONE)
        assert self._assignment("migrating") == {0: (1, 2)}
        wait_until(lambda: self._raw_assignment("migrating") == {0: (1, 2)}, "ZooKeeper has it too", READ_S)

    def _write_nothing(self, raw: KazooClient) -> None:
        """The rate of a broker that is down stays in ZooKeeper, which is not in charge any more."""
        wait_until(partial(self._set_rate, "100000"), "the KRaft controller takes a rate", READ_S)
        path = f"{znodes.BROKER_CONFIGS}/{DRAINED}"
        wait_until(lambda: ("broker", str(DRAINED), FOLLOWER_RATE) in self._raw_throttles(), "it is there", READ_S)
        with self._broker_down(raw):
            before = raw.get(path)
            removal = [ConfigChange(ConfigResource.broker(DRAINED), FOLLOWER_RATE, ConfigOperation.DELETE)]
            with own_admin(self._cluster.connection()) as admin, pytest.raises(KafkaUnreachable) as refused:
                admin.alter_configs(removal, deadline=DEADLINE_S)
            assert KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE in _codes_of(pack_value(refused.value.message))
            assert raw.get(path) == before
        wait_until(partial(self._set_rate, None), "the KRaft controller removes it", READ_S)

    def _set_rate(self, rate: str | None) -> bool:
        """False while a broker does not yet know that a KRaft controller is in charge."""
        try:
            alter(self._playground, DRAINED, follower_replication_throttled_rate=rate)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.STALE_CTRL_EPOCH:
                raise
            return False
        return True

    # --- asking the product ---

    def _describe(self, name: str) -> dict[str, Any]:
        told = self._stack.manage("reassignments", "describe", name, "--cluster", "demo", "--json")
        [row] = json.loads(told)["reassignments"]
        return dict(row["reassignment"])

    def _compare_listing(self, prefix: str) -> None:
        """As Kafka's tool lists it, with nothing else than what is asked for moving."""
        self._refresh(CollectorKind.REASSIGNMENTS)
        told = self._stack.manage("reassignments", "list", "--cluster", "demo").splitlines()
        by_tool = self._tools.run("reassign", "--list").splitlines()
        rows = [{line for line in each if line.startswith(prefix)} for each in (told, by_tool)]
        assert rows[0] == rows[1], rows
        assert rows[0], told

    def _refresh(self, kind: CollectorKind) -> float:
        """By the stack's own collector, soon; seconds that it took. Raises AssertionError where it does not succeed."""
        own, began = CollectorRun.objects.filter(cluster=self._cluster, kind=kind), time.monotonic()
        before = own.get().succeeded_at
        own.update(next_at=Now())
        try:
            wait_until(lambda: own.get().succeeded_at != before, f"{kind} is read", READ_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {own.get().last_error}") from late
        return time.monotonic() - began

    def _said_by_connection_test(self) -> set[str]:
        job = enqueue(CONNECTION_TEST, cluster=self._cluster)

        def ended() -> bool:
            job.refresh_from_db()
            return job.state not in (JobState.QUEUED, JobState.RUNNING)

        wait_until(ended, "the connection is tested", READ_S)
        return set(_codes_of(job.result))

    def _change_connection(self, **values: Any) -> None:
        self._cluster = update_connection(self._alice, self._cluster, **values)

    def _check_tls_refused(self, part: str) -> None:
        states = ZooKeeperState.objects.filter(cluster=self._cluster)
        refused = states.filter(failed_at__gt=datetime.now(UTC), error_code=KafkaErrorCode.TLS_FAILED)
        wait_until(refused.exists, "the server is refused", READ_S)
        assert part in refused.get().error_params["reason"], refused.get().error

    def _drain(self, rate: int) -> Run:
        """Of broker 3, planned by a worker, proposed by alice, approved by bob."""
        for kind in (
            CollectorKind.METADATA,
            CollectorKind.REASSIGNMENTS,
            CollectorKind.LOG_DIRS,
            CollectorKind.CONFIGS,
        ):
            self._refresh(kind)
        draft = drafts.begin_draft(self._cluster, self._alice, ASKED.mode, ASKED.brokers)
        options = RunOptions(throttle=rate, throttle_min=LOWEST, throttle_max=50_000_000)
        drafts.save_limits(drafts.PlanDraft(draft), self._alice, draft.version, ASKED, options)
        draft.refresh_from_db()
        job = drafts.start_planning(draft, self._alice, draft.version)

        def planned() -> bool:
            draft.refresh_from_db()
            job.refresh_from_db()
            return draft.artifact_id is not None or job.state == JobState.FAILED

        wait_until(planned, f"#{draft.pk} is planned", PLAN_S)
        assert draft.artifact_id is not None, (job.error, job.result)
        return self._approved(draft)

    def _approved(self, draft: ChangeRequest) -> Run:
        refused = ""

        def proposed() -> bool:
            """It waits for its plan, and for facts that are young enough."""
            nonlocal draft, refused
            draft.refresh_from_db()
            try:
                draft = services.submit(draft, self._alice, why="A proof.", version=draft.version)
            except ChangeRefused as why:
                refused = str(why)
                return False
            return True

        try:
            wait_until(proposed, f"#{draft.pk} is proposed", PLAN_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {refused}") from late
        return Run(services.approve(draft, self._bob, draft.digest), self._alice)

    def _ends(self, run: Run, state: RequestState) -> None:
        try:
            wait_until(lambda: run.state == state, f"#{run.change.pk} is {state.label}", RUN_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {run.stands()}") from late

    def _moves_of(self, run: Run, state: str) -> QuerySet[Move]:
        return Move.objects.filter(execution__request=run.change, state=state)

    # --- asking Kafka's tools and ZooKeeper ---

    @contextmanager
    def _raw_client(self) -> Iterator[KazooClient]:
        client = KazooClient(self._playground.cluster.zookeeper)
        client.start(timeout=READ_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def _assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        return {number: row.replicas for number, row in self._tools.topics()[topic].partitions.items()}

    def _raw_assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        with self._raw_client() as raw:
            content = json.loads(raw.get(f"{znodes.TOPICS}/{topic}")[0])
        return {int(number): tuple(row) for number, row in sorted(content["partitions"].items())}

    def _raw_throttles(self) -> dict[Place, str]:
        """As of ``throttles_of``, from the znodes."""
        found: dict[Place, str] = {}
        with self._raw_client() as raw:
            for kind in ("broker", "topic"):
                for name in raw.get_children(f"/config/{kind}s"):
                    for key, value in json.loads(raw.get(f"/config/{kind}s/{name}")[0])["config"].items():
                        if "replication.throttled" in key:
                            found[kind, "" if name == "<default>" else name, key] = value
        return found

    def _nothing_left(self, before: Mapping[Place, str]) -> None:
        """Throttles are as they were, by Kafka's tool and by the znodes."""
        now, raw = throttles_of(self._tools), self._raw_throttles()
        assert now == raw == before, (now, raw, before)

    def _controller_by_raw(self) -> int | None:
        with self._raw_client() as raw:
            try:
                return int(json.loads(raw.get(znodes.CONTROLLER)[0])["brokerid"])
            except NoNodeError:
                return None

    def _migrating_by_raw(self, raw: KazooClient) -> bool:
        try:
            return bool(json.loads(raw.get(znodes.CONTROLLER)[0]).get("kraftControllerEpoch", -1) > 0)
        except NoNodeError:
            return False

    # --- changing the cluster ---

    @property
    def _brokers(self) -> list[int]:
        return [node.node_id for node in self._playground.cluster.brokers]

    def _make_topics(self, *names: str, placement: Sequence[Sequence[int]], size: int) -> None:
        topics = [LoadTopic(name, placement=placement, fill_bytes=size) for name in names]
        load_topics(self._playground.bootstrap, topics)
        wait_until(self._tools.in_sync, "every replica is in sync", READ_S)

    def _delete_topics(self, *names: str) -> None:
        for name in names:
            self._tools.run("topics", "--delete", "--topic", name)
        wait_until(lambda: not set(names) & set(self._tools.topics()), f"{names} are gone", READ_S)

    @contextmanager
    def _broker_down(self, raw: KazooClient) -> Iterator[None]:
        path = f"{znodes.BROKERS}/{DRAINED}"
        self._stack.pause(f"kafka-{DRAINED}")
        try:
            wait_until(lambda: not raw.exists(path), "its session ends", READ_S)
            yield
        finally:
            self._stack.resume(f"kafka-{DRAINED}")
        wait_until(self._is_whole, "all brokers are back", READ_S)

    def _restart(self, broker: int) -> None:
        name = f"kafka-{broker}"
        starts = self._stack.starts(name)
        self._stack.kill(name, signal.SIGTERM)
        wait_until(lambda: self._stack.starts(name) > starts, f"{name} is started again", READ_S)
        self._stack.wait_serving(name)

    def _is_whole(self) -> bool:
        """Every broker is registered and serves, and every replica is in sync."""
        with suppress(OSError, AssertionError):
            return not any(self._tools.fenced(broker) for broker in self._brokers) and self._tools.in_sync()
        return False


def _format_ms(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _codes_of(stored: object) -> Iterator[str]:
    """Codes of messages anywhere in what was stored as JSON."""
    if isinstance(stored, dict):
        for key, value in stored.items():
            if key == "code" and isinstance(value, str):
                yield value
            yield from _codes_of(value)
    elif isinstance(stored, list):
        for value in stored:
            yield from _codes_of(value)
