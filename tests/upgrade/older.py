"""The product at another commit: its files beside this checkout's, and a run that its own code has begun."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from kafkadash.playground.load import MIB, Topic, load
from tests.stack.stack import CHECKOUT, Shape, Stack
from tests.waiting import wait_until

RACKS = ("a", "a", "b")
PRODUCT = ("web", "worker-tick", "worker-collect", "worker-jobs", "worker-execute", "beat")
PACE = {"INTERVAL_METADATA": "5", "INTERVAL_LOG_DIRS": "5", "INTERVAL_CONFIGS": "5", "INTERVAL_REASSIGNMENTS": "5"}
SHAPE = Shape(racks=RACKS, controllers=1)
# Broker 1 is drained to broker 2, which stands in the same rack.
PLACEMENT, DRAINED = (1, 3), 1
SLOWLY_MOVING_S = 90.0
TABLES_THAT_TELL = "SELECT state, count(*) FROM reassign_move GROUP BY state"

# Done by the older code itself: nothing but its own services, of which every version has these.
BEGIN = """
import os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "kafkadash.settings"
import django
django.setup()
from kafkadash.accounts.models import User
from kafkadash.changes import running, services
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Options
from kafkadash.jobs.models import JobState
from kafkadash.reassign import drafts
from kafkadash.reassign.asked import DRAIN, Asked

broker, throttle = int(sys.argv[1]), int(sys.argv[2])
cluster = Cluster.objects.get(slug="demo")
alice, bob = (User.objects.get(username=name) for name in ("alice", "bob"))
Policy.objects.update_or_create(cluster=cluster, defaults={"approvals_high": 1})
change = drafts.begin(cluster, alice, DRAIN, (broker,))
asked = Asked(DRAIN, brokers=(broker,), disk_limit=1.0)
options = Options(throttle=throttle, throttle_min=10_000, throttle_max=1_000_000_000, per_broker=1)
drafts.save_limits(drafts.Draft(change), alice, change.version, asked, options)
for _ in range(20):
    change = ChangeRequest.objects.select_related("job").get(pk=change.pk)
    if change.digest:
        break
    if change.job is None or change.job.state not in (JobState.QUEUED, JobState.RUNNING):
        drafts.start_planning(change, alice, change.version)
    time.sleep(2)
change = services.submit(change, alice, why="Its disks go.", version=change.version, digest=change.digest)
change = services.approve(change, bob, change.digest, seen_round=change.round)
running.start(change, alice, "Now.", running.start_key(change, alice))
print(change.pk)
"""


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A work tree of that commit, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kafkadash-older-")) / "main"
    _git("worktree", "add", "--detach", "--quiet", str(folder), commit)
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))
        folder.parent.rmdir()


def begun(stack: Stack, throttle: int, mib: int, topics: int = 2) -> int:
    """The number of a drain that the stack's code has begun: one row of it moves, others wait."""
    names = [f"upgrade-{number}" for number in range(1, topics + 1)]
    load(stack.playground.bootstrap, [Topic(name, placement=[PLACEMENT], fill_bytes=mib * MIB) for name in names])
    stack.provision()
    wait_until(lambda: _read(stack, names), "the workers read the topics and their sizes", SLOWLY_MOVING_S)
    number = int(stack.python("-c", BEGIN, str(DRAINED), str(throttle)).split()[-1])
    wait_until(lambda: states(stack).get("moving"), f"a row of #{number} moves", SLOWLY_MOVING_S)
    return number


def states(stack: Stack) -> dict[str, int]:
    """How many rows of runs are in which state."""
    with psycopg.connect(stack.postgres.conninfo()) as connection:
        return dict(connection.execute(TABLES_THAT_TELL).fetchall())


def _read(stack: Stack, names: list[str]) -> bool:
    with psycopg.connect(stack.postgres.conninfo()) as connection:
        known = connection.execute("SELECT count(*) FROM observe_topicstate WHERE name = ANY(%s)", [names]).fetchone()
        sizes = connection.execute(
            "SELECT count(*) FROM observe_collectorrun WHERE kind IN ('log_dirs', 'configs') AND succeeded_at >"
            " (SELECT max(changed_at) FROM observe_topicstate WHERE name = ANY(%s))",
            [names],
        ).fetchone()
    return known is not None and sizes is not None and known[0] == len(names) and sizes[0] == 2


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=CHECKOUT, check=True, capture_output=True)
