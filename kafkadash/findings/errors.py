"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class OnCallErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Filters and addresses of pages that name what is not there
    FINDING_FORGOTTEN = "finding-forgotten"
    FINDING_CLOSED = "finding-closed"
    NO_SUCH_RUNBOOK = "no-such-runbook"
    DRILL_BROKERS_UNKNOWN = "drill-brokers-unknown"
    DRILL_RACK_UNKNOWN = "drill-rack-unknown"
    DRILL_FENCED = "drill-fenced"
    DRILL_NO_BROKER = "drill-no-broker"
    DRILL_TOO_MANY = "drill-too-many"

    # Acknowledgements
    NOTE_TOO_LONG = "note-of-acknowledgement-too-long"
    END_UNREADABLE = "end-of-acknowledgement-unreadable"
    END_SKIPPED = "end-of-acknowledgement-skipped"
    END_PAST = "end-of-acknowledgement-past"
    END_TOO_LATE = "end-of-acknowledgement-too-late"

    # Restarts of brokers: answers, what forbids them, what leaves it open, and what no waiting changes
    RESTART_ALLOWED = "restart-allowed"
    RESTART_OF_DOWN = "restart-of-down"
    RESTART_REFUSED = "restart-refused"
    RESTART_UNDECIDED = "restart-undecided"
    RESTART_GOES_OFFLINE = "restart-goes-offline"
    RESTART_STOPS_WRITES = "restart-stops-writes"
    RESTART_LOSES_QUORUM = "restart-loses-quorum"
    RESTART_OTHERS_BEHIND = "restart-others-behind"
    RESTART_FACTS_STALE = "restart-facts-stale"
    RESTART_FACTS_EARLY = "restart-facts-early"
    RESTART_BROKERS_SILENT = "restart-brokers-silent"
    RESTART_TOPICS_HIDDEN = "restart-topics-hidden"
    RESTART_TOPICS_UNCOUNTED = "restart-topics-uncounted"
    RESTART_MIN_ISR_UNKNOWN = "restart-min-isr-unknown"
    RESTART_QUORUM_UNKNOWN = "restart-quorum-unknown"
    RESTART_VOTERS_UNHEARD = "restart-voters-unheard"
    RESTART_ALWAYS_OFFLINE = "restart-always-offline"
    RESTART_ALWAYS_STOPS_WRITES = "restart-always-stops-writes"
    RESTART_ALWAYS_LOSES_QUORUM = "restart-always-loses-quorum"
    RESTART_AFTER_MOVES = "restart-after-moves"
