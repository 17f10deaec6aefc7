"""What a reader of results ends up with: rows of each kind, the newer in the place of the older."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from kafkadash.export.results import MARKERS, RESULTS, ResultKind

Tables = Mapping[ResultKind, Mapping[tuple[Any, ...], Mapping[str, Any]]]


def markers(root: Path, wanted: Callable[[str], bool] = lambda _: True) -> list[dict[str, Any]]:
    """Of queries that are wanted, in the order in which they were written."""
    found = [json.loads(path.read_text()) for path in (root / "results" / MARKERS).glob("[!_]*.json")]
    return sorted((each for each in found if wanted(each["query"])), key=lambda each: each["written_at"])


def tables(root: Path, wanted: Callable[[str], bool] = lambda _: True) -> Tables:
    """Values are absolute, so that taking in a result is putting its rows in the place of others with their keys."""
    made: dict[ResultKind, dict[tuple[Any, ...], Mapping[str, Any]]] = {}
    for marker in markers(root, wanted):
        for kind, said in marker["kinds"].items():
            rows = ds.dataset(root / "results" / kind / f"{marker['query']}-{marker['batch']}", format="parquet")
            read = rows.to_table().to_pylist() if rows.files else []
            assert len(read) == said["rows"], "the marker counts what is there"
            table = made.setdefault(ResultKind(kind), {})
            for row in read:
                key = tuple(row[column] for column in RESULTS[ResultKind(kind)].key)
                old = table.get(key)
                if old is None or "observed_at" not in row or old["observed_at"] <= row["observed_at"]:
                    table[key] = row
    return made


def differing(one: Tables, other: Tables) -> dict[ResultKind, int]:
    """How many rows of each kind are not the same in both, or in one of them only."""
    counts = {}
    for kind in {*one, *other}:
        rows, others = one.get(kind, {}), other.get(kind, {})
        counts[kind] = sum(rows.get(key) != others.get(key) for key in {**rows, **others})
    return {kind: count for kind, count in counts.items() if count}
