"""The test run itself: servers that end with it, tiers that cannot vanish, skips that cannot hide."""

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


def suite(folder: Path, **tests: str) -> None:
    for name, body in tests.items():
        path = folder / "tests" / name / f"test_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(body)


ALL_TIERS = dict.fromkeys(
    ("domain", "pages", "playground", "contract", "pipeline", "agreement", "e2e"), "def test_a(): pass"
)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip("\n").splitlines()[-1]


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
    assert last_line(done) == "7 passed, 2 failed, 1 skipped"
    assert re.search(r"^domain +4 +2 +1 +\d+\.\d ", done.stdout, re.MULTILINE)


def test_every_tier_has_its_line(tmp_path: Path) -> None:
    suite(tmp_path, **ALL_TIERS)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert last_line(done) == "7 passed, 0 failed, 0 skipped"
    for tier in ("domain", "app", "servers", "contract", "pipeline", "agreement", "e2e"):
        assert re.search(rf"^{tier} +1 +0 +0 +\d+\.\d ", done.stdout, re.MULTILINE)


def test_an_empty_tier_fails_a_run_of_everything(tmp_path: Path) -> None:
    suite(tmp_path, **{name: body for name, body in ALL_TIERS.items() if name != "contract"})
    done = run(tmp_path)
    assert done.returncode == 1
    assert "the tier contract" in done.stdout
    assert last_line(done) == "6 passed, 1 failed, 0 skipped"
    assert run(tmp_path, "tests/domain").returncode == 0


def test_a_skip_fails_where_nothing_may_be_skipped(tmp_path: Path) -> None:
    suite(tmp_path, domain="import pytest\ndef test_a(): pytest.skip('no java here')")
    done = run(tmp_path, "tests/domain", KAFKADASH_REQUIRE="all")
    assert done.returncode == 1
    assert "KAFKADASH_REQUIRE=all" in done.stdout
    assert "no java here" in done.stdout
    assert last_line(done) == "0 passed, 1 failed, 0 skipped"


def test_a_skipped_module_fails_too(tmp_path: Path) -> None:
    suite(tmp_path, domain="import pytest\npytest.importorskip('no_such_module')\ndef test_a(): pass")
    done = run(tmp_path, "tests/domain", KAFKADASH_REQUIRE="all")
    assert done.returncode != 0
    assert last_line(done) == "0 passed, 1 failed, 0 skipped"


def test_a_marker_overrides_the_folder(tmp_path: Path) -> None:
    suite(tmp_path, pages="import pytest\n@pytest.mark.e2e\ndef test_a(): pass")
    done = run(tmp_path, "tests/pages")
    assert re.search(r"^e2e +1 ", done.stdout, re.MULTILINE)
    assert re.search(r"^app +0 ", done.stdout, re.MULTILINE)


def test_workers_report_like_one_process(tmp_path: Path) -> None:
    suite(tmp_path, **ALL_TIERS)
    done = run(tmp_path, "-p", "xdist.plugin", "-n", "2", "--dist", "loadgroup")
    assert done.returncode == 0, done.stdout
    assert last_line(done) == "7 passed, 0 failed, 0 skipped"


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
    assert last_line(done) == f"7 passed, {code} failed, 0 skipped"


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
