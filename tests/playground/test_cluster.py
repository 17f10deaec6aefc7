"""The playground is a real cluster: what was asked for, and what Kafka's own tools say about it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import FolderInUseError, ServerError, children, recorded, spawn
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import Topic, load
from kafkadash.playground.state import new_cluster, read_cluster, write_cluster
from tests.playground.conftest import KEPT, ROOT, Grown, Killed
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")


def tool(playground: Playground, name: str, *args: str) -> str:
    done = playground.tool(name, args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_sync(playground: Playground, topic: str) -> list[set[int]]:
    text = tool(playground, "topics", "--describe", "--topic", topic)
    return [{int(i) for i in ids.split(",")} for ids in re.findall(r"Isr: ([\d,]+)", text)]


def log_dirs(playground: Playground) -> dict[int, dict[str, set[str]]]:
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


def test_it_has_the_brokers_racks_and_directories_asked_for(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("shape", partitions=6, rf=2)])
    assert {broker: len(directories) for broker, directories in log_dirs(whole).items()} == {1: 2, 2: 2, 3: 2}
    # Two racks, two replicas: Kafka itself puts one in each rack only when it knows them.
    rack = {node.node_id: node.rack for node in whole.cluster.brokers}
    assert rack == {1: "a", 2: "b", 3: "b"}
    for replicas in in_sync(whole, "shape"):
        assert {rack[broker] for broker in replicas} == {"a", "b"}
    assert whole.cluster.cluster_id in tool(whole, "cluster", "cluster-id")


def test_status_names_every_process_and_its_memory(whole: Playground) -> None:
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


def test_a_tools_own_exit_code_and_words_are_passed_on(whole: Playground) -> None:
    done = whole.tool("topics", ["--describe", "--topic", "no-such-topic"])
    assert done.returncode == 1
    assert "no-such-topic" in done.stdout + done.stderr
    with pytest.raises(ServerError, match=r"No tool 'format'; there are reassign, configs"):
        whole.tool("format", [])


def test_a_broker_that_crashed__leaves_the_isr_and_comes_back_where_a_port_is_free(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("crashed", placement=[(3, 1), (1, 3)], fill_bytes=500_000)])
    psutil.Process(whole.process(3).pid).kill()
    wait_until(lambda: whole.status()[2].pid is None, "the crash is seen")
    assert [child.name for child in recorded(whole.folder) if not child.alive()] == ["kafka-3"]
    with pytest.raises(ServerError, match="Node 3 does not run"):
        whole.kill_broker(3)
    wait_until(lambda: in_sync(whole, "crashed") == [{1}, {1}], "broker 3 is out of the ISR", 60)
    port = whole.cluster.brokers[2].broker_port
    assert port is not None
    with socket.create_server((LOOPBACK, port)):
        whole.start_broker(3)
    assert whole.cluster.brokers[2].broker_port != port
    wait_until(lambda: in_sync(whole, "crashed") == [{1, 3}, {1, 3}], "broker 3 is back in the ISR", 60)
    assert sorted(child.name for child in recorded(whole.folder)) == ["kafka-1", "kafka-2", "kafka-3"]
    with pytest.raises(ServerError, match="Node 3 already runs"):
        whole.start_broker(3)


def test_names_of_nodes_that_are_not_there_are_one_sentence(whole: Playground) -> None:
    with pytest.raises(ServerError, match=r"No broker 9 here; there are 1, 2, 3\."):
        whole.stop_broker(9)
    with pytest.raises(ServerError, match=r"No controller 2 here; there are 1\."):
        whole.kill_controller(2)


def test_asking_an_existing_folder_for_another_shape_is_refused(whole: Playground) -> None:
    with pytest.raises(ServerError, match=r"has other brokers \(3, not 5\)"):
        whole.up(brokers=5)
    with pytest.raises(ServerError, match=r"has other racks \(a,b,b, not a,b,c\)"):
        whole.up(racks=("a", "b", "c"))


def test_another_process_may_not_start_the_cluster_that_is_ours(whole: Playground) -> None:
    code = (
        "import sys; from pathlib import Path; from kafkadash.playground.cluster import Playground;"
        "Playground(Path(sys.argv[1])).up()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(whole.folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert FolderInUseError.__name__ in done.stderr
    assert all(node.pid is not None for node in whole.status())


def test_data_and_identity_survive_down_and_up_even_when_ports_are_taken(whole: Playground, grown: Grown) -> None:
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
        Playground(tmp_path / "one, two").up(brokers=1)


def test_reset_leaves_nothing_of_a_cluster(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    write_cluster(tmp_path, new_cluster(1, ("a",), 1, 1))
    for name in ("data", "config", "logs"):
        (tmp_path / name / "kafka-1").mkdir(parents=True)
    (tmp_path / "mine").touch()
    node = spawn(tmp_path, "kafka-1", [sys.executable, "-c", "import time; time.sleep(600)"], log=tmp_path / "log")
    playground.reset()
    assert not node.alive()
    assert children(tmp_path) == []
    assert read_cluster(tmp_path) is None
    assert {path.name for path in tmp_path.iterdir()} >= {"mine"}
    assert not {"data", "config", "logs"} & {path.name for path in tmp_path.iterdir()}


def test_what_a_killed_supervisor_left_is_ended_and_the_cluster_started_anew(grown: Grown) -> None:
    """Stands for a node: what really was one, the demo's test and ``make proof ARGS=playground`` leave behind."""
    assert grown.left_lived
    assert not grown.left.alive()
    assert grown.left.pid not in {node.pid for node in grown.playground.status()}


def test_a_broker_is_added_while_it_runs_and_kafka_knows_it_and_its_rack_from_then_on(
    whole: Playground, grown: Grown
) -> None:
    assert grown.added == 3
    assert [node.roles for node in grown.at_last] == ["broker+controller", "broker", "broker"]
    assert [node.pid for node in grown.at_last[:2]] == [node.pid for node in grown.mended], "the others ran on"
    assert grown.at_last[2].pid is not None
    assert racks_of(whole) == {1: "a", 2: "b", 3: "b"}
    assert re.search(r"0 of 1 run here\. Start the others with `playground up`, then add it", grown.refusal)


def test_adding_a_broker_may_be_killed_at_any_point(whole: Playground, grown: Grown) -> None:
    assert grown.killed == {
        "write_cluster": Killed([1], formatted=True, running=[True]),
        "_start": Killed([1, 2], formatted=True, running=[True, False]),
    }
    assert [node.pid is not None for node in grown.mended] == [True, True]
    assert racks_of(whole)[2] == "b"


def racks_of(playground: Playground) -> dict[int, str]:
    """Of the brokers that are up, as Kafka's own tool says."""
    text = tool(playground, "cluster", "list-endpoints", "--include-fenced-brokers")
    rows = re.findall(r"^(\d+)\s+\S+\s+\d+\s+(\S+)\s+unfenced\s", text, re.MULTILINE)
    return {int(node): rack for node, rack in rows}


def stamps(playground: Playground, name: str, words: str) -> list[str]:
    """Of the lines of a node's log that have these words; a text that sorts."""
    log = playground.layout.log(name).read_text()
    return re.findall(rf"^\[([\d\-: ,]+)\] .*{re.escape(words)}", log, re.MULTILINE)
