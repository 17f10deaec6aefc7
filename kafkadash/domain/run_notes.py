"""What is to be said beside the figures of a run, so that nobody takes them for more than they are."""

from __future__ import annotations

from kafkadash.domain.wording import count, count_in_words, duration, size

SAID_FOR_S = 60.0
"""So long after a change of the throttle its effect is expected more than measured."""

DRIFT_SHARE, DRIFT_BYTES = 0.01, 1_000_000


def notes(
    *,
    copying: int,
    unsized: int,
    done: int,
    rows: int,
    drift: float,
    total: float,
    fell_back: bool,
    left_out: int,
    throttle_age: float | None,
    throttle: int,
) -> tuple[str, ...]:
    """``drift``: bytes by which the logs of what is in flight are larger than when the run began."""
    found = []
    if not copying:
        found.append("This plan copies nothing: it only takes replicas away or changes their order.")
    if unsized:
        verb = "is" if unsized == 1 else "are"
        found.append(
            f"The size of {count(unsized, 'partition')} {verb} not known: the percentage leaves"
            f" {'it' if unsized == 1 else 'them'} out, and the time left is not known. {done:,} of"
            f" {count(rows, 'move')} done."
        )
    elif abs(drift) > max(DRIFT_SHARE * total, DRIFT_BYTES):
        grown = "grown" if drift > 0 else "shrunk"
        found.append(
            f"The logs in flight have {grown} by {size(abs(drift))} since the run began; the percentage goes by the"
            " sizes of then, the time left by those of now."
        )
    if fell_back:
        found.append(
            "Some copies are further behind their leader than they were; the percentage of the plan waits for them."
        )
    if left_out:
        gets = "does" if left_out == 1 else "do"
        found.append(
            f"{count_in_words(left_out, 'move')} {gets} not get on, or would wait for one that does not: the time left"
            " is that of the others."
        )
    if throttle_age is not None and throttle_age < SAID_FOR_S:
        found.append(
            f"The throttle was changed {duration(throttle_age)} ago: the time left expects {throttle / 1e6:g} MB/s"
            " where the old one was the limit."
        )
    return tuple(found)
