"""Once per machine: fetch the jars and record a class archive; afterwards only check that they are there."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from kafkadash.domain.messages import message_text
from kafkadash.embedded.files import locked
from kafkadash.embedded.ports import free_port
from kafkadash.embedded.process import Child, ServerError, reap_leftovers, spawn
from kafkadash.playground import jars
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.identifiers import new_id
from kafkadash.playground.java import find_java
from kafkadash.playground.properties import node_properties
from kafkadash.playground.runtime import Runtime, archive_path

TRAINING_SECONDS = 60.0
# What a node writes to its log when it serves (class kafka.server.KafkaRaftServer).
STARTED = b"Kafka Server started"

_guard = threading.Lock()
_prepared: dict[Path, Runtime] = {}


def prepare_runtime(say: Callable[[str], None]) -> Runtime:
    """What Kafka's processes are run with; fetched and recorded at the first call on a machine.

    Checked once per process and cache folder. Raises ServerError (network, disk, no Java).
    """
    cache = jars.cache_dir()
    with _guard:
        runtime = _prepared.get(cache)
        if runtime is None:
            runtime = _prepared[cache] = _prepare(cache, say)
        return runtime


def says_started(log: Path, offset: int = 0) -> Callable[[], bool]:
    """Whether a node's log says, after `offset` bytes, that the node serves."""

    def check() -> bool:
        with log.open("rb") as file:
            file.seek(offset)
            return STARTED in file.read()

    return check


def _prepare(cache: Path, say: Callable[[str], None]) -> Runtime:
    java = find_java()

    def show(progress: jars.Progress) -> None:
        if progress.done % 5 == 0 or progress.done == progress.total:
            megabytes = progress.bytes / 1e6
            say(f"Kafka's jars: {progress.done} of {progress.total} fetched, {megabytes:.1f} MB")

    distribution = jars.fetch(cache=cache, progress=show)
    runtime = Runtime(java, distribution, archive_path(java, distribution, cache))
    failed = runtime.archive.with_suffix(".failed")
    if not runtime.archive.exists() and not failed.exists():
        say(f"Java {java.major}: recording a class archive, once, so that Kafka starts faster")
        try:
            with locked(cache / "archive.lock"):
                if not runtime.archive.exists():
                    _record(runtime, cache)
        except (ServerError, OSError) as error:
            # Kafka runs without it, only slower; the note keeps every later command from trying again.
            say(message_text(PlaygroundErrorCode.NO_CLASS_ARCHIVE, version=java.major, fault=error))
            with contextlib.suppress(OSError):
                failed.write_text(f"{error}\n", encoding="utf-8")
    return runtime


def _record(runtime: Runtime, cache: Path) -> None:
    """Run one throw-away node until it serves, end it, keep the archive that Java writes while it ends."""
    state = cache / "training"
    reap_leftovers(state)
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    runtime.archive.parent.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=state) as folder:
            recorded = Path(folder) / runtime.archive.name
            log = state / "node.log"
            child = _start_node(runtime, state, Path(folder), recorded, log)
            try:
                child.wait_ready(says_started(log), TRAINING_SECONDS)
            finally:
                child.stop(TRAINING_SECONDS)
            if not recorded.exists():
                raise ServerError(PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN)
            for old in runtime.archive.parent.glob(f"{runtime.archive.name.rsplit('-', 1)[0]}-*"):
                old.unlink(missing_ok=True)
            recorded.replace(runtime.archive)
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _start_node(runtime: Runtime, state: Path, folder: Path, recorded: Path, log: Path) -> Child:
    broker_port = free_port()
    controller_port = free_port(taken={broker_port})
    properties = folder / "node.properties"
    text = node_properties(
        node_id=1,
        broker_port=broker_port,
        controller_port=controller_port,
        rack=None,
        log_dirs=[folder / "logs"],
        metadata_dir=folder / "metadata",
        controller_ports=[controller_port],
        brokers=1,
    )
    properties.write_text(text, encoding="utf-8")
    voter = f"1@127.0.0.1:{controller_port}:{new_id()}"
    runtime.format_storage(new_id(), properties, ["--initial-controllers", voter])
    command = runtime.server_command(properties, record=recorded)
    return spawn(state, "class archive", command, log=log)
