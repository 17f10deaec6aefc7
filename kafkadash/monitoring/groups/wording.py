"""Texts about a group's lag: the sentence with the verdict, and the notes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.core.formatting import format_duration, long_duration
from kafkadash.core.messages import choose_plural
from kafkadash.core.status import HealthState
from kafkadash.monitoring.groups.held_reads import HeldRead
from kafkadash.monitoring.groups.rules import (
    STATES,
    WINDOW,
    GroupLag,
    LagBasis,
    LagDrain,
    LagState,
    LagTrend,
    PartitionLag,
    TimeLag,
    UnjudgedLag,
)

WORDS: Mapping[LagState, str] = {
    LagState.OK: "OK",
    LagState.WARN: "Falling behind",
    LagState.STALL: "Stalled",
    LagState.STOP: "No active members",
    LagState.REWIND: "Offsets moved backwards",
    LagState.ERR: "Error",
    LagState.UNKNOWN: "Unknown",
}
"""Words on pills, marks and filters."""

_DO: Mapping[LagState, str] = {
    LagState.STALL: "stalled",
    LagState.STOP: "without active members",
    LagState.REWIND: "with offsets moved backwards",
    LagState.ERR: "with an error",
    LagState.WARN: "falling behind",
    LagState.OK: "OK",
    LagState.UNKNOWN: "not evaluated yet",
}


@dataclass(frozen=True, slots=True)
class LagVerdict:
    """``state`` colours the pill, ``word`` stands on it, ``sentence`` is the answer and ``detail`` sentences below."""

    state: HealthState
    word: str
    sentence: str
    detail: str = ""


def partition_word(each: PartitionLag) -> str:
    """Return the label of a partition in a table: "Stalled", "Collecting 4/10", "No commits yet"."""
    match each.unjudged:
        case UnjudgedLag.NO_COMMIT:
            return "No commits yet"
        case UnjudgedLag.NO_END:
            return "Log end unknown"
        case UnjudgedLag.BEYOND:
            return "Commit past log end"
        case UnjudgedLag.COLLECTING:
            return f"Collecting {each.known}/{WINDOW}"
        case _:
            return WORDS[each.state]


def drain_words(trend: LagTrend) -> str:
    """Return the text of a drain-time cell: "never", "12 min", "keeps up"; '' where the time is not known."""
    match trend.drain:
        case LagDrain.EMPTY:
            return "no lag"
        case LagDrain.DRAINS:
            return format_duration(trend.drain_s or 0)
        case LagDrain.UNKNOWN:
            return ""
        case kind:
            return kind.value


def time_lag_words(lag: TimeLag | None) -> str:
    """Return the text of a time-lag cell: "10 min 40 s", "about 3 h", "over 90 s", "0.8 s"; "unknown" for None."""
    if lag is None:
        return "unknown"
    if lag.how is LagBasis.MEASURED:
        return f"{lag.seconds:.1f} s" if 0 < lag.seconds < 10 else format_duration(lag.seconds)
    return f"{'about' if lag.how is LagBasis.ESTIMATED else 'over'} {format_duration(lag.seconds)}"


def group_verdict(group: GroupLag, now: float) -> LagVerdict:
    """``now`` in seconds since the epoch, from which ages are counted."""
    worst = group.worst
    if worst is None:
        return LagVerdict(HealthState.UNKNOWN, "No commits yet", "The group has not committed offsets yet.")
    match group.verdict:
        case LagState.STALL | LagState.ERR:
            text = f"{worst.name}: {_describe_idle_time(worst, now)}, {_describe_waiting(worst)}"
            beside = [_same_offset(worst)]
            if group.verdict is LagState.ERR:
                beside.append("The members of the group are unknown.")
            elif worst.member:
                beside.append(f"Member {worst.member} still sends heartbeats, so the group does not rebalance.")
            elif worst.member is not None:
                beside.append("The group has members, but no member is assigned to this partition.")
        case LagState.STOP:
            idle = _describe_idle_time(worst, now)
            text = _describe_stopped(group, worst)
            beside = [f"{idle[:1].upper()}{idle[1:]}.", _same_offset(worst)]
        case LagState.REWIND:
            records = choose_plural("# record|# records", worst.fallen)
            text = f"{worst.name}: offset moved backwards by {records}, {_describe_waiting(worst)}"
            beside = ["The offset is still below its earlier value."]
        case LagState.WARN:
            text = _describe_behind(worst)
            beside = [f"The lag never decreased over the last {worst.known} samples."]
        case LagState.OK:
            return _verdict_ok(group, worst)
        case _:
            return _verdict_unknown(group, worst)
    others = _describe_others(group)
    return LagVerdict(
        STATES[group.verdict],
        WORDS[group.verdict],
        f"{text}.",
        " ".join([*beside, *others, *_describe_loss(group)]),
    )


def describe_held(held: Sequence[HeldRead]) -> str:
    """Return which open transaction holds back the group; "" without any."""
    if not held:
        return ""
    first, *others = held
    more = choose_plural(" and # more partition| and # more partitions", len(others)) if others else ""
    of = f" of producer {first.producers[0]}" if first.producers else ""
    name = f" ({first.owner})" if first.owner else ""
    hangs = " No coordinator lists it: it hangs, or ACLs hide it." if first.owner == "" else ""
    opened = f"A transaction{of}{name} is open in {first.name}{more}.{hangs}"
    return f"{opened} Consumers with read_committed stop there at offset {first.stable:,}."


def unread_verdict(age_s: float | None, error: str = "") -> LagVerdict:
    """For data that is too old to tell anything, or that was never there; nothing stale is called well."""
    since = f"last read {long_duration(age_s)} ago" if age_s is not None else "no data yet"
    return LagVerdict(HealthState.UNKNOWN, WORDS[LagState.UNKNOWN], f"Group state unknown: {since}.", error)


def _describe_waiting(worst: PartitionLag) -> str:
    if not worst.waiting and worst.lost:
        return choose_plural("the next # record is deleted|the next # records are deleted", worst.lost)
    return f"lag {choose_plural('# record|# records', worst.waiting or 0)}"


def _describe_idle_time(worst: PartitionLag, now: float) -> str:
    """With for how long; what was never seen to move has not moved for longer than it was observed."""
    if worst.moved_at is not None:
        return f"no commits for {long_duration(now - worst.moved_at)}"
    if worst.seen_since is not None:
        return f"no commits for at least {long_duration(now - worst.seen_since)}"
    return "no commits"


def _same_offset(worst: PartitionLag) -> str:
    never = f"never dropped to the threshold of {worst.allowed:,}" if worst.allowed else "never reached 0"
    return f"The last {worst.known} samples hold the same offset; the lag {never}."


def _describe_stopped(group: GroupLag, worst: PartitionLag) -> str:
    if group.members == 0:
        return f"The group has no members; {_describe_waiting(worst)} in {worst.name}"
    return f"{worst.name}: no active members, {_describe_waiting(worst)}"


def _describe_behind(worst: PartitionLag) -> str:
    net = worst.trend.net
    if net is None or net >= 0:
        return f"{worst.name} is not catching up: {_describe_waiting(worst)}"
    return f"{worst.name} is falling behind: {_describe_waiting(worst)}, growing by {_format_rate(-net)} records/s"


def _format_rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _verdict_ok(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    partitions = choose_plural("# partition|# partitions", group.partitions - group.lag_unknown)
    everywhere = "" if group.partitions == 1 else f" across {partitions}"
    if group.lag == 0:
        sentence, most = "The group has no lag", []
    else:
        sentence = f"The group keeps up: lag {choose_plural('# record|# records', group.lag or 0)}{everywhere}"
        most = [f"Highest lag: {worst.lag:,} in {worst.name}."] if group.partitions > 1 else []
        if worst.allowed:
            most.append(f"Lag threshold: {choose_plural('# record|# records', worst.allowed)} per partition.")
    detail = " ".join([*most, *_describe_others(group), *_describe_loss(group)])
    return LagVerdict(HealthState.OK, WORDS[LagState.OK], f"{sentence}.", detail)


def _verdict_unknown(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    """All partitions are: the reason is that of the one of which most is known."""
    match worst.unjudged:
        case UnjudgedLag.NO_COMMIT if not group.beyond_in:
            why, word = "no offsets committed yet", partition_word(worst)
        case UnjudgedLag.NO_END:
            why, word = "log end offsets are unknown", partition_word(worst)
        case UnjudgedLag.COLLECTING:
            why, word = f"{worst.known} of {WINDOW} samples collected", partition_word(worst)
        case UnjudgedLag.NO_TREND:
            why, word = "too few log end offsets are known", WORDS[LagState.UNKNOWN]
        case _:
            why, word = "committed offsets are past the log end", "Commit past log end"
    return LagVerdict(HealthState.UNKNOWN, word, f"Group state unknown: {why}.", " ".join(_describe_loss(group)))


def _describe_others(group: GroupLag) -> list[str]:
    """How the partitions besides the worst do: "Other partitions: 45 OK, 2 not evaluated yet."."""
    counts = dict(group.counts)
    counts[group.verdict] -= 1
    if group.verdict is LagState.OK:
        counts[LagState.OK] = 0
    parts = [f"{number:,} {words}" for state, words in _DO.items() if (number := counts.get(state, 0))]
    return [f"Other partitions: {', '.join(parts)}."] if parts else []


def _describe_loss(group: GroupLag) -> list[str]:
    found = []
    if group.lost and group.most_lost is not None:
        place = group.most_lost.name if group.lost_in == 1 else choose_plural("# partition|# partitions", group.lost_in)
        records = choose_plural("# record|Up to # records", group.lost)
        deleted = choose_plural("was deleted before it was|were deleted before they were", group.lost)
        found.append(f"{records} of {place} {deleted} committed.")
    if group.beyond_in:
        have = choose_plural("# partition has|# partitions have", group.beyond_in)
        found.append(f"{have} a commit past the log end: the topic was truncated, or deleted and recreated.")
    return found
