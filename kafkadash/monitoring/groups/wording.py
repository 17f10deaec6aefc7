"""Texts about a group's lag: the sentence with the verdict, and the notes to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkadash.core.formatting import format_duration, long_duration
from kafkadash.core.messages import choose_plural
from kafkadash.core.status import HealthState
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
    LagState.WARN: "Falls behind",
    LagState.STALL: "Stall",
    LagState.STOP: "Stop",
    LagState.REWIND: "Rewind",
    LagState.ERR: "Stands still",
    LagState.UNKNOWN: "Unknown",
}
"""Words on pills, marks and filters."""

_DO: Mapping[LagState, str] = {
    LagState.STALL: "stalls|stall",
    LagState.STOP: "has stopped|have stopped",
    LagState.REWIND: "was set back|were set back",
    LagState.ERR: "stands still|stand still",
    LagState.WARN: "falls behind|fall behind",
    LagState.OK: "is OK|are OK",
    LagState.UNKNOWN: "cannot be judged yet|cannot be judged yet",
}


@dataclass(frozen=True, slots=True)
class LagVerdict:
    """``state`` colours the pill, ``word`` stands on it, ``sentence`` is the answer and ``detail`` sentences beside it.

    ``answer`` continues a title: "group invoice-writer …".
    """

    state: HealthState
    word: str
    sentence: str
    detail: str = ""
    answer: str = ""


def partition_word(each: PartitionLag) -> str:
    """Return the label of a partition in a table: "Stall", "Collecting 4/10", "No commit yet"."""
    match each.unjudged:
        case UnjudgedLag.NO_COMMIT:
            return "No commit yet"
        case UnjudgedLag.NO_END:
            return "Log end not known"
        case UnjudgedLag.BEYOND:
            return "Beyond the log end"
        case UnjudgedLag.COLLECTING:
            return f"Collecting {each.known}/{WINDOW}"
        case _:
            return WORDS[each.state]


def drain_words(trend: LagTrend) -> str:
    """Return the text of a drain-time cell: "never", "12 min", "keeps up"; '' where the time is not known."""
    match trend.drain:
        case LagDrain.EMPTY:
            return "nothing waits"
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
        answer = "has committed nothing"
        return LagVerdict(HealthState.UNKNOWN, "No commit yet", "The group has committed nothing yet.", answer=answer)
    match group.verdict:
        case LagState.STALL | LagState.ERR:
            text = _describe_still(worst, now)
            beside = _same_offset(worst)
            if group.verdict is LagState.ERR:
                beside.append("Whether the group has members is not known.")
            elif worst.member:
                beside.append(
                    f"Member {worst.member} still sends heartbeats, so the group will not rebalance by itself."
                )
            elif worst.member is not None:
                beside.append("The group has members, but none of them is assigned to it.")
        case LagState.STOP:
            text, beside = (
                _describe_stopped(group, worst),
                [f"{_append_duration(worst, now, 'Nothing was committed')}.", *_same_offset(worst)],
            )
        case LagState.REWIND:
            records = choose_plural("# record|# records", worst.fallen)
            text = f"{worst.name} was set back by {records}, and {_describe_waiting(worst)}"
            beside = ["It has not come up to where it was in its last samples."]
        case LagState.WARN:
            text, beside = _describe_behind(worst), [f"Its lag never got smaller over its last {worst.known} samples."]
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
        answer=text,
    )


def unread_verdict(age_s: float | None, error: str = "") -> LagVerdict:
    """For data that is too old to tell anything, or that was never there; nothing stale is called well."""
    since = f"it was last read {long_duration(age_s)} ago" if age_s is not None else "it has not been read yet"
    return LagVerdict(
        HealthState.UNKNOWN, "Cannot tell", f"Cannot tell how the group does: {since}.", error, answer=since
    )


def _describe_waiting(worst: PartitionLag) -> str:
    waiting = worst.waiting or 0
    if not waiting and worst.lost:
        texts = "the # record after its offset is deleted|the # records after its offset are deleted"
        return choose_plural(texts, worst.lost)
    return choose_plural("# record waits|# records wait", waiting)


def _describe_still(worst: PartitionLag, now: float) -> str:
    link = " while " if worst.waiting else ", and "
    return f"{_append_duration(worst, now, f'{worst.name} has committed nothing')}{link}{_describe_waiting(worst)}"


def _append_duration(worst: PartitionLag, now: float, text: str) -> str:
    """With for how long; what was never seen to move has stood still for longer than it was watched."""
    if worst.moved_at is not None:
        return f"{text} for {long_duration(now - worst.moved_at)}"
    if worst.seen_since is not None:
        return f"{text} for at least {long_duration(now - worst.seen_since)}"
    return text


def _same_offset(worst: PartitionLag) -> list[str]:
    never = (
        ", and the lag was never zero in them"
        if not worst.allowed
        else (f", and the lag was never down to the {worst.allowed:,} that are allowed")
    )
    return [f"Its last {worst.known} samples hold the same offset{never}."]


def _describe_stopped(group: GroupLag, worst: PartitionLag) -> str:
    nobody = "The group has no members" if group.members == 0 else f"Nobody commits on {worst.name} any more"
    place = f" in {worst.name}" if group.members == 0 else ""
    return f"{nobody}{' while ' if worst.waiting else ', and '}{_describe_waiting(worst)}{place}"


def _describe_behind(worst: PartitionLag) -> str:
    net = worst.trend.net
    if net is None or net >= 0:
        return f"{worst.name} does not catch up: {_describe_waiting(worst)}"
    return f"{worst.name} falls behind: {_describe_waiting(worst)}, {_format_rate(-net)} more every second"


def _format_rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _verdict_ok(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    partitions = choose_plural("# partition|# partitions", group.partitions - group.lag_unknown)
    everywhere = "" if group.partitions == 1 else f" in {partitions}"
    if group.lag == 0:
        sentence, most = "The group has read all that was written", []
    else:
        sentence = f"The group keeps up: {choose_plural('# record waits|# records wait', group.lag or 0)}{everywhere}"
        most = [f"Most of them, {worst.lag:,}, in {worst.name}."] if group.partitions > 1 else []
        if worst.allowed:
            most.append(f"Up to {choose_plural('# record|# records', worst.allowed)} a partition are allowed to wait.")
    detail = " ".join([*most, *_describe_others(group), *_describe_loss(group)])
    return LagVerdict(HealthState.OK, WORDS[LagState.OK], f"{sentence}.", detail, answer="keeps up")


def _verdict_unknown(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    """All partitions are: the reason is that of the one of which most is known."""
    match worst.unjudged:
        case UnjudgedLag.NO_COMMIT if not group.beyond_in:
            why, word = "it has committed nothing yet", partition_word(worst)
        case UnjudgedLag.NO_END:
            why, word = "the log ends of what it reads are not known", partition_word(worst)
        case UnjudgedLag.COLLECTING:
            why, word = f"{worst.known} of {WINDOW} samples are collected", partition_word(worst)
        case UnjudgedLag.NO_TREND:
            why, word = "too few log ends are known in its window", WORDS[LagState.UNKNOWN]
        case _:
            why, word = "its commits lie beyond the end of the log", "Beyond the log end"
    return LagVerdict(
        HealthState.UNKNOWN,
        word,
        f"Cannot tell how the group does: {why}.",
        " ".join(_describe_loss(group)),
        answer=f"cannot be judged: {why}",
    )


def _describe_others(group: GroupLag) -> list[str]:
    """How the partitions besides the worst do: "45 partitions are OK; 2 cannot be judged yet."."""
    counts = dict(group.counts)
    counts[group.verdict] -= 1
    if group.verdict is LagState.OK:
        counts[LagState.OK] = 0
    parts: list[str] = []
    for state, texts in _DO.items():
        if number := counts.get(state, 0):
            more = "more " if state is group.verdict else ""
            noun = "" if parts else f" {more}{choose_plural('partition|partitions', number)}"
            parts.append(f"{number:,}{noun} {choose_plural(texts, number)}")
    return [f"{'; '.join(parts)}."] if parts else []


def _describe_loss(group: GroupLag) -> list[str]:
    found = []
    if group.lost and group.most_lost is not None:
        place = group.most_lost.name if group.lost_in == 1 else choose_plural("# partition|# partitions", group.lost_in)
        records = choose_plural("# record|Up to # records", group.lost)
        deleted = choose_plural("was deleted before it was|were deleted before they were", group.lost)
        found.append(f"{records} of {place} {deleted} committed.")
    if group.beyond_in:
        have = choose_plural("# partition has|# partitions have", group.beyond_in)
        found.append(f"{have} a commit beyond the end of the log: the topic was truncated, or deleted and made anew.")
    return found
