"""The test run itself: servers that end with it, tiers that cannot vanish, skips that cannot hide.

What a run costs in processor seconds is counted, also of processes that outlive or escape their parents.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import effort
from tests.effort import MARK, OTHER, WORKER, EffortMeter, kind_of
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent
# Only what is asked for, here and not of the run around it: plugins of every kind are installed, and loading them takes
# most of a small run.
BARE = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "KAFKADASH_TEST_RUN": ""}
OF_A_RUN = ("DATABASE_URL", "REDIS_URL", "KAFKADASH_TEST_RUN", "KAFKADASH_TEST_REDIS", "PYTEST_XDIST_WORKER")

CONFIG = """
[tool.pytest]
testpaths = ["tests"]
addopts = ["-p", "tests.report_plugin", "-p", "no:cacheprovider"]
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest over a small suite of its own, with the product's reporting."""
    (folder / "pyproject.toml").write_text(CONFIG)
    env = {**os.environ, **BARE, "KAFKADASH_REQUIRE": "", **environment}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


MARKED = "import pytest\npytestmark = pytest.mark.domain\n"


def suite(folder: Path, **tests: str) -> None:
    """A folder for each; the tests of that called "domain" are marked so."""
    for name, body in tests.items():
        path = folder / "tests" / name / f"test_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(MARKED + body if name == "domain" else body)


ALL_TIERS = dict.fromkeys(
    ("domain", "pages", "playground", "contract", "pipeline", "agreement", "e2e"), "def test_a(): pass"
)


def last_counts(done: subprocess.CompletedProcess[str]) -> tuple[int, ...]:
    """Tests that passed, failed and were skipped, by the last line, which tells nothing else."""
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout.rstrip("\n").splitlines()[-1])
    return tuple(map(int, counts.groups())) if counts else ()


def test_the_last_line_counts(tmp_path: Path) -> None:
    body = (
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): assert False\n"
        "@pytest.mark.skip(reason='no tool')\ndef test_c(): pass\n"
        "@pytest.fixture\ndef broken():\n    yield\n    raise ValueError\n"
        "def test_d(broken): pass\n"
    )
    suite(tmp_path, **{**ALL_TIERS, "domain": body})
    done = run(tmp_path)
    assert done.returncode == 1
    assert last_counts(done) == (7, 2, 1)
    assert re.search(r"^domain +4 +2 +1 +\d+\.\d ", done.stdout, re.MULTILINE)


def test_every_tier_has_its_line(tmp_path: Path) -> None:
    suite(tmp_path, **ALL_TIERS)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert last_counts(done) == (7, 0, 0)
    for tier in ("domain", "app", "servers", "contract", "pipeline", "agreement", "e2e"):
        assert re.search(rf"^{tier} +1 +0 +0 +\d+\.\d ", done.stdout, re.MULTILINE)


def test_an_empty_tier_fails_a_run_of_everything(tmp_path: Path) -> None:
    suite(tmp_path, **{name: body for name, body in ALL_TIERS.items() if name != "contract"})
    done = run(tmp_path)
    assert done.returncode == 1
    assert "the tier contract" in done.stdout
    assert last_counts(done) == (6, 1, 0)
    assert run(tmp_path, "tests/domain").returncode == 0


def test_a_skip_fails_where_nothing_may_be_skipped(tmp_path: Path) -> None:
    suite(tmp_path, domain="import pytest\ndef test_a(): pytest.skip('no java here')")
    done = run(tmp_path, "tests/domain", KAFKADASH_REQUIRE="all")
    assert done.returncode == 1
    assert "KAFKADASH_REQUIRE=all" in done.stdout
    assert "no java here" in done.stdout
    assert last_counts(done) == (0, 1, 0)


def test_a_skipped_module_fails_too(tmp_path: Path) -> None:
    suite(tmp_path, domain="import pytest\npytest.importorskip('no_such_module')\ndef test_a(): pass")
    done = run(tmp_path, "tests/domain", KAFKADASH_REQUIRE="all")
    assert done.returncode != 0
    assert last_counts(done) == (0, 1, 0)


def test_a_marker_overrides_the_folder(tmp_path: Path) -> None:
    suite(tmp_path, pages="import pytest\n@pytest.mark.e2e\ndef test_a(): pass")
    done = run(tmp_path, "tests/pages")
    assert re.search(r"^e2e +1 ", done.stdout, re.MULTILINE)
    assert re.search(r"^app +0 ", done.stdout, re.MULTILINE)


REACHES = """
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.core.messages import coded
def test_a(): coded(AccountErrorCode.FORM_KEPT)
"""
REACHES_IN_ANOTHER_WORKER = """
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.core.messages import message_cause
def test_a(): message_cause(AccountErrorCode.FORM_TOO_OLD)
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one-process", "workers"])
def test_codes_that_no_test_reached__fail_a_run_of_everything(tmp_path: Path, workers: tuple[str, ...]) -> None:
    suite(tmp_path, **{**ALL_TIERS, "domain": REACHES, "pages": REACHES_IN_ANOTHER_WORKER})
    arguments = ("-p", "tests.reached_codes", *workers)
    done = run(tmp_path, *arguments)
    assert done.returncode == 1, done.stdout
    assert last_counts(done) == (7, 1, 0)
    unreached = re.findall(r"[a-z-]+", done.stdout[done.stdout.rindex("the codes") :])
    assert "page-crashed" in unreached
    assert not {"form-kept", "form-too-old"} & set(unreached)
    assert run(tmp_path, *arguments, "tests/domain").returncode == 0


def test_workers_report_like_one_process(tmp_path: Path) -> None:
    suite(tmp_path, **ALL_TIERS)
    done = run(tmp_path, "-p", "xdist.plugin", "-n", "2", "--dist", "loadgroup")
    assert done.returncode == 0, done.stdout
    assert last_counts(done) == (7, 0, 0)


FREE_OF_CHARGE = "from tests import report_plugin\nreport_plugin.FAILS_ABOVE = 0.0\ndef test_a(): pass"


def test_a_run_says_what_its_processes_took(tmp_path: Path) -> None:
    suite(tmp_path, **ALL_TIERS)
    done = run(tmp_path, KAFKADASH_TEST_RUN=str(tmp_path))
    found = re.search(r"^all +(\d+\.\d) +\d+$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert float(found[1]) > 0
    assert done.returncode == 0


@pytest.mark.parametrize(("budget", "code"), [("enforced", 1), ("", 0)])
def test_a_run_above_its_budget_fails_where_that_is_enforced(tmp_path: Path, budget: str, code: int) -> None:
    suite(tmp_path, **{**ALL_TIERS, "domain": FREE_OF_CHARGE})
    done = run(tmp_path, KAFKADASH_TEST_RUN=str(tmp_path), KAFKADASH_BUDGET=budget)
    assert done.returncode == code, done.stdout
    assert last_counts(done) == (7, code, 0)


@pytest.fixture
def own_servers(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that starts servers of its own, prints their process ids, and then waits to be ended."""
    (tmp_path / "pyproject.toml").write_text(CONFIG.replace('"tests.report_plugin"', '"tests.embedded_plugin"'))
    suite(
        tmp_path,
        pages="def test_it():\n"
        "    import os, psutil, sys\n"
        "    children = psutil.Process().children(recursive=True)\n"
        "    print('RUN', os.environ['KAFKADASH_TEST_RUN'], *[child.pid for child in children], flush=True)\n"
        "    sys.stdin.read()\n",
    )
    env = {name: value for name, value in os.environ.items() if name not in OF_A_RUN}
    env |= {**BARE, "TMPDIR": str(short_temp := Path(tempfile.mkdtemp(prefix="kd", dir="/tmp")))}
    short_temp.chmod(0o711)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "tests/pages"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.communicate()
    base = short_temp / f"kafkadash-tests-{os.getuid()}"
    if list(base.glob("run-*")):
        another_run(tmp_path, short_temp)
    assert [path.name for path in base.iterdir()] == ["lock"]
    shutil.rmtree(short_temp)


def another_run(folder: Path, temp: Path) -> None:
    """One that ends at once; before it begins it ends what others left behind."""
    env = {name: value for name, value in os.environ.items() if name not in OF_A_RUN}
    command = [sys.executable, "-m", "pytest", "-q", "--co", "tests/pages"]
    environment = {**env, **BARE, "TMPDIR": str(temp)}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, timeout=120)


def servers_of(process: subprocess.Popen[str]) -> tuple[Path, list[psutil.Process]]:
    assert process.stdout is not None
    for line in process.stdout:
        if "RUN " in line:
            folder, *pids = line[line.index("RUN ") + 4 :].split()
            return Path(folder), [psutil.Process(int(pid)) for pid in pids]
    raise AssertionError("the run ended before it had servers")


def gone(servers: list[psutil.Process]) -> bool:
    return not any(server.is_running() and server.status() != psutil.STATUS_ZOMBIE for server in servers)


@pytest.mark.servers
def test_the_servers_end_with_the_run(own_servers: subprocess.Popen[str]) -> None:
    folder, servers = servers_of(own_servers)
    assert {"postgres", "valkey-server"} <= {server.name() for server in servers}
    own_servers.communicate("")
    assert own_servers.returncode == 0
    assert gone(servers)
    assert not folder.exists()


@pytest.mark.servers
def test_the_servers_end_with_a_run_that_is_asked_to_end(own_servers: subprocess.Popen[str]) -> None:
    folder, servers = servers_of(own_servers)
    own_servers.send_signal(signal.SIGTERM)
    own_servers.wait(timeout=60)
    assert gone(servers)
    assert not folder.exists()


@pytest.mark.servers
def test_what_a_killed_run_left_the_next_run_ends(own_servers: subprocess.Popen[str], tmp_path: Path) -> None:
    folder, servers = servers_of(own_servers)
    own_servers.kill()
    own_servers.wait(timeout=60)
    assert not gone(servers)
    another_run(tmp_path, folder.parent.parent)
    wait_until(lambda: gone(servers), "the servers of the killed run are gone")
    assert not folder.exists()


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


def test_effort__machine_that_is_slow_half_of_the_time__is_as_slow_as_the_mean__without_outliers(
    meter: EffortMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meter.slowness() == 1.0
    samples = iter([2.0, 4.0] * 4 + [90.0, 1.0])
    monkeypatch.setattr(effort, "_do_fixed_work", lambda: next(samples) * effort.WORK_SECONDS)
    for _ in range(10):
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
