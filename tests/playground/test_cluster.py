"""The playground is a real cluster: what was asked for, and what Kafka's own tools say about it.

`manage.py playground` without any database: what it prints, and its exit codes.

Kafka's tools answer from the shared process as their scripts do. All of them: ``make proof ARGS=tools``.

The load generator writes what it says, where it says, and stays within bounds.

Consumer groups of the playground do what their behaviour says.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import psutil
import pytest
from django.core.management import CommandError, call_command
from py4j import java_gateway
from pyspark.errors.exceptions.captured import install_exception_handler

from kafkadash.core.messages import message_text
from kafkadash.devtools.embedded.files import lock_file
from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.embedded.process import FolderInUseError, ServerError, live_children, recorded, spawn
from kafkadash.devtools.management.commands import playground
from kafkadash.devtools.playground.cluster import (
    KafkaPlayground,
    new_cluster,
    prepare_runtime,
    read_cluster,
    write_cluster,
)
from kafkadash.devtools.playground.consumers import FED, GROUPS, QUIET, GroupBehaviour, PlaygroundConsumers
from kafkadash.devtools.playground.errors import PlaygroundErrorCode
from kafkadash.devtools.playground.load import MIB, LoadTopic, SteadyReport, load_topics, produce_steadily
from kafkadash.kafka.api import ClusterConnection, GroupDescription
from kafkadash.kafka.mutations import WireClient
from tests import tool_server
from tests.embedded_plugin import RUN_FOLDER
from tests.playground.conftest import KEPT, ROOT, Grown, Killed
from tests.raised_codes import raises_code
from tests.tool_server import BELOW_MAIN, ToolServer, compare_with_script
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")


def tool(playground: KafkaPlayground, name: str, *args: str) -> str:
    done = playground.tool(name, args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_sync(playground: KafkaPlayground, topic: str) -> list[set[int]]:
    text = tool(playground, "topics", "--describe", "--topic", topic)
    return [{int(i) for i in ids.split(",")} for ids in re.findall(r"Isr: ([\d,]+)", text)]


def log_dirs(playground: KafkaPlayground) -> dict[int, dict[str, set[str]]]:
    """Broker → log directory → partitions in it, as Kafka's tool prints them."""
    text = tool(playground, "log-dirs", "--describe")
    document = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    return {
        broker["broker"]: {
            directory["logDir"]: {partition["partition"] for partition in directory["partitions"]}
            for directory in broker["logDirs"]
        }
        for broker in document["brokers"]
    }


def test_it_has_the_brokers_racks_and_directories_asked_for(whole: KafkaPlayground) -> None:
    load_topics(whole.bootstrap, [LoadTopic("shape", partitions=6, rf=2)])
    assert {broker: len(directories) for broker, directories in log_dirs(whole).items()} == {1: 2, 2: 2, 3: 2}
    # Two racks, two replicas: Kafka itself puts one in each rack only when it knows them.
    rack = {node.node_id: node.rack for node in whole.cluster.brokers}
    assert rack == {1: "a", 2: "b", 3: "b"}
    for replicas in in_sync(whole, "shape"):
        assert {rack[broker] for broker in replicas} == {"a", "b"}
    assert whole.cluster.cluster_id in tool(whole, "cluster", "cluster-id")


def test_status_names_every_process_and_its_memory(whole: KafkaPlayground) -> None:
    nodes = whole.status()
    assert [(node.node_id, node.roles) for node in nodes] == [(1, "broker+controller"), (2, "broker"), (3, "broker")]
    for node in nodes:
        assert node.pid is not None
        assert node.memory_bytes is not None
        assert 50e6 < node.memory_bytes < 1e9
        listening = {c.laddr for c in psutil.Process(node.pid).net_connections("tcp") if c.status == "LISTEN"}
        ports = {port for port in (node.broker_port, node.controller_port) if port is not None}
        assert {address.port for address in listening} == ports
        assert all(address.ip.endswith(LOOPBACK) for address in listening), listening


def test_a_tools_own_exit_code_and_words_are_passed_on(whole: KafkaPlayground) -> None:
    done = whole.tool("topics", ["--describe", "--topic", "no-such-topic"])
    assert done.returncode == 1
    assert "no-such-topic" in done.stdout + done.stderr
    with raises_code(PlaygroundErrorCode.TOOL_UNKNOWN, ServerError, name="format"):
        whole.tool("format", [])


def test_a_broker_that_crashed__leaves_the_isr_and_comes_back_where_a_port_is_free(whole: KafkaPlayground) -> None:
    load_topics(whole.bootstrap, [LoadTopic("crashed", placement=[(3, 1), (1, 3)], fill_bytes=500_000)])
    psutil.Process(whole.process(3).pid).kill()
    wait_until(lambda: whole.status()[2].pid is None, "the crash is seen")
    assert [child.name for child in recorded(whole.folder) if not child.alive()] == ["kafka-3"]
    with raises_code(PlaygroundErrorCode.NODE_DOES_NOT_RUN, ServerError, node=3):
        whole.kill_broker(3)
    wait_until(lambda: in_sync(whole, "crashed") == [{1}, {1}], "broker 3 is out of the ISR", 60)
    port = whole.cluster.brokers[2].broker_port
    assert port is not None
    with socket.create_server((LOOPBACK, port)):
        whole.start_broker(3)
    assert whole.cluster.brokers[2].broker_port != port
    wait_until(lambda: in_sync(whole, "crashed") == [{1, 3}, {1, 3}], "broker 3 is back in the ISR", 60)
    assert sorted(child.name for child in recorded(whole.folder)) == ["kafka-1", "kafka-2", "kafka-3"]
    with raises_code(PlaygroundErrorCode.NODE_RUNS, ServerError, node=3):
        whole.start_broker(3)


def test_names_of_nodes_that_are_not_there_are_one_sentence(whole: KafkaPlayground) -> None:
    with raises_code(PlaygroundErrorCode.NODE_UNKNOWN, ServerError, role="broker", node=9):
        whole.stop_broker(9)
    with raises_code(PlaygroundErrorCode.NODE_UNKNOWN, ServerError, role="controller", node=2):
        whole.kill_controller(2)


def test_asking_an_existing_folder_for_another_shape_is_refused(whole: KafkaPlayground) -> None:
    with raises_code(PlaygroundErrorCode.PLAYGROUND_IS_OTHER, ServerError, have=3, want=5):
        whole.up(brokers=5)
    with raises_code(PlaygroundErrorCode.PLAYGROUND_IS_OTHER, ServerError, have="a,b,b", want="a,b,c"):
        whole.up(racks=("a", "b", "c"))


def test_another_process_may_not_start_the_cluster_that_is_ours(whole: KafkaPlayground) -> None:
    code = (
        "import sys; from pathlib import Path; from kafkadash.devtools.playground.cluster import KafkaPlayground;"
        "KafkaPlayground(Path(sys.argv[1])).up()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(whole.folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert FolderInUseError.__name__ in done.stderr
    assert all(node.pid is not None for node in whole.status())


def test_data_and_identity_survive_down_and_up_even_when_ports_are_taken(whole: KafkaPlayground, grown: Grown) -> None:
    assert grown.freed == []
    before, after = grown.made.nodes[0], grown.again.nodes[0] if grown.again else None
    assert after is not None
    assert grown.again is not None
    assert (grown.again.cluster_id, after.broker_port) == (grown.made.cluster_id, before.broker_port)
    assert after.controller_port != before.controller_port
    assert in_sync(whole, KEPT) == [{1}]
    assert grown.made.cluster_id in tool(whole, "cluster", "cluster-id")
    assert f":{after.controller_port}" in tool(whole, "quorum", "describe", "--status")


def test_a_folder_that_kafka_cannot_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="comma"):
        KafkaPlayground(tmp_path / "one, two").up(brokers=1)


def test_reset_leaves_nothing_of_a_cluster(tmp_path: Path) -> None:
    playground = KafkaPlayground(tmp_path)
    write_cluster(tmp_path, new_cluster(1, ("a",), 1, 1))
    for name in ("data", "config", "logs"):
        (tmp_path / name / "kafka-1").mkdir(parents=True)
    (tmp_path / "mine").touch()
    node = spawn(tmp_path, "kafka-1", [sys.executable, "-c", "import time; time.sleep(600)"], log=tmp_path / "log")
    playground.reset()
    assert not node.alive()
    assert live_children(tmp_path) == []
    assert read_cluster(tmp_path) is None
    assert {path.name for path in tmp_path.iterdir()} >= {"mine"}
    assert not {"data", "config", "logs"} & {path.name for path in tmp_path.iterdir()}


def test_what_a_killed_supervisor_left_is_ended_and_the_cluster_started_anew(grown: Grown) -> None:
    """Stands for a node: what really was one, the demo's test and ``make proof ARGS=playground`` leave behind."""
    assert grown.left_lived
    assert not grown.left.alive()
    assert grown.left.pid not in {node.pid for node in grown.playground.status()}


def test_a_broker_is_added_while_it_runs_and_kafka_knows_it_and_its_rack_from_then_on(
    whole: KafkaPlayground, grown: Grown
) -> None:
    assert grown.added == 3
    assert [node.roles for node in grown.at_last] == ["broker+controller", "broker", "broker"]
    assert [node.pid for node in grown.at_last[:2]] == [node.pid for node in grown.mended], "the others ran on"
    assert grown.at_last[2].pid is not None
    assert racks_of(whole) == {1: "a", 2: "b", 3: "b"}
    assert re.search(r"0 of 1 are running\. Start the others with `playground up`, then add the broker", grown.refusal)


def test_adding_a_broker_may_be_killed_at_any_point(whole: KafkaPlayground, grown: Grown) -> None:
    assert grown.killed == {
        "write_cluster": Killed([1], formatted=True, running=[True]),
        "_start": Killed([1, 2], formatted=True, running=[True, False]),
    }
    assert [node.pid is not None for node in grown.mended] == [True, True]
    assert racks_of(whole)[2] == "b"


def racks_of(playground: KafkaPlayground) -> dict[int, str]:
    """Of the brokers that are up, as Kafka's own tool says."""
    text = tool(playground, "cluster", "list-endpoints", "--include-fenced-brokers")
    rows = re.findall(r"^(\d+)\s+\S+\s+\d+\s+(\S+)\s+unfenced\s", text, re.MULTILINE)
    return {int(node): rack for node, rack in rows}


def stamps(playground: KafkaPlayground, name: str, words: str) -> list[str]:
    """Of the lines of a node's log that have these words; a text that sorts."""
    log = playground.layout.log(name).read_text()
    return re.findall(rf"^\[([\d\-: ,]+)\] .*{re.escape(words)}", log, re.MULTILINE)


def command(folder: Path, *args: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), "playground", "--folder", str(folder), *args]


def environment() -> dict[str, str]:
    """No database and no Valkey are configured."""
    return {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}


def call(folder: Path, *args: str) -> tuple[int, str, str]:
    """The command in this process: exit code, what it printed, what it printed as errors.

    Nodes that it starts belong to this process; as detached ones they would be ended and started again by whoever
    wants the cluster next.
    """
    out, err = io.StringIO(), io.StringIO()
    attached = mock.patch.object(
        playground, "KafkaPlayground", lambda folder, **said: KafkaPlayground(folder, say=said["say"])
    )
    try:
        with attached:
            call_command("playground", "--folder", str(folder), *args, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_without_a_database_and_a_playground_it_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, "status"), capture_output=True, text=True, env=environment(), timeout=120, check=False
    )
    assert done.returncode == 1
    told = message_text(PlaygroundErrorCode.NO_PLAYGROUND, folder=tmp_path)
    assert done.stderr == f"CommandError: {told}\n"


def test_down_where_nothing_runs_is_no_error(tmp_path: Path) -> None:
    assert call(tmp_path, "down") == (0, "", "")


def test_status_and_the_ways_to_stop_and_start_a_broker(whole: KafkaPlayground) -> None:
    _, stopped, _ = call(whole.folder, "stop-broker", "3")
    assert "stopped" in stopped.splitlines()[3]
    with pytest.raises(CommandError, match=r"Node 3 is not running\."):
        call(whole.folder, "stop-broker", "3")
    call(whole.folder, "start-broker", "3")
    pid = next(node.pid for node in whole.status() if node.node_id == 3)
    _, status, _ = call(whole.folder, "status")
    assert f" {pid} " in status.splitlines()[3]


def test_a_tools_output_and_exit_code_are_its_own(whole: KafkaPlayground) -> None:
    code, out, _ = call(whole.folder, "tool", "cluster", "--", "cluster-id")
    assert (code, out.strip()) == (0, f"Cluster ID: {whole.cluster.cluster_id}")
    direct = whole.tool("reassign", ["--no-such-option"])
    assert direct.returncode != 0
    passed_on = call(whole.folder, "tool", "reassign", "--", "--no-such-option")
    assert passed_on == (direct.returncode, direct.stdout, direct.stderr)


def test_load_fills_and_then_produces_until_it_is_told_to_stop(whole: KafkaPlayground) -> None:
    args = ["load", "--topics", "1", "--partitions", "2", "--rf", "1", "--mb", "1", "--rate", "100000"]
    process = subprocess.Popen(
        command(whole.folder, *args, "--prefix", "typed"), env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: "typed-1" in whole.tool("topics", ["--list"]).stdout, "the topic is there", 60)
        assert process.stdout is not None
        assert "1 MiB produced" in process.stdout.readline()
        assert "until Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert rest.startswith("Produced ")


def test_tool_server__tool_refuses_an_option__has_its_exit_code_and_trace(whole: KafkaPlayground) -> None:
    answer = compare_with_script(whole, "topics", "--no-such-option")
    assert answer.returncode == 1
    assert not BELOW_MAIN.search(answer.stderr)


def test_tool_server__spark_was_used_in_this_process__answers_the_same(
    runtime: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark replaces py4j's reader of answers by one that calls Spark's classes where there is an exception."""
    monkeypatch.setattr(java_gateway, "get_return_value", java_gateway.get_return_value)  # put back at the end
    install_exception_handler()
    answer = ToolServer(Path(os.environ[RUN_FOLDER])).run("org.apache.kafka.tools.LogDirsCommand", ["--no-such"], 60.0)
    assert answer.returncode == 1


def test_tool_server__killed__is_started_again(runtime: None) -> None:
    run_folder = Path(os.environ[RUN_FOLDER])
    server = ToolServer(run_folder)
    version = "org.apache.kafka.tools.LogDirsCommand", ["--version"], 60.0
    first = server.run(*version).stdout
    with lock_file(run_folder / f"{tool_server.NAME}.lock"):  # no other worker waits for an answer
        process = server.process
        assert process is not None
        process.kill()
    assert server.run(*version).stdout == first
    assert server.process is not None
    assert server.process.pid != process.pid


def test_shared_tools__class_archive_is_being_recorded__do_not_wait_for_it(tmp_path: Path, runtime: None) -> None:
    """A new machine formats the storage of its training node before there is a runtime to share."""
    prepared = prepare_runtime(lambda _: None)
    echo = dataclasses.replace(prepared.java, path=Path("/bin/echo"))
    unrecorded = dataclasses.replace(prepared, java=echo, archive=tmp_path / "none")
    with mock.patch.object(tool_server, "prepare_runtime", side_effect=AssertionError("would wait for itself")):
        assert "kafka.tools.StorageTool" in unrecorded.run_class("kafka.tools.StorageTool", [], 10.0).stdout


def sizes(playground: KafkaPlayground, topic: str) -> dict[str, int]:
    """Partition → bytes on broker 1, as Kafka's tool prints them."""
    text = tool(playground, "log-dirs", "--describe", "--broker-list", "1", "--topic-list", topic)
    return {name: int(size) for name, size in re.findall(r'"partition":"([^"]+)","size":(\d+)', text)}


def test_it_produces_the_amount_asked_for_evenly_and_incompressible(whole: KafkaPlayground) -> None:
    report = load_topics(whole.bootstrap, 2, 4, 3, 8, prefix="amount")
    assert report.topics == report.created == ("amount-1", "amount-2")
    assert report.bytes == 8 * MIB
    for topic in report.topics:
        found = sizes(whole, topic)
        assert len(found) == 4
        for size in found.values():
            assert MIB <= size < 1.02 * MIB


def test_partitions_are_placed_where_the_test_wants_them(whole: KafkaPlayground) -> None:
    load_topics(whole.bootstrap, [LoadTopic("placed", placement=[(2, 3), (3, 2), (2, 1)])])
    text = tool(whole, "topics", "--describe", "--topic", "placed")
    assert re.findall(r"Leader: (\d+)\s+Replicas: ([\d,]+)", text) == [("2", "2,3"), ("3", "3,2"), ("2", "2,1")]
    on_broker_1 = set().union(*log_dirs(whole)[1].values())
    assert {name for name in on_broker_1 if name.startswith("placed-")} == {"placed-2"}


def test_topics_that_exist_are_kept_and_filled_again_only_when_wanted(whole: KafkaPlayground) -> None:
    topic = LoadTopic("again", partitions=1, rf=1, fill_bytes=200_000)
    assert load_topics(whole.bootstrap, [topic]).created == ("again",)
    second = load_topics(whole.bootstrap, [topic], only_new=True)
    assert (second.created, second.bytes) == ((), 0)
    assert load_topics(whole.bootstrap, [topic]).bytes == 200_000


def test_every_topic_has_bounds(whole: KafkaPlayground) -> None:
    load_topics(whole.bootstrap, [LoadTopic("bounded", partitions=2, rf=1, fill_bytes=16 * MIB)])
    text = tool(whole, "configs", "--describe", "--entity-type", "topics", "--entity-name", "bounded")
    config = dict(re.findall(r"^\s+(\S+?)=(\S+) sensitive", text, re.MULTILINE))
    assert int(config["retention.bytes"]) == 12 * MIB
    assert int(config["segment.bytes"]) == 2 * MIB
    assert int(config["retention.ms"]) > 0


def test_a_topic_that_kafka_refuses_is_one_sentence(whole: KafkaPlayground) -> None:
    with raises_code(PlaygroundErrorCode.TOPIC_REFUSED, ServerError, topic="too-many", match="[Rr]eplication factor"):
        load_topics(whole.bootstrap, [LoadTopic("too-many", rf=4)])


def test_a_steady_producer_keeps_its_rate_until_it_is_stopped(whole: KafkaPlayground) -> None:
    load_topics(whole.bootstrap, [LoadTopic("steady", partitions=3, rf=1, placement=[(1,), (1,), (1,)])])
    stop = threading.Event()
    reports: list[SteadyReport] = []
    producer = threading.Thread(
        target=lambda: reports.append(produce_steadily(whole.bootstrap, ["steady"], 200_000, stop)), daemon=True
    )
    producer.start()
    wait_until(lambda: sum(sizes(whole, "steady").values()) > 600_000, "three seconds' worth has arrived", 60)
    assert all(size > 100_000 for size in sizes(whole, "steady").values())
    stop.set()
    producer.join(20)
    [report] = reports
    assert report.dropped == 0
    # What was acknowledged is what the broker has, apart from the frames around it.
    assert report.delivered <= sum(sizes(whole, "steady").values()) < report.delivered * 1.05


def test_a_steady_producer_without_a_topic_is_told_so(whole: KafkaPlayground) -> None:
    with raises_code(PlaygroundErrorCode.NO_TOPIC_TO_WRITE, ServerError, topics="nowhere"):
        produce_steadily(whole.bootstrap, ["nowhere"], 1000, threading.Event())


DEADLINE = 10.0
JOINED_S = 60  # in a group of KIP-848 members hear of their partitions with a heartbeat, every five seconds
PARTITIONS = 6


@contextmanager
def client(playground: KafkaPlayground) -> Iterator[WireClient]:
    admin = WireClient(ClusterConnection("playground", 1, tuple(playground.bootstrap.split(","))))
    try:
        yield admin
    finally:
        admin.close()


def committed(admin: WireClient, group: str, topic: str = FED) -> int:
    """Over all partitions; −1 where one has no commit yet."""
    offsets = admin.committed([group], deadline=DEADLINE).offsets[group].get(topic, {})
    return sum(offsets.values()) if len(offsets) == (1 if topic == QUIET else PARTITIONS) else -1


def end(admin: WireClient, topic: str = FED) -> int:
    count = 1 if topic == QUIET else PARTITIONS
    return sum(span.end for span in admin.log_spans({topic: range(count)}, deadline=DEADLINE).spans[topic].values())


def group(admin: WireClient, name: str) -> GroupDescription:
    return admin.groups(deadline=DEADLINE).groups[name]


def begins(admin: WireClient, name: str, topic: str) -> None:
    wait_until(lambda: committed(admin, name, topic) >= 0, f"{name} commits", JOINED_S)


def moves_on(read: Callable[[], int], what: str) -> None:
    first = read()
    wait_until(lambda: read() > first, what)


def goes_back(read: Callable[[], int], what: str) -> None:
    seen = [read()]

    def less_than_before() -> bool:
        seen.append(read())
        return seen[-1] < seen[-2]

    wait_until(less_than_before, what)


def test_each_group_behaves_as_it_is_meant_to(whole: KafkaPlayground) -> None:
    names = [each.group for each in GROUPS]
    with client(whole) as admin, PlaygroundConsumers(whole.bootstrap, rewind_every=3.0) as consumers:
        for each in GROUPS:
            begins(admin, each.group, each.topic)
        stalled, stopped = committed(admin, "invoice-writer"), committed(admin, "mail-sender")
        moves_on(lambda: committed(admin, "dispatch"), "the healthy group commits on")
        moves_on(lambda: end(admin) - committed(admin, "delivery-statistics"), "the lagging group falls behind")
        goes_back(lambda: committed(admin, "search-index"), "the rewinding group goes back")

        assert set(names) <= admin.groups(deadline=DEADLINE).groups.keys()
        assert (group(admin, "dispatch").type, len(group(admin, "dispatch").members or ())) == ("Consumer", 2)
        assert len(group(admin, "invoice-writer").members or ()) == 2
        assert committed(admin, "invoice-writer") == stalled < end(admin)
        assert (group(admin, "mail-sender").state, committed(admin, "mail-sender")) == ("Empty", stopped)
        assert stopped < end(admin)
        assert group(admin, "price-import").state == "Empty"
        assert committed(admin, "price-import", QUIET) == end(admin, QUIET) > 0

        consumers.behave("dispatch", GroupBehaviour.STOPPED)
        assert group(admin, "dispatch").state == "Empty"
        consumers.behave("invoice-writer", GroupBehaviour.HEALTHY)
        moves_on(lambda: committed(admin, "invoice-writer"), "it commits again")
        before = committed(admin, "delivery-statistics")
        consumers.rewind("delivery-statistics", 20)
        assert committed(admin, "delivery-statistics") < before
    with client(whole) as admin:
        assert {group(admin, name).state for name in names} == {"Empty"}


def test_the_command_runs_them_until_it_is_told_to_stop(whole: KafkaPlayground) -> None:
    with subprocess.Popen(
        command(whole.folder, "consume", "--rate", "10"), stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout
        said = [process.stdout.readline() for _ in range(len(GROUPS) + 1)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [line.split()[0] for line in said[:-1]] == [each.group for each in GROUPS]
    assert said[-1] == "Producing 10 records/s until Ctrl-C\n"
