"""The report of a plan for a terminal: tables before and after, the proof, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkadash.domain.wording import count, run_time, size

MOST_RISKY = 20
MOST_VIOLATIONS = 10
UNKNOWN = "?"


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Of ``report.report_of``."""
    yield from _headline(report)
    yield ""
    yield from _racks(report["racks"])
    yield ""
    yield from _brokers(report["brokers"])
    for part in (_spread(report), _time(report["makespan"]), _notices(report["notices"]), _risky(report["risky_rows"])):
        told = list(part)
        if told:
            yield ""
            yield from told


def proof_words(report: Mapping[str, Any]) -> str:
    """How far the plan is from the least that has to move; '' where nothing was proven."""
    bound, ratio = report["lower_bound"], report["ratio"]
    if bound is None:
        return ""
    moved = report["certificate"]["moved"]
    about = ""
    if report["certificate"]["estimated"]:
        unsized = count(report["certificate"]["estimated"], "partition")
        about = f" The size of {unsized} that move is not known and reckoned as usual in their topic."
    if report["proven_least"]:
        return f"Proven least movement: {size(moved)}, bound {size(bound)}."
    if ratio is None:
        return f"Moves {size(moved)} where nothing has to move.{about}"
    if ratio == 1:
        return f"Least movement for the sizes as reckoned: {size(moved)}, bound {size(bound)}.{about}"
    return f"Moves {size(moved)}; every plan for this moves {size(bound)} at least, so {ratio:.3f} × the bound.{about}"


def _headline(report: Mapping[str, Any]) -> Iterator[str]:
    if not report["partitions"]:
        yield f"{report['mode']}: nothing has to move."
    else:
        partitions = f"{report['partitions']:,} of {count(report['partitions_total'], 'partition')}"
        moved = "an unknown amount" if report["bytes_moved"] is None else size(report["bytes_moved"])
        if report["bytes_moved"] is None and report["bytes_moved_known"]:
            moved = f"{size(report['bytes_moved_known'])} and what is not known"
        copies = count(report["moves"], "new replica")
        yield f"{report['mode']}: {partitions} change, {copies}, {moved} to copy."
        if report["leaders_moved"]:
            yield f"Leaders of {count(report['leaders_moved'], 'partition')} change."
    proof = proof_words(report)
    if proof:
        yield proof
    yield f"plan_sha256 {report['plan_sha256']}"


def _racks(racks: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            _rack(one["rack"]),
            f"{one['brokers']:,}",
            _change(one["replicas"]),
            _spans(one["per_broker"]),
            _change(one["leaders"]),
            _sizes(one["bytes"]),
        ]
        for one in racks
    ]
    return _table(["rack", "brokers", "replicas", "least–most of a broker", "leaders", "bytes"], rows)


def _brokers(brokers: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            f"{one['id']}{'' if one['alive'] else ' (away)'}",
            _rack(one["rack"]),
            _change(one["replicas"]),
            _change(one["leaders"]),
            _sizes(one["bytes"]),
            _size(one["disk"]["peak"]),
            *(_share(one["disk"][when], one["disk"]["total"]) for when in ("before", "peak", "after")),
        ]
        for one in brokers
    ]
    heads = ["broker", "rack", "replicas", "leaders", "bytes", "peak on disk", "disk now", "peak", "after"]
    return _table(heads, rows)


def _spread(report: Mapping[str, Any]) -> Iterator[str]:
    spread, left = report["rack_spread"], report["violations_left"]
    if not spread["judged"]:
        yield "The spread over racks is not judged: brokers name no racks, only one, or not all of them do."
        return
    before, after = spread["violations_before"], spread["violations_after"]
    yield f"Partitions spread over racks less evenly than they could be: {before:,} before, {after:,} after."
    if spread["partitions_in_fewer_racks"]:
        yield f"In fewer racks than now: {count(spread['partitions_in_fewer_racks'], 'partition')}."
    for why, number in left["reasons"].items():
        examples = [f"{one['topic']}-{one['partition']}" for one in left["listed"] if one["why"] == why]
        shown = ", ".join(examples[:MOST_VIOLATIONS]) + (", …" if number > len(examples[:MOST_VIOLATIONS]) else "")
        yield f"  {number:,}: {why}" + (f" ({shown})" if examples else "")


def _time(makespan: Mapping[str, Any]) -> Iterator[str]:
    if makespan["bound_bytes"] == 0:
        return
    if makespan["bound_bytes"] is None:
        yield "How long it takes cannot be told: a size is not known."
        return
    times = [f"{run_time(at['seconds'])} at {size(at['bytes_per_s'])}/s" for at in makespan["at"]]
    way = "receives" if makespan["direction"] == "in" else "sends"
    yield f"Takes at least {', '.join(times)} per broker and direction (estimate)."
    yield (
        f"Broker {makespan['broker']} {way} most, {size(makespan['broker_bytes'])}; the largest replica has "
        f"{size(makespan['largest_move_bytes'])}."
    )
    waves = makespan["waves"]
    yield (
        f"With {waves['moves_at_once']} moves at once per broker and direction: {count(waves['waves'], 'wave')} at "
        f"least, for up to {count(waves['most_moves_of_a_broker'], 'move')} of one broker."
    )


def _notices(notices: Sequence[str]) -> Iterator[str]:
    if notices:
        yield "To be known:"
    for notice in notices:
        yield f"  {notice}"


def _risky(risky: Mapping[str, Any]) -> list[str]:
    if not risky["count"]:
        return []
    shown = risky["listed"][:MOST_RISKY]
    first = f", the first {len(shown)}" if len(shown) < risky["count"] else ""
    rows = [[f"{one['topic']}-{one['partition']}", _size(one["bytes"]), ", ".join(one["why"])] for one in shown]
    return [
        f"Rows worth a look: {risky['count']:,}{first}",
        *_table(["partition", "to copy", "why"], rows, words=(0, 2)),
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0, 1)) -> list[str]:
    """``words``: columns that begin on the left; figures end on the right."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def _change(figures: Mapping[str, int]) -> str:
    before, after = figures["before"], figures["after"]
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"


def _sizes(figures: Mapping[str, int | None]) -> str:
    before, after = _size(figures["before"]), _size(figures["after"])
    return before if before == after else f"{before} → {after}"


def _spans(figures: Mapping[str, Sequence[int] | None]) -> str:
    before, after = _span(figures["before"]), _span(figures["after"])
    return before if before == after else f"{before} → {after}"


def _span(span: Sequence[int] | None) -> str:
    return UNKNOWN if span is None else f"{span[0]:,}–{span[1]:,}"


def _size(number: int | None) -> str:
    return UNKNOWN if number is None else size(number)


def _share(used: int | None, total: int | None) -> str:
    return UNKNOWN if used is None or not total else f"{100 * used / total:.1f} %"


def _rack(name: str | None) -> str:
    return "–" if name is None else name
