"""Contact with a cluster: whether it answers, and what there is to say, by the stored outcome of its collectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from django.conf import settings

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.services import double_message
from kafkadash.core.failures import NO_ANSWER_FAILURES, FailureKind
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.status import is_stale


class RefreshRun(Protocol):
    """A collector's row, as far as it tells about the connection."""

    kind: str
    interval_s: float
    next_at: datetime
    attempted_at: datetime | None
    succeeded_at: datetime | None
    failures: int
    refusals: int
    last_failure: str

    @property
    def last_error(self) -> CodedMessage | None:
        """Say why the last refresh failed."""
        ...


_WORDS: Mapping[str, str] = {
    FailureKind.UNREACHABLE: "Unreachable",
    FailureKind.DEADLINE_EXCEEDED: "Timed out",
    FailureKind.CREDENTIALS_REFUSED: "Credentials rejected",
    FailureKind.TOKEN_UNAVAILABLE: "No access token",
    FailureKind.NOT_AUTHORIZED: "Not authorized",
    FailureKind.NOT_SUPPORTED: "Not supported",
    FailureKind.SECRET_UNREADABLE: "Secret unreadable",
}


@dataclass(frozen=True, slots=True)
class ClusterContact:
    """``taken_at`` is when a broker last answered; the other attributes make it what the age of data is shown from."""

    state: str
    word: str
    messages: tuple[CodedMessage | str, ...]
    taken_at: datetime | None
    interval_s: float
    now: datetime
    frozen: bool = False
    """Never: whichever node answered, it is heard of."""

    @property
    def stale(self) -> bool:
        return self.taken_at is None or is_stale(self.taken_at, self.interval_s, self.now)

    @property
    def age_s(self) -> float | None:
        return None if self.taken_at is None else max(0.0, (self.now - self.taken_at).total_seconds())


def judge_contact(cluster: Cluster, runs: Iterable[RefreshRun], now: datetime) -> ClusterContact:
    """The newest answer of any kind counts as contact; a failure of the metadata is what its messages tell.

    Probes of the canary do not count: one that no broker answered has a result too.
    """
    known = list(runs)
    answered = [run.succeeded_at for run in known if run.succeeded_at and run.kind != "canary"]
    metadata = next((run for run in known if run.kind == "metadata"), None)
    interval = metadata.interval_s if metadata else 30.0
    state, word, messages = _judge_state(cluster, metadata, max(answered, default=None), interval, now)
    return ClusterContact(state, word, messages, max(answered, default=None), interval, now)


def _judge_state(
    cluster: Cluster, metadata: RefreshRun | None, answered: datetime | None, interval: float, now: datetime
) -> tuple[str, str, tuple[CodedMessage | str, ...]]:
    if not cluster.enabled:
        return "maintenance", "Disabled", ("Collection is off. Collected data stays.",)
    if cluster.other_kafka_id:
        return "critical", "Another cluster", (other_cluster(cluster),)
    if cluster.same_as is not None:
        return "critical", "Registered twice", (double_message(cluster, cluster.same_as),)
    if metadata is None or metadata.attempted_at is None:
        return "unknown", "Not contacted yet", ("A worker connects within seconds of the registration.",)
    if metadata.failures:
        word = _WORDS.get(metadata.last_failure, "Failing")
        state = "unknown" if metadata.last_failure in NO_ANSWER_FAILURES else "warning"
        return state, word, tuple(filter(None, (metadata.last_error, _describe_retry(metadata))))
    if answered is None or is_stale(answered, interval, now):
        age = format_duration((now - answered).total_seconds()) if answered else ""
        silent = f"Last answer {age} ago" if answered else "No answer yet"
        return "unknown", "Not collected", (coded(ClusterErrorCode.NOT_LOOKED_AT, silent=silent),)
    if cluster.mode == ClusterMode.ZOOKEEPER and not cluster.zookeeper:
        return "warning", "No ZooKeeper address", (coded(ClusterErrorCode.WITH_ZOOKEEPER),)
    if cluster.mode == ClusterMode.KRAFT and cluster.zookeeper:
        return "ok", "Connected", (coded(ClusterErrorCode.ZOOKEEPER_UNUSED),)
    return "ok", "Connected", ()


def _describe_retry(run: RefreshRun) -> CodedMessage | None:
    """Refused credentials are not tried at full pace: many servers lock an account that fails often."""
    if run.last_failure != FailureKind.CREDENTIALS_REFUSED:
        return None
    if run.refusals >= settings.REFUSED_TRIES:
        return coded(ClusterErrorCode.NOT_TRIED_ANY_MORE, times=run.refusals)
    then = run.next_at.astimezone(UTC)
    return coded(ClusterErrorCode.TRIED_LESS_OFTEN, when=f"{then:%H:%M:%S}")


def other_cluster(cluster: Cluster) -> CodedMessage:
    return coded(
        ClusterErrorCode.OTHER_CLUSTER, cluster=cluster.name, answered=cluster.other_kafka_id, expected=cluster.kafka_id
    )
