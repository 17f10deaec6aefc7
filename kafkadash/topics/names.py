"""Names that Kafka allows for topics (class org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

import re

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.topics.errors import TopicErrorCode

MOST_CHARACTERS = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
_ALLOWED = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN = 60


def check_topic_name(name: str) -> CodedMessage | None:
    """Return why Kafka allows no new topic of this name, None where it does."""
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    if len(name) > MOST_CHARACTERS:
        return coded(TopicErrorCode.NAME_TOO_LONG, name=shown, length=len(name), most=MOST_CHARACTERS)
    if not _ALLOWED.fullmatch(name):
        return coded(TopicErrorCode.NAME_CHARACTERS, name=shown)
    if name in (".", ".."):
        return coded(TopicErrorCode.NAME_DOTS, name=name)
    if name in INTERNAL_TOPICS:
        return coded(TopicErrorCode.NAME_INTERNAL, name=name)
    return None


def metric_name(name: str) -> str:
    """Return the name in metrics, where dots are underscores: two topics must not share it."""
    return name.replace(".", "_")
