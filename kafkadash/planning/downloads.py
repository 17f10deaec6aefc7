"""The plan as a file that Kafka's own tools read, and the way back from it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import condition, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove, read_rows, way_back
from kafkadash.clusters.access import VIEW
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.kafka_json import plan_json

Rows = Callable[[Sequence[PartitionMove]], Iterable[PartitionMove]]


def _make_etag(suffix: str) -> Callable[..., str | None]:
    """ETag: the plan is named by its content, and so is what is made of it."""

    def etag(request: HttpRequest, number: int) -> str | None:
        change = request_for(request, number)
        return f'"{change.artifact_id}-{suffix}"' if change.artifact_id else None

    return etag


@require_safe
@needs_on_change(VIEW)
@condition(etag_func=_make_etag("plan"))
def kafka_json(request: HttpRequest, number: int) -> HttpResponse:
    """Return the proposed rows, for ``kafka-reassign-partitions --reassignment-json-file``."""
    change = request_for(request, number)
    return _build_download(change, f"change-{number}.json", lambda rows: rows)


@require_safe
@needs_on_change(VIEW)
@condition(etag_func=_make_etag("way-back"))
def rollback_json(request: HttpRequest, number: int) -> HttpResponse:
    """The original replicas in their order."""
    change = request_for(request, number)
    return _build_download(change, f"change-{number}-rollback.json", way_back)


def _build_download(change: ChangeRequest, name: str, rows: Rows) -> HttpResponse:
    """With the digest of what was approved in a header, so that a file can be told from one of another version.

    Sent whole: under ASGI Django reads a synchronous stream to its end before it sends the first byte.
    """
    if change.artifact is None:
        raise MissingObject(ReassignmentErrorCode.NO_PLAN_YET, number=change.pk)
    body = plan_json(rows(read_rows(zlib.decompress(change.artifact.data))))
    response = HttpResponse(body, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Change-Digest"] = f"sha256:{change.digest}"
    return response
