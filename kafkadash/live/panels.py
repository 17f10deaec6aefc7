"""What can be watched: panels that are pushed as HTML, and hints that tell a page to fetch itself again.

A key names one of them: ``reassignments:demo`` is the panel ``reassignments`` of the cluster with the slug ``demo``,
``run:42`` and ``moves:42`` are parts of the page of the run of change request #42, ``metadata-read:demo`` is the hint
that its metadata was read again, ``change:42`` the hint that something about #42 is new; ``board``, ``changes`` and
``pipeline`` are hints without a cluster. Pages list their keys in the address of their socket; ``watched`` says what
they mean, and ``live.rights`` asks ``clusters.access.allowed`` whether this person may see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.changes.live import CHANGE, CHANGES
from kafkadash.clusters.access import VIEW
from kafkadash.clusters.models import Cluster
from kafkadash.observe.history.turns import PIPELINE
from kafkadash.observe.models import Kind
from kafkadash.observe.queries.brokers import brokers_context
from kafkadash.observe.queries.collection import collection_context
from kafkadash.observe.queries.controllers import controllers_context, leaders_context
from kafkadash.observe.queries.group_tally import groups_context
from kafkadash.observe.queries.partitions import partitions_context
from kafkadash.observe.queries.quorum import quorum_context
from kafkadash.observe.queries.reassignments import reassignments_context
from kafkadash.observe.queries.throttles import throttles_context
from kafkadash.observe.read_hints import READ_HINTS
from kafkadash.oncall.queries import overview_context, status_context
from kafkadash.reassign.run.live_keys import MOVES, RUN
from kafkadash.reassign.run.moves_table import moves_part
from kafkadash.reassign.run.page import run_part

BOARD = "board"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
# A socket watches at most this many keys. A page with more is refused one, and fetches itself again instead.
MAX_KEYS = 200


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a page that is rendered the same way by the page and by a push.

    The template's root element has the id ``<name>-<slug>`` and is what the browser morphs. ``kinds`` are those whose
    refresh changes what it shows. ``context`` gets the cluster and the time now, and returns the template's context;
    its entry ``sampled_at`` (datetime or None) is when the data shown was taken.
    """

    name: str
    kinds: frozenset[str]
    template: str
    context: Callable[[Cluster, datetime], Mapping[str, Any]]
    action: str = VIEW

    def key(self, slug: str) -> str:
        return f"{self.name}:{slug}"

    def target(self, slug: str) -> str:
        """The CSS selector of its root element."""
        return f"#{self.name}-{slug}"


PANELS: Mapping[str, Panel] = {
    panel.name: panel
    for panel in (
        Panel("status", frozenset(Kind.values), "oncall/_status.html", status_context),
        Panel("overview", frozenset(Kind.values), "oncall/_overview.html", overview_context),
        Panel("groups", frozenset({Kind.GROUPS}), "observe/_groups.html", groups_context),
        Panel(
            "partitions",
            frozenset({Kind.METADATA, Kind.REASSIGNMENTS}),
            "observe/_partitions.html",
            partitions_context,
        ),
        Panel("brokers", frozenset({Kind.METADATA, Kind.LOG_DIRS}), "observe/_brokers.html", brokers_context),
        Panel("collection", frozenset(Kind.values), "observe/_collection.html", collection_context),
        Panel("quorum", frozenset({Kind.QUORUM}), "observe/_quorum.html", quorum_context),
        Panel("controllers", frozenset({Kind.QUORUM}), "observe/_controllers.html", controllers_context),
        Panel("leaders", frozenset({Kind.QUORUM}), "observe/_leaders.html", leaders_context),
        Panel(
            "reassignments",
            frozenset({Kind.REASSIGNMENTS, Kind.LOG_DIRS, Kind.CONFIGS}),
            "observe/_reassignments.html",
            reassignments_context,
        ),
        Panel(
            "throttles",
            frozenset({Kind.CONFIGS, Kind.REASSIGNMENTS}),
            "observe/_throttles.html",
            throttles_context,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class RunPanel:
    """Parts of the page of a run that are pushed together, by the number of its change request.

    Each template has one root element with an id, and takes the place of the element with that id. ``context`` is as
    for ``Panel``, or None where the request has no run; the templates hold nothing that is one person's.
    """

    name: str
    templates: tuple[str, ...]
    context: Callable[[int, datetime], Mapping[str, Any] | None]

    def key(self, number: int) -> str:
        return f"{self.name}:{number}"

    def target(self, number: int) -> str:
        """The CSS selector of the root element of its first template: a page that has it has all."""
        return f"#{self.name}-{number}"


RUN_PANELS: Mapping[str, RunPanel] = {
    panel.name: panel
    for panel in (
        RunPanel(
            RUN,
            (
                "reassign/_run_progress.html",
                "reassign/_run_figures.html",
                "reassign/_run_notices.html",
                "reassign/_run_throttle.html",
            ),
            run_part,
        ),
        RunPanel(MOVES, ("reassign/_run_moves.html",), moves_part),
    )
}
# These hints concern no single cluster: everybody who is signed in may have them, they carry no data.
HINTS = frozenset({BOARD, CHANGES, PIPELINE})


@dataclass(frozen=True, slots=True)
class Watched:
    """What a key means: a panel of one cluster, parts of a run's page, or a hint (then ``panel`` and ``run`` are None).

    ``slug`` is empty without a cluster. ``change`` is the number of a change request; who may view its cluster may
    watch it.
    """

    key: str
    panel: Panel | None
    slug: str
    change: int | None = None
    run: RunPanel | None = None

    @property
    def pushed(self) -> bool:
        """As HTML; else it is a hint."""
        return self.panel is not None or self.run is not None

    @property
    def action(self) -> str:
        """What its watcher must be allowed to do on the cluster."""
        return self.panel.action if self.panel is not None else VIEW


def watched(key: str) -> Watched | None:
    """What the key means, or None for one that does not exist. Whether the cluster exists is not looked at."""
    if key in HINTS:
        return Watched(key, None, "")
    name, _, slug = key.partition(":")
    if name == CHANGE or name in RUN_PANELS:
        return Watched(key, None, "", int(slug), RUN_PANELS.get(name)) if _NUMBER.fullmatch(slug) else None
    panel = PANELS.get(name)
    return Watched(key, panel, slug) if slug and (panel is not None or name in READ_HINTS) else None


def panels_of(kinds: Iterable[str]) -> list[Panel]:
    """The panels that a refresh of these kinds touches, in their fixed order."""
    touched = frozenset(kinds)
    return [panel for panel in PANELS.values() if panel.kinds & touched]
