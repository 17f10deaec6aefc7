"""Why a part of a page is empty, old or incomplete: the facts that could not be read, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.messages import message_parts
from kafkadash.domain.wording import capital, listed
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import Collection, CollectorRun, Kind


@dataclass(frozen=True, slots=True)
class NotRead:
    """Kinds of facts that one cause keeps from being read. ``cause`` is the sentence of the refresh itself."""

    kinds: Sequence[str]
    words: str
    cause: str
    meaning: str

    @property
    def key(self) -> str:
        return "-".join(self.kinds)


def not_read(cluster: Cluster, runs: Mapping[str, CollectorRun], kinds: Sequence[Kind]) -> list[NotRead]:
    """Of ``kinds``, which a page needs: those whose last refresh failed, then those that are incomplete."""
    failed = [runs[kind] for kind in kinds if kind in runs and runs[kind].failures]
    by_cause: dict[tuple[bool, str], list[CollectorRun]] = {}
    for run in failed:
        by_cause.setdefault((run.last_failure == FailureKind.NOT_AUTHORIZED, run.last_error), []).append(run)
    found = [_failed(runs_, denied=denied, cause=cause) for (denied, cause), runs_ in by_cause.items()]
    good = [kind for kind in kinds if kind in runs and not runs[kind].failures]
    return found + [_incomplete(one) for one in _newest(cluster, good) if one.ok and one.errors]


def _newest(cluster: Cluster, kinds: Sequence[Kind]) -> Iterable[Collection]:
    of_kind = Collection.objects.filter(cluster=cluster, kind=OuterRef("kind")).order_by("-started_at")
    runs = CollectorRun.objects.filter(cluster=cluster, kind__in=kinds)
    newest = runs.annotate(newest=Subquery(of_kind.values("pk")[:1])).values("newest")
    return Collection.objects.filter(pk__in=newest).order_by("kind")


def _failed(runs: Sequence[CollectorRun], *, denied: bool, cause: str) -> NotRead:
    what = listed([Kind(run.kind).label for run in runs])
    if any(run.succeeded_at for run in runs):
        code = CollectionErrorCode.READ_DENIED if denied else CollectionErrorCode.REFRESH_FAILED
    else:
        code = CollectionErrorCode.NEVER_ALLOWED if denied else CollectionErrorCode.NEVER_REFRESHED
    words, meaning = message_parts(code, kinds=what)
    return NotRead([run.kind for run in runs], words, cause, meaning)


def _incomplete(newest: Collection) -> NotRead:
    first, rest = newest.errors[0], len(newest.errors) - 1
    words, meaning = message_parts(CollectionErrorCode.READ_IN_PART, kind=capital(Kind(newest.kind).label))
    more = f" And {rest} more." if rest else ""
    return NotRead([newest.kind], words, f"{first.removesuffix('.')}.{more}", meaning)
