"""Topics that the principal may not describe: Kafka leaves them out of every list, so counts are too small unseen.

Only what lies on the disks is told whole (DescribeLogDirs asks for Describe on the cluster alone). A name that is there
and in no list is asked for by name: then Kafka says whether it is hidden, or new, or gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkadash.domain.messages import message_text
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.port import KafkaAdmin

TOPIC_AUTHORIZATION_FAILED = 29
MOST_ASKED = 100


def hidden_topics(admin: KafkaAdmin, suspects: Iterable[str], *, deadline: float) -> list[str]:
    """Those of ``suspects`` that are hidden, sorted; at most ``MOST_ASKED`` of them are looked at.

    Raises KafkaFailure.
    """
    # The controllers' own log is listed on disks and is no topic that anybody may describe.
    names = sorted(name for name in suspects if name != "__cluster_metadata")[:MOST_ASKED]
    if not names:
        return []
    answer = admin.metadata(deadline=deadline, topics=names)
    return sorted(t.name for t in answer.topics if t.error is not None and t.error.code == TOPIC_AUTHORIZATION_FAILED)


def hidden_sentence(hidden: list[str], *, all_of_them: bool = False) -> str:
    """What is missing and what it costs."""
    shown = ", ".join(f"“{name}”" for name in hidden[:3])
    more = f" and {len(hidden) - 3} more topics" if len(hidden) > 3 else ""
    which = "every topic" if all_of_them else f"{shown}{more}"
    return message_text(KafkaErrorCode.TOPICS_HIDDEN, which=which)
