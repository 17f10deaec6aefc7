"""How the pipeline stands, from its files alone: Spark is not needed to say so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kafkadash.domain.messages import message_text
from kafkadash.domain.pipeline_results import HEARTBEATS
from kafkadash.pipeline import flushes
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.heartbeat import NAME, is_late
from kafkadash.pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Standing:
    """``lines``: label and words. ``wrong``: a sentence, None where it runs."""

    lines: list[tuple[str, str]]
    wrong: str | None


def standing(store: Store, now: datetime) -> Standing:
    """Raises OSError and ValueError where what is there cannot be read."""
    kept = flushes.manifests(store)
    lines = [("segments", f"{len(kept)} flushes kept")]
    content = store.read(f"{HEARTBEATS}/{NAME}.json")
    if content is None:
        return Standing(lines, message_text(PipelineErrorCode.NEVER_BEATEN, address=store.uri))
    beat: dict[str, Any] = json.loads(content)
    age = now - datetime.fromisoformat(beat["beat_at"])
    lines += [
        ("state", " ".join(filter(None, (beat["state"], beat["working_on"])))),
        ("process", f"{beat['pid']} on {beat['host']}, since {_at(beat['started_at'])}"),
        ("heard of", f"{_seconds(age)} ago"),
        ("query", beat["query"] or "none yet"),
        ("last batch", _batch(beat)),
        ("behind", _behind(beat)),
    ]
    if beat["fault"]:
        return Standing(lines, beat["fault"])
    if is_late(beat, now) or beat["state"] == "stopped":
        return Standing(lines, message_text(PipelineErrorCode.PIPELINE_SILENT, age=_seconds(age)))
    return Standing(lines, None)


def _batch(beat: dict[str, Any]) -> str:
    if beat["last_batch"] is None:
        return "none since it was started"
    return f"{beat['last_batch']}, {_at(beat['last_batch_at'])}, took {beat['last_batch_seconds']:.1f} s"


def _behind(beat: dict[str, Any]) -> str:
    lag = beat["event_lag_seconds"]
    if lag is None:
        return "not known"
    return f"{lag:.0f} s from what was observed last, {_at(beat['newest_observed_at'])}, to the end of its batch"


def _at(iso: str) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(age: timedelta) -> str:
    return f"{max(0.0, age.total_seconds()):.0f} s"
