"""Topics as the wizard lets them be chosen: by name or by a regular expression, and how much that is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings

from kafkadash.clusters.models import Cluster
from kafkadash.domain.refusals import forms as said
from kafkadash.domain.refusals import plan_requests
from kafkadash.domain.wording import count, listed_shortly, size
from kafkadash.observe.models import TopicState
from kafkadash.topic_match import CPU_S

LONGEST_PATTERN = 500
_WAIT_S = 15.0
"""For a machine that is busy; the process itself has ``CPU_S`` of a processor."""


class BadChoice(Exception):
    """``field`` ("topics", "pattern" or "excluded") is wrong; ``str()`` says how."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Counted:
    """What is chosen of ``total`` topics. ``size_bytes`` of all replicas, rounded; ``unsized`` topics are not in it."""

    topics: int
    total: int
    partitions: int
    size_bytes: int
    unsized: int

    @property
    def words(self) -> str:
        """ "12 of 340 topics, 1,204 partitions, about 3.1 TB"."""
        which = f"all {count(self.total, 'topic')}" if self.topics == self.total else self._some
        words = f"{which}, {count(self.partitions, 'partition')}"
        if self.unsized == self.topics:
            return f"{words}, of unknown size"
        words += f", about {size(self.size_bytes)} with all replicas"
        return words if not self.unsized else f"{words} without {count(self.unsized, 'topic')} of unknown size"

    @property
    def _some(self) -> str:
        return f"{self.topics:,} of {count(self.total, 'topic')}"


def names_in(typed: str) -> tuple[str, ...]:
    """Of topics, with commas or blanks between them: sorted, each once."""
    return tuple(sorted(set(typed.replace(",", " ").split())))


def counted(cluster: Cluster, topics: Sequence[str], pattern: str, excluded: str) -> Counted:
    """What these choose on a cluster, as it was last read. Raises BadChoice, also where they choose nothing."""
    rows = {
        name: (partitions, size_bytes)
        for name, partitions, size_bytes in TopicState.objects.filter(cluster=cluster).values_list(
            "name", "partition_count", "size_bytes"
        )
    }
    unknown = [name for name in topics if name not in rows]
    if unknown:
        raise BadChoice("topics", plan_requests.TOPICS_UNKNOWN(topics=listed_shortly(unknown, 8)))
    names = _chosen(topics, pattern, excluded, rows)
    if rows and not names:
        left = _chosen(topics, pattern, "", rows) if excluded else []
        why = f"“{excluded}” excludes them" if left else f"no name matches “{pattern}”"
        sentence = plan_requests.NO_TOPIC_CHOSEN(topics=count(len(rows), "topic"), why=why)
        raise BadChoice("excluded" if left else "pattern", sentence)
    known = [rows[name] for name in names]
    sizes = [size_bytes for _, size_bytes in known if size_bytes is not None]
    return Counted(len(names), len(rows), sum(p for p, _ in known), sum(sizes), len(known) - len(sizes))


def _chosen(topics: Sequence[str], pattern: str, excluded: str, names: Iterable[str]) -> list[str]:
    if not pattern and not excluded:
        return sorted(topics or names)
    for field, one in (("pattern", pattern), ("excluded", excluded)):
        if len(one) > LONGEST_PATTERN:
            raise BadChoice(field, said.PATTERN_TOO_LONG(length=len(one), most=LONGEST_PATTERN))
    asked = {"topics": list(topics), "pattern": pattern, "excluded": excluded, "names": list(names)}
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kafkadash.topic_match"],
            input=json.dumps(asked).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=settings.BASE_DIR,
            env={**environment, "PYTHONPATH": str(settings.BASE_DIR)},
            timeout=_WAIT_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        field = "pattern" if pattern else "excluded"
        raise BadChoice(field, said.PATTERN_TOO_SLOW(seconds=CPU_S)) from error
    found = json.loads(done.stdout)
    if "fault" in found:
        field = "pattern" if found["pattern"] == pattern else "excluded"
        raise BadChoice(field, plan_requests.PATTERN_WRONG(pattern=found["pattern"], fault=found["fault"]))
    names_chosen: list[str] = found["chosen"]
    return names_chosen
