"""Driver and ingest as processes that are killed, by themselves at a point or by us at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from django.conf import settings

SECONDS = 180
"""Within which a process comes to its point, or to its end."""
LEASE_SECONDS = "2"
NOTHING: Mapping[str, str] = MappingProxyType({})


class Killed:
    """A process with all that it starts, for instance a driver and its JVM."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path, more: Mapping[str, str] = NOTHING) -> None:
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"tests.pipeline.{module}", *arguments],
                cwd=settings.BASE_DIR,
                env={**os.environ, **more},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def at_its_point(self) -> None:
        """Raises AssertionError where it came to another end than by its own hand."""
        code = self._process.wait(SECONDS)
        assert code == -signal.SIGKILL, f"it ended with {code}: {self.told()}"

    def after(self, seconds: float) -> None:
        """Kills it then, with all that it started. Raises AssertionError where it has ended before."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
            raise AssertionError(f"it ended with {code}: {self.told()}")
        self.end()

    def ends(self) -> None:
        """Raises AssertionError where it does not end well."""
        code = self._process.wait(SECONDS)
        assert code == 0, f"it ended with {code}: {self.told()}"

    def end(self) -> None:
        """Whatever is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(SECONDS)

    def told(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]


@contextlib.contextmanager
def driver(
    folder: Path, at_once: int, every: float = 0, *point: str, told: Mapping[str, str] = NOTHING
) -> Iterator[Killed]:
    """``told``: by its environment, beside ours."""
    arguments = [folder.as_uri(), str(at_once), str(every), *point]
    with _ended(Killed("driver", arguments, folder.with_name(f"{folder.name}-driver.log"), told)) as process:
        yield process


@contextlib.contextmanager
def taker(folder: Path, database: str, *arguments: str, point: str = "") -> Iterator[Killed]:
    """The ingest of what lies in ``folder``. ``database``: its address."""
    told = {
        "DJANGO_SETTINGS_MODULE": "kafkadash.settings",
        "DATABASE_URL": database,
        "PIPELINE_URI": folder.as_uri(),
        "INGEST_FAIL_POINT": point,
        "LEASE_TTL": LEASE_SECONDS,
    }
    if point == "deleting":
        told["KEEP_RESULTS_HOURS"] = "-1"  # at once
    with _ended(Killed("taker", arguments, folder.with_name(f"{folder.name}-ingest.log"), told)) as process:
        yield process


@contextlib.contextmanager
def _ended(process: Killed) -> Iterator[Killed]:
    try:
        yield process
    finally:
        process.end()
