"""Kafka's jars: checked, fetched once, repaired; here from a Maven repository on loopback.

Java: on PATH when it is new enough, else the wheel's.

Controllers of their own: started before brokers, and kept where they are.

The description of a playground: what it says of brokers that were added later.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.embedded.process import ServerError, live_children
from kafkadash.devtools.playground import jars
from kafkadash.devtools.playground import jars as java
from kafkadash.devtools.playground.cluster import (
    STATE_FORMAT,
    KafkaPlayground,
    PlaygroundLayout,
    PlaygroundState,
    choose_ports,
    ensemble_properties,
    find_difference,
    grow_cluster,
    new_cluster,
    node_properties,
    read_cluster,
    write_cluster,
)
from kafkadash.devtools.playground.errors import PlaygroundErrorCode
from kafkadash.devtools.playground.jars import AOT_MAJOR, LOCK, DownloadProgress, fetch, find_java, read_lock
from tests.playground.test_cluster import stamps
from tests.raised_codes import raises_code


class Repository:
    """A Maven repository with three jars, and the requests for jars it got."""

    def __init__(self, folder: Path) -> None:
        self.lock = folder / "three.lock"
        self.requests: list[str] = []
        self.files: dict[str, bytes] = {}
        lines = ["# three jars", ""]
        for number in range(3):
            content = bytes([number]) * 20_000
            self.files[f"/org/example/part/jar{number}/1.{number}/jar{number}-1.{number}.jar"] = content
            lines.append(f"org.example.part:jar{number}:1.{number} {hashlib.sha256(content).hexdigest()}")
        self.lock.write_text("\n".join(lines) + "\n")
        repository = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = repository.files.get(self.path)
                if self.path.endswith(".jar"):
                    repository.requests.append(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Not into the test's output."""

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 64  # more than all that are asked for at once

        self.server = Server((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("NO_PROXY", LOOPBACK)
    repository = Repository(tmp_path)
    yield repository
    repository.close()


def test_the_committed_lock_names_every_jar_with_its_checksum() -> None:
    jars = read_lock(LOCK)
    assert len({jar.coordinate for jar in jars}) == len(jars) == 45
    assert all(len(jar.sha256) == 64 and int(jar.sha256, 16) >= 0 for jar in jars)
    assert {jar.version for jar in jars if jar.group == "org.apache.kafka"} == {"4.3.1"}


def test_jar_with_a_classifier__has_it_in_its_name(tmp_path: Path) -> None:
    lock = tmp_path / "one.lock"
    lock.write_text("org.apache.kafka:kafka-storage:4.3.1:test 00\n", encoding="utf-8")
    [jar] = read_lock(lock)
    assert (jar.coordinate, jar.path(tmp_path).name) == (
        "org.apache.kafka:kafka-storage:4.3.1:test",
        "kafka-storage-4.3.1-test.jar",
    )


def test_it_fetches_once_and_shows_progress(repository: Repository, tmp_path: Path) -> None:
    seen: list[DownloadProgress] = []
    first = fetch(repository.lock, tmp_path / "cache", seen.append, repository.url)
    assert [path.read_bytes()[:1] for path in first.paths] == [b"\0", b"\1", b"\2"]
    assert seen[0] == DownloadProgress(0, 3, 0)
    assert seen[-1] == DownloadProgress(3, 3, 60_000)
    second = fetch(repository.lock, tmp_path / "cache", seen.append, repository.url)
    assert second == first
    assert len(repository.requests) == 3


def test_a_damaged_jar_in_the_cache_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    distribution = fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    distribution.paths[1].write_bytes(b"damaged")
    distribution.paths[2].unlink()
    fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    assert distribution.paths[1].read_bytes() == b"\1" * 20_000
    # A busy machine may have to ask twice for one of them, but for the intact one never again.
    assert {path.rpartition("/")[2] for path in repository.requests[3:]} == {"jar1-1.1.jar", "jar2-1.2.jar"}


def test_a_jar_with_another_checksum_is_refused_and_not_kept(repository: Repository, tmp_path: Path) -> None:
    path = next(path for path in repository.files if "jar1" in path)
    repository.files[path] = b"something else"
    with raises_code(PlaygroundErrorCode.JAR_CHANGED, ServerError, jar="org.example.part:jar1:1.1"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    assert not list((tmp_path / "cache").rglob("jar1*"))


def test_an_answer_other_than_the_jar_is_one_sentence(repository: Repository, tmp_path: Path) -> None:
    repository.files.clear()
    with raises_code(PlaygroundErrorCode.JAR_NOT_GIVEN, ServerError, match="org.example.part:jar"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    gc.collect()  # a connection that nobody closed is a warning now, and a warning fails the test


def test_no_network_is_one_sentence_and_what_was_fetched_is_kept(repository: Repository, tmp_path: Path) -> None:
    distribution = fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    distribution.paths[0].unlink()
    repository.server.server_close()
    with pytest.raises(ServerError, match=r"could not be downloaded .* Check the network and HTTPS_PROXY"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    assert distribution.paths[1].exists()


def test_a_full_disk_is_one_sentence(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jars, "_download", full)
    with pytest.raises(ServerError, match=r"The disk of .* is full\. Free .* KAFKADASH_CACHE"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)


def test_several_at_once_fetch_every_jar_once(repository: Repository, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(fetch, repository.lock, tmp_path / "cache", repository=repository.url) for _ in range(4)]
        assert len({future.result() for future in futures}) == 1
    assert len(repository.requests) == 3


def test_a_line_that_is_no_jar_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "broken.lock"
    lock.write_text("org.example:jar:1.0\n")
    with raises_code(PlaygroundErrorCode.JAR_LINE_UNREADABLE, ServerError, line=1, match="broken.lock"):
        read_lock(lock)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKADASH_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jars.cache_dir() == tmp_path / "own"
    monkeypatch.delenv("KAFKADASH_CACHE")
    assert jars.cache_dir() == tmp_path / "xdg" / "kafkadash"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache_dir() == Path.home() / ".cache" / "kafkadash"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_java(folder: Path, version: str, exit_code: int = 0) -> None:
    script = folder / "java"
    words = f'openjdk version "{version}" 2020-01-01\nOpenJDK Runtime Environment (build {version}+1)\n'
    script.write_text(f"#!/bin/sh\nprintf '%s' '{words}' >&2\nexit {exit_code}\n")
    script.chmod(0o755)


@pytest.mark.parametrize("version", ["17.0.1", "21", "25.0.2"])
def test_a_new_enough_java_on_path_is_taken(path: Path, version: str) -> None:
    put_java(path, version)
    found = find_java()
    assert found.path == path / "java"
    assert found.major == int(version.partition(".")[0])
    assert found.version == f"{version}+1"


@pytest.mark.parametrize("version", ["11.0.20", "1.8.0_402"])
def test_an_old_java_on_path_is_passed_over_for_the_wheels(path: Path, version: str) -> None:
    put_java(path, version)
    found = find_java()
    assert found.path != path / "java"
    assert found.major >= AOT_MAJOR


def test_a_java_that_does_not_run_is_passed_over(path: Path) -> None:
    put_java(path, "17.0.1", exit_code=1)
    assert find_java().path != path / "java"


def test_no_java_at_all_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_java", lambda: None)
    with raises_code(PlaygroundErrorCode.NO_JAVA, ServerError, version=17):
        find_java()


@pytest.mark.xdist_group("kraft")
def test_controllers__started_with_brokers__serve_before_any_of_them_begins(playground: KafkaPlayground) -> None:
    """The shared cluster's first start, by the logs of its nodes."""
    nodes = playground.cluster.nodes
    assert [node.roles for node in nodes] == ["broker"] * 3 + ["controller"] * 3
    served = [stamps(playground, node.name, "Kafka Server started")[0] for node in playground.cluster.controllers]
    begun = [stamps(playground, node.name, "INFO")[0] for node in playground.cluster.brokers]
    assert max(served) < min(begun)


def test_a_majority_of_controllers_cannot_move_and_nothing_is_started(tmp_path: Path, runtime: None) -> None:
    cluster = choose_ports(new_cluster(1, None, 3, 1), set())
    write_cluster(tmp_path, cluster)
    with ExitStack() as taken:
        for node in cluster.controllers[:2]:
            assert node.controller_port is not None
            taken.enter_context(socket.create_server((LOOPBACK, node.controller_port)))
        with pytest.raises(ServerError, match=r"of 2 of 3 controllers, .*--reset"):
            KafkaPlayground(tmp_path).up()
    assert live_children(tmp_path) == []


def test_a_grown_cluster__is_the_same_one_with_one_more_broker_that_has_the_listeners_of_the_others() -> None:
    made = choose_ports(new_cluster(2, ("a", "b"), 1, 1, ["TLS"]), set())
    more = grow_cluster(made, "b")
    assert replace(more, nodes=more.nodes[:2], added=()) == made
    [new] = more.nodes[2:]
    assert (new.node_id, new.roles, new.rack, new.secured_ports, more.added) == (3, "broker", "b", {"TLS": 0}, (3,))
    assert [node.node_id for node in more.made_with] == [1, 2]
    assert grow_cluster(more, "").nodes[3].rack is None
    assert grow_cluster(more, "").added == (3, 4)


def test_brokers_that_are_added__never_take_the_id_of_a_controller_and_stand_before_them() -> None:
    cluster = new_cluster(1, None, 3, 1)
    assert [node.node_id for node in grow_cluster(cluster, None).nodes] == [1, 2, 101, 102, 103]
    hundred = new_cluster(100, None, 3, 1)
    assert grow_cluster(hundred, None).added == (104,)


def test_a_migration__names_its_voters_to_all_nodes_and_roles_to_the_controller_only(tmp_path: Path) -> None:
    common: dict[str, Any] = {
        "rack": None,
        "log_dirs": [tmp_path],
        "metadata_dir": tmp_path,
        "controller_ports": [9093],
        "brokers": 1,
        "zookeeper": "127.0.0.1:2181",
        "migrating_to": ["101@127.0.0.1:9093"],
    }
    broker = node_properties(node_id=1, broker_port=9092, controller_port=None, **common).splitlines()
    controller = node_properties(node_id=101, broker_port=None, controller_port=9093, **common).splitlines()
    for lines in (broker, controller):
        assert "controller.quorum.voters=101@127.0.0.1:9093" in lines
        assert {"zookeeper.metadata.migration.enable=true", "zookeeper.connect=127.0.0.1:2181"} <= set(lines)
    assert [[line for line in lines if line.startswith("process.roles=")] for lines in (broker, controller)] == [
        [],
        ["process.roles=controller"],
    ]


def test_an_ensemble_with_tls__has_a_secure_port_beside_the_plain_one(tmp_path: Path) -> None:
    made = choose_ports(new_cluster(1, None, 1, 1, (), 3, ensemble_over_tls=True), set())
    [first, *_] = made.zookeepers
    lines = ensemble_properties(first, made.zookeepers, tmp_path, tmp_path / "keys.pem").splitlines()
    assert {f"clientPort={first.client_port}", f"secureClientPort={first.secure_port}"} <= set(lines)
    assert len({port for server in made.zookeepers for port in (server.client_port, server.secure_port)}) == 6
    assert made.secured_zookeeper.split(",")[0] == f"{LOOPBACK}:{first.secure_port}"


@pytest.mark.parametrize(
    ("brokers", "racks"), [(2, "ab"), (None, "ab"), (2, None), (3, "abc"), (3, None), (None, "abc")]
)
def test_asking_for_it_as_it_was_made_or_as_it_is__finds_no_difference(brokers: int | None, racks: str | None) -> None:
    assert find_difference(_two_and_one(), brokers, racks, None, None) is None


def test_asking_for_anything_else__is_a_difference_from_what_it_is() -> None:
    cluster = _two_and_one()
    assert find_difference(cluster, 4, None, None, None) == ("brokers", 3, 4)
    assert find_difference(cluster, 3, "ab", None, None) == ("racks", "a,b,c", "a,b")
    assert find_difference(cluster, 2, None, 3, None) == ("brokers", 3, 2)
    assert find_difference(cluster, None, None, 3, None) == ("controllers", 1, 3)
    assert find_difference(cluster, None, None, None, 2) == ("log directories", 1, 2)


def test_what_was_added__is_remembered_and_a_description_from_before_it_could_be_is_read(tmp_path: Path) -> None:
    cluster = choose_ports(_two_and_one(), set())
    write_cluster(tmp_path, cluster)
    assert read_cluster(tmp_path) == cluster
    document = json.loads(PlaygroundLayout(tmp_path).state.read_text())
    assert document.pop("added") == [3]
    assert document["format"] == STATE_FORMAT
    PlaygroundLayout(tmp_path).state.write_text(json.dumps(document))
    assert read_cluster(tmp_path) == replace(cluster, added=())


def _two_and_one() -> PlaygroundState:
    return grow_cluster(new_cluster(2, ("a", "b"), 1, 1), "c")
