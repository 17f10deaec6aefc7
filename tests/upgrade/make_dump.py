"""Makes ``run_at_COMMIT.sql.gz`` anew: ``python -m tests.upgrade.make_dump [COMMIT]``, two minutes on an idle machine.

That commit's own code drains a broker of a cluster of its own; in the middle its processes are told to end, and the
database is written down. What is the cluster's own stands in it as placeholders, for a test to put others in place.
"""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from kafkadash.embedded.postgres import install_folder
from tests.stack.stack import Stack
from tests.upgrade.older import PACE, PRODUCT, SHAPE, begun, checked_out
from tests.waiting import wait_until

COMMIT = "7964bcf"
BOOTSTRAP, CLUSTER_ID, TOPIC_ID = "{bootstrap}", "{cluster id}", "{id of %s}"
THROTTLE = 200_000
HERE = Path(__file__).parent
# Neither needed nor anybody's business: who signed in, and the history of what was read.
WITHOUT_ROWS = ("django_session", "cache", "observe_collection", "observe_quorumsample", "observe_configvalue")


def file_of(commit: str) -> Path:
    return HERE / f"run_at_{commit}.sql.gz"


def main(commit: str = COMMIT) -> None:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-dump-"))
    root.chmod(0o755)
    with checked_out(commit) as code:
        stack = Stack(root / "stack", SHAPE, code=code, environment={"": PACE})
        try:
            with stack:
                begun(stack, THROTTLE, mib=8)
                end_by_sigterm(stack)
                text = _dumped(stack)
        finally:
            stack.remove()
    with gzip.GzipFile(file_of(commit), "wb", mtime=0) as file:
        file.write(text.encode())


def end_by_sigterm(stack: Stack) -> None:
    """All processes of the product; they stay away until ``resume``."""
    for name in PRODUCT:
        stack.pause(name, signal.SIGTERM)
    wait_until(lambda: not stack.processes().keys() & set(PRODUCT), "all of them ended", 60)


def _dumped(stack: Stack) -> str:
    with psycopg.connect(stack.postgres.conninfo()) as connection:
        topics = connection.execute("SELECT name, topic_id FROM observe_topicstate").fetchall()
    without = [f"--exclude-table-data={table}" for table in WITHOUT_ROWS]
    command = [str(install_folder() / "bin" / "pg_dump"), "--no-owner", *without, stack.postgres.conninfo()]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    # psql's own words against a dump that was tampered with; a test sends it through psycopg.
    text = re.sub(r"^\\(un)?restrict .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"pbkdf2_sha256\S+", "!", text)  # nobody signs in
    cluster = stack.playground.cluster
    text = text.replace(cluster.bootstrap, BOOTSTRAP).replace(cluster.cluster_id, CLUSTER_ID)
    for name, topic_id in topics:
        text = text.replace(topic_id, TOPIC_ID % name)
    return text


if __name__ == "__main__":
    main(*sys.argv[1:])
