"""Kafka's jars, exactly as the lock file names them, in a cache shared by all checkouts of this user.

A lock file has one line per jar: `group:artifact:version sha256`. Nothing is resolved: the lock is the class path.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from jgo.maven import MavenContext

from kafkadash.domain.messages import message_text
from kafkadash.embedded.files import locked
from kafkadash.embedded.process import ServerError
from kafkadash.playground.errors import PlaygroundErrorCode

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
LOCK = Path(__file__).with_name("kafka-4.3.1-slim.lock")
DOWNLOADS_AT_ONCE = 8
ATTEMPTS = 3
HTTP_TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    def path(self, cache: Path) -> Path:
        return cache / "jars" / self.group / f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far fetching is: jars done of all jars that were missing, and bytes fetched so far."""

    done: int
    total: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """A complete, checked set of jars. `digest` identifies it: the lock file's sha256, 16 hex digits."""

    paths: tuple[Path, ...]
    digest: str

    @property
    def classpath(self) -> str:
        return os.pathsep.join(str(path) for path in self.paths)


def fetch(
    lock: Path = LOCK,
    cache: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    repository: str = MAVEN_CENTRAL,
) -> Distribution:
    """All jars of the lock file, checked by sha256; missing and damaged ones are fetched from the Maven repository.

    Two processes may do this at once: the second waits for the first. Raises ServerError (network, disk, checksum).
    """
    cache = cache or cache_dir()
    jars = read_lock(lock)
    try:
        with locked(cache / "jars.lock"):
            missing = [jar for jar in jars if not _intact(jar.path(cache), jar.sha256)]
            if missing:
                _fetch_missing(missing, cache, repository, progress or (lambda _: None))
    except OSError as error:
        raise ServerError(_sentence(error, cache)) from error
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    return Distribution(tuple(jar.path(cache) for jar in jars), digest)


def cache_dir() -> Path:
    """$KAFKADASH_CACHE, else $XDG_CACHE_HOME/kafkadash, else ~/.cache/kafkadash."""
    if chosen := os.environ.get("KAFKADASH_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser().absolute() / "kafkadash"
    return Path.home() / ".cache" / "kafkadash"


def read_lock(lock: Path) -> list[Jar]:
    jars = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            coordinate, sha256 = line.split()
            group, artifact, version = coordinate.split(":")
        except ValueError as error:
            raise ServerError(PlaygroundErrorCode.JAR_LINE_UNREADABLE, file=lock, line=number) from error
        jars.append(Jar(group, artifact, version, sha256))
    return jars


def _fetch_missing(missing: list[Jar], cache: Path, repository: str, progress: Callable[[Progress], None]) -> None:
    done = fetched = 0
    progress(Progress(0, len(missing), 0))
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
                    progress(Progress(done, len(missing), fetched))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _fetch_one(context: MavenContext, jar: Jar, cache: Path) -> int:
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


def _download(context: MavenContext, jar: Jar) -> Path:
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    try:
        path: Path = artifact.resolve()
        if not _intact(path, jar.sha256):
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


def _intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def _is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _sentence(error: OSError, cache: Path) -> str:
    if _is_disk_full(error):
        return message_text(PlaygroundErrorCode.CACHE_FULL, folder=cache)
    if type(error).__module__.split(".")[0] == "requests":
        return message_text(PlaygroundErrorCode.JARS_NOT_FETCHED, fault=type(error).__name__)
    return message_text(PlaygroundErrorCode.CACHE_NOT_USABLE, folder=cache, fault=error)
