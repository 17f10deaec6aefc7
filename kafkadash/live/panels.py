"""Live keys: panels that are pushed as HTML, and hints that tell a page to fetch itself again.

Keys: ``reassignments:demo`` is the panel ``reassignments`` of the cluster with the slug ``demo``, ``run:42`` and
``moves:42`` are parts of the page of the run of change request #42, ``metadata-read:demo`` is the hint that the
metadata of ``demo`` was read again, ``change:42`` the hint that #42 changed; ``board``, ``changes`` and ``pipeline``
are hints without a cluster. Pages list their keys in the URL of their socket; ``parse_watch_key`` parses a key, and
``live.consumer`` asks ``clusters.access.is_allowed`` whether the user may see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.changes.transitions import CHANGE, CHANGES
from kafkadash.clusters.access import VIEW
from kafkadash.clusters.models import Cluster
from kafkadash.execution.live_keys import MOVES, RUN
from kafkadash.execution.pages.rows import moves_part
from kafkadash.execution.pages.run import run_part
from kafkadash.findings.board import overview_context, status_context
from kafkadash.findings.wall import wall_context
from kafkadash.history.schedule import PIPELINE
from kafkadash.monitoring.brokers import brokers_context
from kafkadash.monitoring.cluster_bar import READ_HINTS
from kafkadash.monitoring.freshness import collection_context
from kafkadash.monitoring.groups.pages import groups_context
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.partitions import partitions_context
from kafkadash.monitoring.quorum.pages import controllers_context, leaders_context, quorum_context
from kafkadash.monitoring.reassignments.pages import reassignments_context
from kafkadash.monitoring.throttles import throttles_context

BOARD = "board"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
# A socket watches at most this many keys. A page with more is refused one, and fetches itself again instead.
MAX_KEYS = 200


@dataclass(frozen=True, slots=True)
class LivePanel:
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


PANELS: Mapping[str, LivePanel] = {
    panel.name: panel
    for panel in (
        LivePanel("status", frozenset(CollectorKind.values), "findings/_status.html", status_context),
        LivePanel("wall", frozenset(CollectorKind.values), "findings/_wall.html", wall_context),
        LivePanel("overview", frozenset(CollectorKind.values), "findings/_overview.html", overview_context),
        LivePanel("groups", frozenset({CollectorKind.GROUPS}), "monitoring/_groups.html", groups_context),
        LivePanel(
            "partitions",
            frozenset({CollectorKind.METADATA, CollectorKind.REASSIGNMENTS}),
            "monitoring/_partitions.html",
            partitions_context,
        ),
        LivePanel(
            "brokers",
            frozenset({CollectorKind.METADATA, CollectorKind.LOG_DIRS}),
            "monitoring/_brokers.html",
            brokers_context,
        ),
        LivePanel("collection", frozenset(CollectorKind.values), "monitoring/_collection.html", collection_context),
        LivePanel("quorum", frozenset({CollectorKind.QUORUM}), "monitoring/_quorum.html", quorum_context),
        LivePanel(
            "controllers", frozenset({CollectorKind.QUORUM}), "monitoring/_controllers.html", controllers_context
        ),
        LivePanel("leaders", frozenset({CollectorKind.QUORUM}), "monitoring/_leaders.html", leaders_context),
        LivePanel(
            "reassignments",
            frozenset({CollectorKind.REASSIGNMENTS, CollectorKind.LOG_DIRS, CollectorKind.CONFIGS}),
            "monitoring/_reassignments.html",
            reassignments_context,
        ),
        LivePanel(
            "throttles",
            frozenset({CollectorKind.CONFIGS, CollectorKind.REASSIGNMENTS}),
            "monitoring/_throttles.html",
            throttles_context,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class RunPanel:
    """Parts of the page of a run that are pushed together, by the number of its change request.

    Each template has one root element with an id, and takes the place of the element with that id. ``context`` is as
    for ``LivePanel``, or None where the request has no run; the templates hold nothing that is one person's.
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
                "execution/_run_progress.html",
                "execution/_run_figures.html",
                "execution/_run_notices.html",
                "execution/_run_throttle.html",
            ),
            run_part,
        ),
        RunPanel(MOVES, ("execution/_run_moves.html",), moves_part),
    )
}
# These hints concern no single cluster: everybody who is signed in may have them, they carry no data.
HINTS = frozenset({BOARD, CHANGES, PIPELINE})


@dataclass(frozen=True, slots=True)
class WatchedKeys:
    """Meaning of a key: a panel of one cluster, parts of a run's page, or a hint (then ``panel`` and ``run`` are None).

    ``slug`` is empty without a cluster. ``change`` is the number of a change request; who may view its cluster may
    watch it.
    """

    key: str
    panel: LivePanel | None
    slug: str
    change: int | None = None
    run: RunPanel | None = None

    @property
    def pushed(self) -> bool:
        """Return whether the key is pushed as HTML; else the key is a hint."""
        return self.panel is not None or self.run is not None

    @property
    def action(self) -> str:
        """Action that the key's watcher must be allowed to do on the cluster."""
        return self.panel.action if self.panel is not None else VIEW


def parse_watch_key(key: str) -> WatchedKeys | None:
    """Return what the key means, or None for a key that does not exist. The cluster's existence is not checked."""
    if key in HINTS:
        return WatchedKeys(key, None, "")
    name, _, slug = key.partition(":")
    if name == CHANGE or name in RUN_PANELS:
        return WatchedKeys(key, None, "", int(slug), RUN_PANELS.get(name)) if _NUMBER.fullmatch(slug) else None
    panel = PANELS.get(name)
    return WatchedKeys(key, panel, slug) if slug and (panel is not None or name in READ_HINTS) else None


def panels_of(kinds: Iterable[str]) -> list[LivePanel]:
    """The panels that a refresh of these kinds touches, in their fixed order."""
    touched = frozenset(kinds)
    return [panel for panel in PANELS.values() if panel.kinds & touched]
