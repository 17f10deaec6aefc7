"""A report that somebody brings back: what was asked for, and the proof. Nothing in it is believed before it is looked
at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkadash.domain.planner.report import FORMAT
from kafkadash.domain.planner.request import MODES, PlanRequest, Proof
from kafkadash.domain.planner.topology_json import LARGEST_ID, MOST_BYTES


class BadReport(Exception):
    """This is no report of a plan."""


def request_in(report: object) -> PlanRequest:
    """What the plan was asked for. Raises BadReport."""
    asked = _of(report, "request")
    if not all(name in _FIELDS and _FIELDS[name](value) for name, value in asked.items()) or "mode" not in asked:
        raise BadReport
    return PlanRequest.from_json(asked)


def proof_in(report: object) -> Proof | None:
    """The proof, None where there is none. Raises BadReport."""
    if isinstance(report, dict) and report.get("format") == FORMAT and report.get("certificate") is None:
        return None
    given = _of(report, "certificate")
    figures = all(_is_bytes(given.get(name)) for name in ("moved", "bound", "estimated"))
    disk_bound = given.get("disk_bound")
    if not figures or not (disk_bound is None or _is_bytes(disk_bound)):
        raise BadReport
    if not _of_brokers(given.get("prices"), _is_bytes) or not _of_brokers(given.get("widened"), _is_pair):
        raise BadReport
    if not _of_brokers(given.get("outside"), _is_text):
        raise BadReport
    return Proof.from_json({**given, "disk_bound": disk_bound})


def _of(report: object, part: str) -> dict[str, Any]:
    found = report.get(part) if isinstance(report, dict) and report.get("format") == FORMAT else None
    if not isinstance(found, dict):
        raise BadReport
    return found


def _of_brokers(value: object, fits: Callable[[object], bool]) -> bool:
    """Whether it is an object of broker ids, and all in it fits."""
    if not isinstance(value, dict):
        return False
    return all(id_.isascii() and id_.isdigit() and int(id_) <= LARGEST_ID and fits(one) for id_, one in value.items())


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_ID


def _is_bytes(value: object) -> bool:
    return type(value) is int and abs(value) <= MOST_BYTES


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_whole(one) for one in value)


def _is_share(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return value is None or _is_whole(value)


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(_is_whole(one) for one in value)


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "mode": lambda value: value in MODES if isinstance(value, str) else False,
    "brokers": _are_ids,
    "replacements": _are_ids,
    "targets": lambda value: value is None or _are_ids(value),
    "factor": _is_number,
    "topics": lambda value: isinstance(value, list) and all(_is_text(one) for one in value),
    "pattern": _is_text,
    "excluded": _is_text,
    "eps": _is_share,
    "disk_limit": _is_share,
    "most_replicas": _is_number,
    "rebalance": _is_flag,
    "ignore_racks": _is_flag,
    "accept_fewer_racks": _is_flag,
    "leaders": _is_flag,
    "change_rf": _is_flag,
}
