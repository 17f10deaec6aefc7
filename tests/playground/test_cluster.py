"""The playground is a real cluster: what was asked for, and what Kafka's own tools say about it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import FolderInUseError, ServerError, children, recorded, stop_all
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import Topic, load
from kafkadash.playground.state import read_cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")

ROOT = Path(__file__).parents[2]


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


def test_a_killed_broker_leaves_the_isr_and_comes_back(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("killed", placement=[(3, 1), (1, 3)], fill_bytes=500_000)])
    whole.kill_broker(3)
    assert [node.pid is None for node in whole.status()] == [False, False, True]
    with pytest.raises(ServerError, match="Node 3 does not run"):
        whole.stop_broker(3)
    wait_until(lambda: in_sync(whole, "killed") == [{1}, {1}], "broker 3 is out of the ISR", 60)
    whole.start_broker(3)
    wait_until(lambda: in_sync(whole, "killed") == [{1, 3}, {1, 3}], "broker 3 is back in the ISR", 60)
    with pytest.raises(ServerError, match="Node 3 already runs"):
        whole.start_broker(3)


def test_a_stopped_broker_whose_port_is_taken_comes_back_at_another(whole: Playground) -> None:
    whole.stop_broker(2)
    port = whole.cluster.brokers[1].broker_port
    assert port is not None
    with socket.create_server((LOOPBACK, port)):
        whole.start_broker(2)
    moved = whole.cluster.brokers[1].broker_port
    assert moved != port
    load(whole.bootstrap, [Topic("moved", placement=[(2, 1)], fill_bytes=100_000)])
    assert in_sync(whole, "moved") == [{1, 2}]


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


def test_data_and_identity_survive_down_and_up_even_when_ports_are_taken(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("kept", placement=[(1, 2)], fill_bytes=300_000)])
    before = whole.cluster
    pids = [node.pid for node in whole.status()]
    whole.down()
    assert recorded(whole.folder) == []
    assert not any(psutil.pid_exists(pid) for pid in pids if pid is not None)
    controller, broker = before.nodes[0].controller_port, before.nodes[1].broker_port
    assert controller is not None
    assert broker is not None
    with socket.create_server((LOOPBACK, controller)), socket.create_server((LOOPBACK, broker)):
        whole.up()
    after = whole.cluster
    assert after.cluster_id == before.cluster_id
    assert after.nodes[0].controller_port != controller
    assert after.nodes[1].broker_port != broker
    assert after.nodes[2] == before.nodes[2]
    assert in_sync(whole, "kept") == [{1, 2}]
    assert f":{after.nodes[0].controller_port}" in tool(whole, "quorum", "describe", "--status")


def test_a_node_that_crashed_can_be_started_again_and_is_not_remembered(whole: Playground) -> None:
    crashed = psutil.Process(whole.process(2).pid)
    crashed.kill()
    wait_until(lambda: whole.status()[1].pid is None, "the crash is seen")
    assert [child.name for child in recorded(whole.folder) if not child.alive()] == ["kafka-2"]
    whole.start_broker(2)
    assert sorted(child.name for child in recorded(whole.folder)) == ["kafka-1", "kafka-2", "kafka-3"]


def test_a_folder_that_kafka_cannot_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="comma"):
        Playground(tmp_path / "one, two").up(brokers=1)


@pytest.fixture
def small_folder(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    folder = run_folder / str(request.node.name)[:40]
    yield folder
    stop_all(children(folder))


def test_what_a_killed_supervisor_left_is_ended_and_the_cluster_started_anew(small_folder: Path, runtime: None) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kafkadash.playground.cluster import Playground;"
        "Playground(Path(sys.argv[1])).up(brokers=1); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(small_folder)], cwd=ROOT, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    [left] = children(small_folder)
    playground = Playground(small_folder)
    cluster_id = playground.cluster.cluster_id
    playground.up()
    assert not left.alive()
    [node] = playground.status()
    assert node.pid not in (None, left.pid)
    assert cluster_id in tool(playground, "cluster", "cluster-id")
    playground.reset()
    assert children(small_folder) == []
    assert read_cluster(small_folder) is None
    assert not (small_folder / "data").exists()


KILLED_WHILE_ADDING = """
import os, signal, sys
from pathlib import Path
from unittest import mock
from kafkadash.playground import cluster
die = mock.patch.object(cluster if sys.argv[2] == "write_cluster" else cluster.Playground, sys.argv[2],
                        side_effect=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
with die:
    cluster.Playground(Path(sys.argv[1]), detached=True).add_broker("b")
"""


def test_a_broker_is_added_while_it_runs_and_kafka_knows_it_and_its_rack_from_then_on(
    small_folder: Path, runtime: None
) -> None:
    playground = Playground(small_folder)
    playground.up(brokers=1, racks=("a",), dirs=2)
    [first] = playground.status()
    assert playground.add_broker("b") == 2
    assert racks_of(playground) == {1: "a", 2: "b"}
    assert [(node.pid == first.pid, node.roles) for node in playground.status()] == [
        (True, "broker+controller"),
        (False, "broker"),
    ]
    load(playground.bootstrap, [Topic("both", placement=[(2, 1)], fill_bytes=300_000)])
    assert {broker: len(directories) for broker, directories in log_dirs(playground).items()} == {1: 2, 2: 2}
    playground.stop_broker(2)
    wait_until(lambda: in_sync(playground, "both") == [{1}], "broker 2 is out of the ISR", 60)
    playground.start_broker(2)
    wait_until(lambda: in_sync(playground, "both") == [{1, 2}], "broker 2 is back in the ISR", 60)

    playground.down()
    with pytest.raises(ServerError, match=r"0 of 1 run here\. Start the others with `playground up`, then add it"):
        playground.add_broker("c")
    playground.up(racks=("a",))  # as it was made: the demo asks for that each time
    assert racks_of(playground) == {1: "a", 2: "b"}
    assert in_sync(playground, "both") == [{1, 2}]
    playground.reset()
    assert read_cluster(small_folder) is None
    assert not (small_folder / "data").exists()


def test_adding_a_broker_may_be_killed_at_any_point(small_folder: Path, runtime: None) -> None:
    playground = Playground(small_folder, detached=True)
    playground.up(brokers=1, racks=("a",))
    for point, known in (("write_cluster", [1]), ("_start", [1, 2])):
        arguments = [sys.executable, "-c", KILLED_WHILE_ADDING, str(small_folder), point]
        done = subprocess.run(arguments, cwd=ROOT, check=False, timeout=120)
        assert done.returncode == -signal.SIGKILL
        assert [node.node_id for node in playground.cluster.brokers] == known
        assert (small_folder / "data" / "kafka-2").exists()
    assert [node.pid is None for node in playground.status()] == [False, True]
    playground.up()
    assert racks_of(playground) == {1: "a", 2: "b"}


def racks_of(playground: Playground) -> dict[int, str]:
    """Of the brokers that are up, as Kafka's own tool says."""
    text = tool(playground, "cluster", "list-endpoints", "--include-fenced-brokers")
    rows = re.findall(r"^(\d+)\s+\S+\s+\d+\s+(\S+)\s+unfenced\s", text, re.MULTILINE)
    return {int(node): rack for node, rack in rows}


def test_three_controllers_survive_the_loss_of_one_and_stop_quickly(small_folder: Path, runtime: None) -> None:
    playground = Playground(small_folder)
    playground.up(brokers=1, controllers=3)
    assert [node.roles for node in playground.status()] == ["broker", "controller", "controller", "controller"]
    served = [stamps(playground, node.name, "Kafka Server started") for node in playground.cluster.controllers]
    assert max(first for first, *_ in served) < stamps(playground, "kafka-1", "INFO")[0], "all before any broker begins"
    leader = leader_of(playground)
    assert leader in (101, 102, 103)
    playground.kill_controller(leader)
    wait_until(lambda: leader_of(playground) not in (None, leader), "another controller leads", 60)
    playground.start_controller(leader)
    assert all(node.pid is not None for node in playground.status())
    playground.down()
    assert recorded(small_folder) == []


def test_a_majority_of_controllers_cannot_move_and_nothing_is_started(small_folder: Path, runtime: None) -> None:
    playground = Playground(small_folder)
    playground.up(brokers=1, controllers=3)
    playground.down()
    ports = [node.controller_port for node in playground.cluster.controllers]
    servers = [socket.create_server((LOOPBACK, port)) for port in ports[:2] if port is not None]
    try:
        with pytest.raises(ServerError, match=r"of 2 of the 3 controllers are taken .*--reset"):
            playground.up()
    finally:
        for server in servers:
            server.close()
    assert children(small_folder) == []


def stamps(playground: Playground, name: str, words: str) -> list[str]:
    """Of the lines of a node's log that have these words; a text that sorts."""
    log = playground.layout.log(name).read_text()
    return re.findall(rf"^\[([\d\-: ,]+)\] .*{re.escape(words)}", log, re.MULTILINE)


def leader_of(playground: Playground) -> int | None:
    done = playground.tool("quorum", ["describe", "--status"])
    found = re.search(r"LeaderId:\s+(-?\d+)", done.stdout)
    return int(found[1]) if done.returncode == 0 and found is not None else None
