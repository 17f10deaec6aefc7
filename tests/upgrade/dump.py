"""Dumps of released versions: ``X.Y.Z.sql.gz`` beside this module, plain SQL as pg_dump writes it.

The first lines of a dump are comments, ``-- GET /address/``: pages that answered when it was written. A dump is written
once, by the version itself, and never again; ``write_dump`` does it.
"""

from __future__ import annotations

import gzip
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kafkadash.devtools.embedded.postgres import install_folder

HERE = Path(__file__).parent
WITHOUT_ROWS = ("django_session", "cache")


def dump_file(version: str) -> Path:
    return HERE / f"{version}.sql.gz"


def write_dump(version: str, conninfo: str, addresses: Sequence[str]) -> None:
    without = [f"--exclude-table-data={table}" for table in WITHOUT_ROWS]
    command = [str(install_folder() / "bin" / "pg_dump"), "--no-owner", *without, conninfo]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    text = re.sub(r"^\\(un)?restrict .*\n", "", text, flags=re.MULTILINE)  # psql's own, which psycopg does not know
    text = re.sub(r"pbkdf2_sha256\S+", "pbkdf2_sha256$1$none$none", text)  # no password gives this hash
    head = "".join(f"-- GET {address}\n" for address in addresses)
    with gzip.GzipFile(dump_file(version), "wb", mtime=0) as file:
        file.write((head + text).encode())


def read_dump(version: str) -> str:
    return gzip.decompress(dump_file(version).read_bytes()).decode()


def page_addresses(dump: str) -> list[str]:
    return re.findall(r"^-- GET (\S+)$", dump, re.MULTILINE)


def count_rows(dump: str) -> Counter[str]:
    """Rows of each table in a dump."""
    found: Counter[str] = Counter()
    table = ""
    for line in dump.splitlines():
        if match := re.match(r"COPY public\.(\S+) ", line):
            table = match[1]
        elif line == "\\.":
            table = ""
        elif table:
            found[table] += 1
    return found


def restore_dump(dump: str, conninfo: str) -> None:
    """Into an empty database. Raises CalledProcessError at the first statement that fails."""
    command = [
        str(install_folder() / "bin" / "psql"),
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        "--output=/dev/null",
        conninfo,
    ]
    subprocess.run(command, input=dump, check=True, text=True, capture_output=True)
