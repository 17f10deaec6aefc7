"""What a run costs in processor seconds is counted, also of processes that outlive or escape their parents."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from tests import effort
from tests.effort import MARK, OTHER, WORKER, EffortMeter, kind_of
from tests.waiting import wait_until

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
ENOUGH = 0.25  # the kernel counts in ticks of 10 ms
OF_ANOTHER_RUN = {**os.environ, MARK: "of another run"}


@pytest.fixture
def meter() -> EffortMeter:
    """Measures a run of its own in this process, which looks only when it is told to."""
    meter = EffortMeter(run=f"run-{os.getpid()}")
    meter.meet_this_process()
    return meter


def test_effort__child_ended_between_two_looks__is_in_the_sum(meter: EffortMeter) -> None:
    meter.look()
    before = sum(meter.seconds_by_kind().values())
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    meter.look()
    assert sum(meter.seconds_by_kind().values()) - before >= ENOUGH
    assert meter.seconds_by_kind()[OTHER] >= ENOUGH


def test_effort__machine_that_was_slow_for_a_moment__is_as_slow_as_usual(
    meter: EffortMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meter.slowness() == 1.0
    samples = iter([2.0, 90.0, 3.0])
    monkeypatch.setattr(effort, "_do_fixed_work", lambda: next(samples) * effort.WORK_SECONDS)
    for _ in range(3):
        meter.weigh_machine()
    assert meter.slowness() == pytest.approx(3.0)


def test_effort__machine_that_is_faster__gets_no_smaller_budget(
    meter: EffortMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "_do_fixed_work", lambda: 0.5 * effort.WORK_SECONDS)
    meter.weigh_machine()
    assert meter.slowness() == 1.0


def test_effort__process_that_lost_its_parent__is_found_by_its_environment(meter: EffortMeter) -> None:
    code = (
        "import subprocess, sys\n"
        f"own = subprocess.Popen([sys.executable, '-c', {BUSY + 'input()'!r}], stdout=subprocess.DEVNULL)\n"
        "print(own.pid)"
    )
    keeper, given = os.pipe()
    environment = {**os.environ, MARK: meter.run, WORKER: "gw7"}
    with os.fdopen(given, "w"), os.fdopen(keeper) as keeper_file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=keeper_file, env=environment, stdout=subprocess.PIPE, check=True
        )
        orphan = psutil.Process(int(done.stdout))

        def counted() -> bool:
            meter.look()
            return meter.seconds_by_worker().get("gw7", 0.0) >= ENOUGH

        wait_until(counted, "its seconds are counted")
    wait_until(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE, "it ended")
    meter.look()
    assert meter.seconds_by_worker()["gw7"] >= ENOUGH


def test_effort__process_of_another_run__is_left_out(meter: EffortMeter) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=OF_ANOTHER_RUN) as child:
        outside = EffortMeter(run="a third run")
        outside.look()
        assert outside.seconds_by_kind().keys() == {OTHER}
        child.communicate(b"\n")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/java -Xmx256m -cp a.jar:b.jar kafka.Kafka /tmp/kafka-1.properties", "brokers (JVM)"),
        ("/usr/bin/java -cp a.jar kafka.tools.StorageTool format", "Kafka's tools (JVM)"),
        ("/usr/bin/java -cp a.jar org.apache.kafka.tools.TopicCommand --list", "Kafka's tools (JVM)"),
        ("/usr/bin/java -cp a.jar:py4j.jar py4j.GatewayServer --enable-auth 0", "Kafka's tools (JVM)"),
        ("/usr/bin/java -cp /x/pyspark/jars/* org.apache.spark.deploy.SparkSubmit shell", "Spark"),
        ("postgres: kafkadash test 127.0.0.1 idle", "PostgreSQL, Valkey"),
        ("/usr/bin/chromium-headless-shell --headless", "Chromium, Playwright"),
        ("/venv/bin/python manage.py demo", "web, workers"),
        ("/venv/bin/python -m pytest -n 2", "pytest"),
        ("/bin/sh -c true", OTHER),
    ],
)
def test_kind__of_a_command_line(command: str, kind: str) -> None:
    assert kind_of(command.split(" ")) == kind
