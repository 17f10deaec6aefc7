"""Kafka's jars: checked, fetched once, repaired; here from a Maven repository on loopback."""

from __future__ import annotations

import errno
import gc
import hashlib
import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import ServerError
from kafkadash.playground import jars
from kafkadash.playground.jars import LOCK, Progress, fetch, read_lock


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


def test_it_fetches_once_and_shows_progress(repository: Repository, tmp_path: Path) -> None:
    seen: list[Progress] = []
    first = fetch(repository.lock, tmp_path / "cache", seen.append, repository.url)
    assert [path.read_bytes()[:1] for path in first.paths] == [b"\0", b"\1", b"\2"]
    assert seen[0] == Progress(0, 3, 0)
    assert seen[-1] == Progress(3, 3, 60_000)
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
    with pytest.raises(ServerError, match=r"org.example.part:jar1:1\.1 .* another checksum"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    assert not list((tmp_path / "cache").rglob("jar1*"))


def test_an_answer_other_than_the_jar_is_one_sentence(repository: Repository, tmp_path: Path) -> None:
    repository.files.clear()
    with pytest.raises(ServerError, match=r"does not give out org\.example\.part:jar"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    gc.collect()  # a connection that nobody closed is a warning now, and a warning fails the test


def test_no_network_is_one_sentence_and_what_was_fetched_is_kept(repository: Repository, tmp_path: Path) -> None:
    distribution = fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    distribution.paths[0].unlink()
    repository.server.server_close()
    with pytest.raises(ServerError, match=r"could not be fetched .* check the network and HTTPS_PROXY"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)
    assert distribution.paths[1].exists()


def test_a_full_disk_is_one_sentence(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jars, "_download", full)
    with pytest.raises(ServerError, match=r"The disk of .* is full: make room .* KAFKADASH_CACHE"):
        fetch(repository.lock, tmp_path / "cache", repository=repository.url)


def test_several_at_once_fetch_every_jar_once(repository: Repository, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(fetch, repository.lock, tmp_path / "cache", repository=repository.url) for _ in range(4)]
        assert len({future.result() for future in futures}) == 1
    assert len(repository.requests) == 3


def test_a_line_that_is_no_jar_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "broken.lock"
    lock.write_text("org.example:jar:1.0\n")
    with pytest.raises(ServerError, match=r"broken\.lock, line 1: expected"):
        read_lock(lock)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKADASH_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jars.cache_dir() == tmp_path / "own"
    monkeypatch.delenv("KAFKADASH_CACHE")
    assert jars.cache_dir() == tmp_path / "xdg" / "kafkadash"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache_dir() == Path.home() / ".cache" / "kafkadash"
