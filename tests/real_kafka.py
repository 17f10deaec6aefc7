"""One real Kafka cluster for all tests of a worker that read from one; loaded with ``-p tests.real_kafka``.

Three brokers in three racks, three controllers of their own, two log directories each. It is shared: a test uses
topics of its own, ends the moves it started, and gives back what it stops. Mark such tests with
``xdist_group("kraft")``, so that one worker runs them all and the cluster is started once. It is stopped after the last
of them: six idle nodes would take a quarter of a processor for the rest of the run.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.embedded_plugin import RUN_FOLDER
from tests.kafka_releases import (
    RELEASES,
    ZOOKEEPER,
    has_quorum,
    name_asked,
    parse_release,
    release_asked,
)

if TYPE_CHECKING:
    from _pytest.fixtures import SubRequest

    from kafkadash.devtools.playground.cluster import KafkaPlayground

RACKS = ("a", "b", "c")
GROUP, CLUSTER = "kraft", "playground"

_running: list[tuple[pytest.FixtureDef[KafkaPlayground], SubRequest]] = []
_left_out = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = []
    config.addinivalue_line("markers", "needs_release(release): of a feature that older releases of Kafka do not have")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the release of KAFKADASH_RELEASE does not have; the end of the run says what and why."""
    if not name_asked():
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        reason = _find_lack(item)
        (left_out if reason else kept).append(item)
        if reason:
            config.stash[_left_out].append(f"{item.nodeid}: {reason}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _find_lack(item: pytest.Item) -> str:
    """Return what the cluster lacks for a test, '' where it has all."""
    if item.get_closest_marker("quorum") and not has_quorum():
        return "needs KRaft mode"
    needed = item.get_closest_marker("needs_release")
    return f"needs Kafka {needed.args[0]}" if needed and release_asked() < parse_release(needed.args[0]) else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash[_left_out]:
        terminalreporter.section(f"not of {name_asked()}")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[KafkaPlayground], request: SubRequest
) -> Generator[None, object, object]:
    made = yield
    if fixturedef.argname == CLUSTER and fixturedef.scope == "session":
        _running[:] = [(fixturedef, request)]
    return made


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Only xdist lets the tests of a group follow each other; a cluster that is needed again is started again."""
    if hasattr(item.config, "workerinput") and nextitem is not None and not _is_of_group(nextitem):
        while _running:
            fixturedef, request = _running.pop()
            fixturedef.finish(request)


def _is_of_group(item: pytest.Item) -> bool:
    return any(GROUP in mark.args for mark in item.iter_markers("xdist_group"))


@pytest.fixture(scope="session", autouse=True)
def shared_tools() -> Iterator[None]:
    """Kafka's own tools answer from one process of this run; its first call starts it."""
    from tests.tool_server import tools_share_a_process

    with tools_share_a_process(Path(os.environ[RUN_FOLDER])):
        yield


@pytest.fixture(scope="session")
def kafka_runtime() -> None:
    """Skips what needs real Kafka where there is no Java, or no way to get Kafka's jars."""
    from kafkadash.devtools.embedded.process import ServerError
    from kafkadash.devtools.playground.cluster import prepare_runtime

    try:
        prepare_runtime(lambda _: None)
    except ServerError as error:
        pytest.skip(f"no real Kafka here: {error}")


@pytest.fixture(scope="session")
def playground(kafka_runtime: None) -> Iterator[KafkaPlayground]:
    """Of the release that KAFKADASH_RELEASE names ("zookeeper": 3.9 with it), by default the playground's own."""
    # Right below the run's folder: whoever ends that folder ends what runs from here, also after a kill.
    folder = Path(os.environ[RUN_FOLDER]) / f"kafka-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    with running_release(folder, brokers=len(RACKS), racks=RACKS, controllers=3) as playground:
        yield playground


@contextmanager
def running_release(
    folder: Path,
    *,
    brokers: int,
    racks: Sequence[str],
    controllers: int = 1,
    dirs: int = 2,
    properties: Mapping[str, object] | None = None,
) -> Iterator[KafkaPlayground]:
    """A cluster of the release that KAFKADASH_RELEASE names, whose brokers have ``dirs`` log directories each.

    With ZooKeeper it has one server of it in the place of controllers.
    """
    from kafkadash.devtools.playground.cluster import KafkaPlayground

    name = name_asked()
    lock = RELEASES[name] if name not in ("", ZOOKEEPER) else None
    playground = KafkaPlayground(folder, lock=lock, properties=properties)
    if has_quorum():
        playground.up(brokers=brokers, racks=racks, dirs=dirs, controllers=controllers)
    else:
        playground.up(brokers=brokers, racks=racks, dirs=dirs, zookeepers=1)
    try:
        yield playground
    finally:
        playground.down()
