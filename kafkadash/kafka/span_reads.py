"""ListOffsets as a consumer asks it: log start and high watermark of partitions, from their leaders.

The start is asked for before the end, on the same connection, which a broker answers in order: a start can never lie
behind the end by our doing. Where it does (the two went over different connections), both are asked for again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from kafkadash.domain.messages import coded
from kafkadash.kafka import clock
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.codes import LEADER_MOVES, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION, item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_messages import span_request
from kafkadash.kafka.groups import LogSpan, LogSpans
from kafkadash.kafka.messages import MetadataAnswer, OffsetsAnswer, metadata_request
from kafkadash.kafka.port import ItemError, KafkaFailure, OffsetKind, Unreachable
from kafkadash.kafka.talk import Talk

TOPICS_PER_QUESTION = 1000  # of Metadata
PARTITIONS_PER_QUESTION = 5000  # of ListOffsets: a quarter of a megabyte
DESCRIBE_TOPIC = "Describe on the topic"

Wanted = Mapping[str, Collection[int]]
Offset = tuple[int, int]  # error code, offset


class SpanReading:
    """Collects the answers of one call."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._spans: dict[str, dict[int, LogSpan]] = {}
        self._errors: dict[str, dict[int, ItemError]] = {}
        self._taken_at: list[float] = []

    def read(self, partitions: Wanted) -> LogSpans:
        """Raises KafkaFailure when nobody answered anything."""
        self._find_leaders({topic: list(dict.fromkeys(indexes)) for topic, indexes in partitions.items() if indexes})
        self._talk.run()
        return LogSpans(self._spans, self._errors, min(self._taken_at, default=clock.seconds()))

    # ---- who leads

    def _find_leaders(self, wanted: Wanted) -> None:
        names = list(wanted)
        for start in range(0, len(names), TOPICS_PER_QUESTION):
            part = {name: wanted[name] for name in names[start : start + TOPICS_PER_QUESTION]}
            ask: Ask[MetadataAnswer] = Ask(partial(metadata_request, topics=part.keys()))
            self._talk.ask(None, ask, partial(self._told_leaders, part))

    def _find_leaders_again(self, moved: Mapping[str, Mapping[int, ItemError]]) -> None:
        """Of partitions whose leader is not the one that was named: why, should that go on."""
        if moved and not self._talk.later(partial(self._find_leaders, moved)):
            for topic, why in moved.items():
                self._errors.setdefault(topic, {}).update(why)

    def _told_leaders(self, wanted: Wanted, result: Answer[MetadataAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure):
            self._fail(wanted, ItemError(result.message))
            return
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(dict)
        topics = {topic.name: topic for topic in result.response.topics}
        for name, indexes in wanted.items():
            topic = topics.get(name)
            if topic is None or topic.error_code:
                self._fail({name: indexes}, _topic_error(name, topic.error_code if topic else None))
                continue
            leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
            for index in indexes:
                leader = leaders.get(index)
                if leader is None or leader < 0:
                    self._fail({name: [index]}, _no_leader(name, index, exists=leader is not None))
                else:
                    by_leader[leader].setdefault(name, []).append(index)
        for leader, theirs in by_leader.items():
            for portion in _portions(theirs):
                self._ask(leader, portion)

    # ---- what the leader says

    def _ask(self, leader: int, partitions: Wanted) -> None:
        pair = _Pair()
        for kind in (OffsetKind.EARLIEST, OffsetKind.LATEST):
            self._talk.ask(
                leader, self._question(partitions, kind), partial(self._told, leader, partitions, pair, kind)
            )

    def _question(self, partitions: Wanted, kind: OffsetKind) -> Ask[OffsetsAnswer]:
        return Ask(
            lambda offered: span_request(offered, partitions, kind, timeout_ms=max(1, int(self._talk.left() * 1000)))
        )

    def _told(
        self,
        leader: int,
        partitions: Wanted,
        pair: _Pair,
        kind: OffsetKind,
        result: Answer[OffsetsAnswer] | KafkaFailure,
    ) -> None:
        pair.results[kind] = result
        if len(pair.results) < 2:
            return
        results = list(pair.results.values())
        failure = next((result for result in results if isinstance(result, KafkaFailure)), None)
        if isinstance(failure, Unreachable):  # it may have stopped, and others lead now
            error = ItemError(failure.message)
            self._find_leaders_again({topic: dict.fromkeys(indexes, error) for topic, indexes in partitions.items()})
        elif failure is not None:
            self._fail(partitions, ItemError(failure.message))
        else:
            self._sort(leader, partitions, pair)

    def _sort(self, leader: int, partitions: Wanted, pair: _Pair) -> None:
        starts, _ = pair.offsets(OffsetKind.EARLIEST)
        ends, taken_at = pair.offsets(OffsetKind.LATEST)
        self._taken_at.append(taken_at)
        moved: dict[str, dict[int, ItemError]] = {}
        for topic, indexes in partitions.items():
            spans: dict[int, LogSpan] = {}
            none: dict[int, Offset] = {}
            topic_starts, topic_ends = starts.get(topic, none), ends.get(topic, none)
            for index in indexes:
                start, end = topic_starts.get(index), topic_ends.get(index)
                if start is None or end is None:
                    subject = _subject(leader, topic, index)
                    self._fail({topic: [index]}, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
                elif code := start[0] or end[0]:
                    error = item_error(code, _subject(leader, topic, index), permission=DESCRIBE_TOPIC)
                    if code in LEADER_MOVES:
                        moved.setdefault(topic, {})[index] = error
                    else:
                        self._fail({topic: [index]}, error)
                elif start[1] < 0 or end[1] < 0 or start[1] > end[1]:
                    subject = _subject(leader, topic, index)
                    moved.setdefault(topic, {})[index] = ItemError(
                        coded(KafkaErrorCode.NOT_KNOWN_THERE, subject=subject)
                    )
                else:
                    spans[index] = LogSpan(start[1], end[1], taken_at)
            if spans:
                self._spans.setdefault(topic, {}).update(spans)
        self._find_leaders_again(moved)

    def _fail(self, partitions: Wanted, error: ItemError) -> None:
        for topic, indexes in partitions.items():
            self._errors.setdefault(topic, {}).update(dict.fromkeys(indexes, error))


class _Pair:
    """The two answers about the same partitions."""

    def __init__(self) -> None:
        self.results: dict[OffsetKind, Answer[OffsetsAnswer] | KafkaFailure] = {}

    def offsets(self, kind: OffsetKind) -> tuple[dict[str, dict[int, Offset]], float]:
        answer = self.results[kind]
        assert isinstance(answer, Answer)
        return {
            topic.name: {p.partition_index: (p.error_code, p.offset) for p in topic.partitions}
            for topic in answer.response.topics
        }, answer.taken_at


def _portions(partitions: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Sequence[int]]]:
    portion: dict[str, Sequence[int]] = {}
    size = 0
    for topic, indexes in partitions.items():
        for start in range(0, len(indexes), PARTITIONS_PER_QUESTION):
            part = indexes[start : start + PARTITIONS_PER_QUESTION]
            if size + len(part) > PARTITIONS_PER_QUESTION:
                yield portion
                portion, size = {}, 0
            portion[topic] = part
            size += len(part)
    if portion:
        yield portion


def _subject(leader: int, topic: str, index: int) -> str:
    return f"Broker {leader} gives no log start and end of {topic}-{index}"


def _topic_error(name: str, code: int | None) -> ItemError:
    subject = f"Log start and end of topic {name} cannot be read"
    if code is None:
        return ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject))
    return item_error(code, subject, permission=DESCRIBE_TOPIC)


def _no_leader(topic: str, index: int, *, exists: bool) -> ItemError:
    subject = f"Log start and end of {topic}-{index} cannot be read"
    return item_error(LEADER_NOT_AVAILABLE if exists else UNKNOWN_TOPIC_OR_PARTITION, subject)
