"""Command lines that run Kafka's classes: a Java, the jars, and a class archive when there is one."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.process import ServerError
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.jars import Distribution
from kafkadash.playground.java import AOT_MAJOR, Java

SERVER_LOG4J = Path(__file__).with_name("log4j2-server.properties")
TOOL_LOG4J = Path(__file__).with_name("log4j2-tool.properties")
HEAP = "-Xmx256m"
# Only the quick compiler: a playground lives for minutes, and its start is what people wait for.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError")
FORMAT_SECONDS = 120.0
STORAGE_TOOL = "Kafka's storage tool"


@dataclass(frozen=True, slots=True)
class Runtime:
    java: Java
    jars: Distribution
    archive: Path

    def server_command(self, properties: Path, record: Path | None = None) -> list[str]:
        """Run one node; with `record`, write a class archive there when it ends."""
        flags = [self.java.record_flag(record)] if record is not None else self.java.use_flags(self.archive)
        return self._command(flags, SERVER_LOG4J, "kafka.Kafka", [str(properties)])

    def tool_command(self, main_class: str, args: Sequence[str]) -> list[str]:
        return self._command(self.java.use_flags(self.archive), TOOL_LOG4J, main_class, args)

    def run_class(
        self, main_class: str, args: Sequence[str], timeout: float | None
    ) -> subprocess.CompletedProcess[str]:
        """Run a class of Kafka's to its end and return its exit code and output.

        Raises subprocess.TimeoutExpired after ``timeout`` seconds; the process is killed then.
        """
        return subprocess.run(
            self.tool_command(main_class, args),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def format_storage(self, cluster_id: str, properties: Path, quorum: Sequence[str]) -> None:
        """Give a node its identity on disk (class kafka.tools.StorageTool).

        `quorum` is `--initial-controllers LIST` for a controller, `--no-initial-controllers` for a broker (KIP-853).
        """
        args = ["format", "-t", cluster_id, "-c", str(properties), *quorum]
        try:
            done = self.run_class("kafka.tools.StorageTool", args, FORMAT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ServerError(ServerErrorCode.PROGRAM_TOO_SLOW, program=STORAGE_TOOL, seconds=FORMAT_SECONDS) from error
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip().removesuffix(".")
            raise ServerError(PlaygroundErrorCode.STORAGE_NOT_FORMATTED, file=properties, said=why)

    def _command(self, flags: Sequence[str], log4j: Path, main_class: str, args: Sequence[str]) -> list[str]:
        return [
            str(self.java.path),
            HEAP,
            *JVM_FLAGS,
            *flags,
            f"-Dlog4j2.configurationFile={log4j}",
            "-cp",
            self.jars.classpath,
            main_class,
            *args,
        ]


def archive_path(java: Java, jars: Distribution, cache: Path) -> Path:
    """Where the class archive for this Java and these jars is kept.

    Java ignores, without a word, an archive that was made with other flags or jars, and knows jars by path, size and
    time: all of that is in the name, so that a changed set gets an archive of its own.
    """
    facts = [HEAP, *JVM_FLAGS]
    for path in jars.paths:
        status = path.stat()
        facts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    fingerprint = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    version = re.sub(r"[^A-Za-z0-9.+]", "_", java.version)
    suffix = "aot" if java.major >= AOT_MAJOR else "jsa"
    return cache / "archives" / f"java-{version}-{jars.digest}-{fingerprint}.{suffix}"
