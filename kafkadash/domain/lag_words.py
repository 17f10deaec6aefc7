"""What a person is told of a group's lag: the sentence that is the answer, and what to know beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkadash.domain.lag import WINDOW, LagState
from kafkadash.domain.lag_group import STATES, GroupLag, PartitionLag, Unjudged
from kafkadash.domain.lag_time import How, TimeLag
from kafkadash.domain.lag_trend import Drain, Trend
from kafkadash.domain.status import State
from kafkadash.domain.wording import count, duration, long_duration

WORDS: Mapping[LagState, str] = {
    LagState.OK: "OK",
    LagState.WARN: "Falls behind",
    LagState.STALL: "Stall",
    LagState.STOP: "Stop",
    LagState.REWIND: "Rewind",
    LagState.ERR: "Stands still",
    LagState.UNKNOWN: "Unknown",
}
"""As they stand on pills, marks and filters."""

_DO: Mapping[LagState, tuple[str, str]] = {
    LagState.STALL: ("stalls", "stall"),
    LagState.STOP: ("has stopped", "have stopped"),
    LagState.REWIND: ("was set back", "were set back"),
    LagState.ERR: ("stands still", "stand still"),
    LagState.WARN: ("falls behind", "fall behind"),
    LagState.OK: ("is OK", "are OK"),
    LagState.UNKNOWN: ("cannot be judged yet", "cannot be judged yet"),
}


@dataclass(frozen=True, slots=True)
class LagVerdict:
    """``state`` colours the pill, ``word`` stands on it, ``sentence`` is the answer and ``detail`` sentences beside it.

    ``answer`` continues a title: "group invoice-writer …".
    """

    state: State
    word: str
    sentence: str
    detail: str = ""
    answer: str = ""


def partition_word(each: PartitionLag) -> str:
    """Of a mark in a table: "Stall", "Collecting 4/10", "No commit yet"."""
    match each.unjudged:
        case Unjudged.NO_COMMIT:
            return "No commit yet"
        case Unjudged.NO_END:
            return "Log end not known"
        case Unjudged.BEYOND:
            return "Beyond the log end"
        case Unjudged.COLLECTING:
            return f"Collecting {each.known}/{WINDOW}"
        case _:
            return WORDS[each.state]


def drain_words(trend: Trend) -> str:
    """Of a cell: "never", "12 min", "keeps up"; '' where it is not known."""
    match trend.drain:
        case Drain.EMPTY:
            return "nothing waits"
        case Drain.DRAINS:
            return duration(trend.drain_s or 0)
        case Drain.UNKNOWN:
            return ""
        case kind:
            return kind.value


def time_lag_words(lag: TimeLag | None) -> str:
    """Of a cell: "10 min 40 s", "about 3 h", "over 90 s", "0.8 s"; "unknown" where it is not known."""
    if lag is None:
        return "unknown"
    if lag.how is How.MEASURED:
        return f"{lag.seconds:.1f} s" if 0 < lag.seconds < 10 else duration(lag.seconds)
    return f"{'about' if lag.how is How.ESTIMATED else 'over'} {duration(lag.seconds)}"


def group_verdict(group: GroupLag, now: float) -> LagVerdict:
    """``now`` in seconds since the epoch, from which ages are counted."""
    worst = group.worst
    if worst is None:
        answer = "has committed nothing"
        return LagVerdict(State.UNKNOWN, "No commit yet", "The group has committed nothing yet.", answer=answer)
    match group.verdict:
        case LagState.STALL | LagState.ERR:
            said = _still(worst, now)
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
            said, beside = (
                _stopped(group, worst),
                [f"{_for(worst, now, 'Nothing was committed')}.", *_same_offset(worst)],
            )
        case LagState.REWIND:
            said = f"{worst.name} was set back by {count(worst.fallen, 'record')}, and {_waiting(worst)}"
            beside = ["It has not come up to where it was in its last samples."]
        case LagState.WARN:
            said, beside = _behind(worst), [f"Its lag never got smaller over its last {worst.known} samples."]
        case LagState.OK:
            return _well(group, worst)
        case _:
            return _unknown(group, worst)
    others = _others(group)
    return LagVerdict(
        STATES[group.verdict],
        WORDS[group.verdict],
        f"{said}.",
        " ".join([*beside, *others, *_loss(group)]),
        answer=said,
    )


def not_read(age_s: float | None, error: str = "") -> LagVerdict:
    """For data that is too old to tell anything, or that was never there; nothing stale is called well."""
    since = f"it was last read {long_duration(age_s)} ago" if age_s is not None else "it has not been read yet"
    return LagVerdict(State.UNKNOWN, "Cannot tell", f"Cannot tell how the group does: {since}.", error, answer=since)


def _waiting(worst: PartitionLag) -> str:
    waiting = worst.waiting or 0
    if not waiting and worst.lost:
        return f"the {count(worst.lost, 'record')} after its offset {'is' if worst.lost == 1 else 'are'} deleted"
    return f"{count(waiting, 'record waits', 'records wait')}"


def _still(worst: PartitionLag, now: float) -> str:
    link = " while " if worst.waiting else ", and "
    return f"{_for(worst, now, f'{worst.name} has committed nothing')}{link}{_waiting(worst)}"


def _for(worst: PartitionLag, now: float, said: str) -> str:
    """With for how long; what was never seen to move has stood still for longer than it was watched."""
    if worst.moved_at is not None:
        return f"{said} for {long_duration(now - worst.moved_at)}"
    if worst.seen_since is not None:
        return f"{said} for at least {long_duration(now - worst.seen_since)}"
    return said


def _same_offset(worst: PartitionLag) -> list[str]:
    never = (
        ", and the lag was never zero in them"
        if not worst.allowed
        else (f", and the lag was never down to the {worst.allowed:,} that are allowed")
    )
    return [f"Its last {worst.known} samples hold the same offset{never}."]


def _stopped(group: GroupLag, worst: PartitionLag) -> str:
    nobody = "The group has no members" if group.members == 0 else f"Nobody commits on {worst.name} any more"
    place = f" in {worst.name}" if group.members == 0 else ""
    return f"{nobody}{' while ' if worst.waiting else ', and '}{_waiting(worst)}{place}"


def _behind(worst: PartitionLag) -> str:
    net = worst.trend.net
    if net is None or net >= 0:
        return f"{worst.name} does not catch up: {_waiting(worst)}"
    return f"{worst.name} falls behind: {_waiting(worst)}, {_rate(-net)} more every second"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _well(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    everywhere = "" if group.partitions == 1 else f" in {count(group.partitions - group.lag_unknown, 'partition')}"
    if group.lag == 0:
        sentence, most = "The group has read all that was written", []
    else:
        sentence = f"The group keeps up: {count(group.lag or 0, 'record waits', 'records wait')}{everywhere}"
        most = [f"Most of them, {worst.lag:,}, in {worst.name}."] if group.partitions > 1 else []
        if worst.allowed:
            most.append(f"Up to {count(worst.allowed, 'record')} a partition are allowed to wait.")
    detail = " ".join([*most, *_others(group), *_loss(group)])
    return LagVerdict(State.OK, WORDS[LagState.OK], f"{sentence}.", detail, answer="keeps up")


def _unknown(group: GroupLag, worst: PartitionLag) -> LagVerdict:
    """All partitions are: the reason is that of the one of which most is known."""
    match worst.unjudged:
        case Unjudged.NO_COMMIT if not group.beyond_in:
            why, word = "it has committed nothing yet", partition_word(worst)
        case Unjudged.NO_END:
            why, word = "the log ends of what it reads are not known", partition_word(worst)
        case Unjudged.COLLECTING:
            why, word = f"{worst.known} of {WINDOW} samples are collected", partition_word(worst)
        case Unjudged.NO_TREND:
            why, word = "too few log ends are known in its window", WORDS[LagState.UNKNOWN]
        case _:
            why, word = "its commits lie beyond the end of the log", "Beyond the log end"
    return LagVerdict(
        State.UNKNOWN,
        word,
        f"Cannot tell how the group does: {why}.",
        " ".join(_loss(group)),
        answer=f"cannot be judged: {why}",
    )


def _others(group: GroupLag) -> list[str]:
    """How the partitions besides the worst do: "45 partitions are OK; 2 cannot be judged yet."."""
    counts = dict(group.counts)
    counts[group.verdict] -= 1
    if group.verdict is LagState.OK:
        counts[LagState.OK] = 0
    parts: list[str] = []
    for state, words in _DO.items():
        if number := counts.get(state, 0):
            more = "more " if state is group.verdict else ""
            noun = "" if parts else f" {more}{'partition' if number == 1 else 'partitions'}"
            parts.append(f"{number:,}{noun} {words[number != 1]}")
    return [f"{'; '.join(parts)}."] if parts else []


def _loss(group: GroupLag) -> list[str]:
    found = []
    if group.lost and group.most_lost is not None:
        place = group.most_lost.name if group.lost_in == 1 else count(group.lost_in, "partition")
        if group.lost == 1:
            found.append(f"1 record of {place} was deleted before it was committed.")
        else:
            found.append(f"Up to {group.lost:,} records of {place} were deleted before they were committed.")
    if group.beyond_in:
        found.append(
            f"{count(group.beyond_in, 'partition has', 'partitions have')} a commit beyond the end of the log: "
            "the topic was truncated, or deleted and made anew."
        )
    return found
