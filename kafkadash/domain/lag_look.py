"""What is seen of a group on one partition in one look, and the lag that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkadash.domain.lag import Sample


class Look(NamedTuple):
    """``at`` in seconds since the epoch, when commits began to be read, on our clock; brokers' clocks are never used.
    The log end is read after them: at once as a rule, later by as much as a coordinator is silent (``Committed``).

    ``committed`` is an offset, None where there is no commit; ``end`` the log end offset, None where no leader told.
    """

    at: float
    committed: int | None
    end: int | None


def lag_of(committed: int | None, end: int | None) -> int | None:
    """Records between the commit and the log end, as kafka-consumer-groups counts them; never negative.

    None where either is not known, and for a commit beyond the log end (the topic was truncated, or deleted and made
    anew): at its next fetch the consumer is told OFFSET_OUT_OF_RANGE and starts at the oldest or at the newest record,
    by its own ``auto.offset.reset``, so how much it has left to read is not known. It is neither 0 nor negative.
    """
    if committed is None or end is None or committed > end:
        return None
    return end - committed


def beyond(committed: int | None, end: int | None) -> int:
    """By how many records a commit lies beyond the log end; 0 where it does not."""
    return 0 if committed is None or end is None else max(0, committed - end)


def lost(committed: int | None, start: int | None) -> int | None:
    """Records that were deleted before they were committed: those from the commit to the log start.

    An upper bound, as offsets of a compacted or transactional topic are not all records. None where not known.
    """
    return None if committed is None or start is None else max(0, start - committed)


def samples_of(looks: Sequence[Look]) -> list[Sample]:
    """A window without commit times, as ``lag.judge`` takes it."""
    return [Sample(look.committed, lag_of(look.committed, look.end)) for look in looks]


def ends_of(looks: Sequence[Look]) -> list[int]:
    """The log ends of a window, newest first, as ``lag.judge`` takes them."""
    return [look.end for look in reversed(looks) if look.end is not None]
