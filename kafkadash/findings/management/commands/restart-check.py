"""``manage.py restart-check``: whether a broker may be restarted now, and the order of restarts, from stored facts.

The exit code is the answer, for scripts that restart brokers: only 0 is a yes. ``--wait`` waits for it, and takes only
facts that were read after the command began: those from before may be older than the restart that came last.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from kafkadash.accounts.errors import command_error, with_code
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedMessage, message_json
from kafkadash.core.rows import one_moment, without_search_for_cycles
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.restart import (
    BehindBroker,
    RestartCheck,
    RestartOrder,
    RestartStep,
    RestartVerdict,
    judge_restart,
    list_lasting_reasons,
    order_restarts,
)
from kafkadash.findings.restart_facts import load_restart_facts
from kafkadash.findings.restart_page import choose_brokers, list_racks, offer_racks
from kafkadash.findings.simulation import HitPartition, QuorumAfter
from kafkadash.monitoring.freshness import FactFreshness, load_standing
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.stored_commands import (
    BAD,
    StoredFactsCommand,
    align_columns,
    find_cluster,
    find_freshness,
    format_time,
)

EXIT_CODES = {RestartVerdict.YES: 0, RestartVerdict.NO: 1, RestartVerdict.UNKNOWN: 3}
POLL_S = 2.0
TIMEOUT_S = 1800.0
_HEAD = ("Place", "Broker", "Rack", "When")


@dataclass(frozen=True, slots=True)
class RestartAnswer:
    """Answer to one call; ``check`` is None where no broker was named, ``order`` where one was, without a rack.

    ``lasting``: what is against each restart of the broker, so that waiting does not help.
    """

    freshness: FactFreshness
    check: RestartCheck | None
    order: RestartOrder | None
    lasting: Sequence[CodedMessage] = ()

    @property
    def verdict(self) -> RestartVerdict:
        if self.check is not None:
            return self.check.verdict
        assert self.order is not None
        return self.order.verdict

    @property
    def shown(self) -> RestartCheck | None:
        """The answer for the broker that was named, or for the first of the order."""
        return self.check or (self.order.check if self.order else None)

    @property
    def reasons(self) -> Sequence[CodedMessage]:
        return self.shown.reasons if self.shown else ()


class Command(StoredFactsCommand):
    help = (
        "Tells from collected data whether a broker may be restarted now, or in which order brokers may. Exit code 0: "
        "yes; 1: no; 2: bad input, or nothing was collected; 3: unknown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER", help="cluster name in the URL of its pages")
        parser.add_argument("--broker", type=int, metavar="ID", help="this broker; without it, the order of all")
        parser.add_argument("--rack", metavar="RACK", help="the order of the brokers of this rack")
        parser.add_argument("--wait", action="store_true", help="wait for a yes, from data that is read from now on")
        parser.add_argument(
            "--timeout",
            type=_read_seconds,
            default=TIMEOUT_S,
            metavar="SECONDS",
            help=f"how long to wait at most (default: {TIMEOUT_S:.0f}); then the exit code is that of the last answer",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        found = self._wait(cluster, options) if options["wait"] else _find_answer(cluster, options, None)
        if options["json"]:
            self.print_json(found.freshness, _describe(found))
        else:
            self._print(found)
        if code := EXIT_CODES[found.verdict]:
            sys.exit(code)

    def _wait(self, cluster: Cluster, options: Mapping[str, Any]) -> RestartAnswer:
        """Return the first yes, or the last answer before the timeout. Prints each new list of reasons to stderr."""
        began, end = read_database_time(), time.monotonic() + options["timeout"]
        shown: Sequence[CodedMessage] | None = None
        while True:
            found = _find_answer(cluster, options, began)
            left = end - time.monotonic()
            if found.verdict is RestartVerdict.YES or left <= 0:
                return found
            if found.reasons != shown:
                shown = found.reasons
                causes = " ".join(reason.cause for reason in shown)
                self.stderr.write(f"{format_time(clock.now())}: {found.verdict}, waiting. {causes}".rstrip())
            time.sleep(min(POLL_S, left))

    def _print(self, found: RestartAnswer) -> None:
        self.print_age(found.freshness)
        if found.shown is not None:
            self.stdout.write(str(found.shown.sentence))
        for reason in (*found.reasons, *found.lasting):
            self.stdout.write(f"- {with_code(reason)}")
        if found.order is not None:
            for line in align_columns([_HEAD, *_order_rows(found.order)]):
                self.stdout.write(line)
            for step in (*found.order.steps, *found.order.never):
                for reason in step.reasons:
                    self.stdout.write(f"- Broker {step.broker.id}: {with_code(reason)}")


def read_database_time() -> datetime:
    """Return the time by which collectors stamp what they read; the clock of this machine may differ."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


def _read_seconds(text: str) -> float:
    """Raises ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


@without_search_for_cycles()
@one_moment()
def _find_answer(cluster: Cluster, options: Mapping[str, Any], since: datetime | None) -> RestartAnswer:
    """Raises CodedCommandError for a broker or rack that is unknown, and where nothing was collected."""
    freshness = find_freshness(cluster, CollectorKind.METADATA)
    facts = load_restart_facts(load_standing(cluster, clock.now()), since)
    broker, rack = options["broker"], options["rack"]
    if broker is not None and broker not in facts.brokers:
        there = f"Choose from {join_items([str(each) for each in sorted(facts.brokers)[:20]])}"
        named = f"broker {broker}"
        code = OnCallErrorCode.DRILL_BROKERS_UNKNOWN
        raise command_error(code, cluster=cluster.name, brokers=named, there=there, returncode=BAD)
    chosen = choose_brokers(facts, rack)
    if not chosen:
        there = offer_racks(list_racks(facts))
        code = OnCallErrorCode.DRILL_RACK_UNKNOWN
        raise command_error(code, cluster=cluster.name, rack=rack or "", there=there, returncode=BAD)
    check = None if broker is None else judge_restart(facts, broker)
    order = order_restarts(facts, chosen) if broker is None or rack is not None else None
    lasting = [] if broker is None else list_lasting_reasons(facts, broker)
    return RestartAnswer(freshness, check, order, lasting)


def _order_rows(order: RestartOrder) -> Iterator[Sequence[str]]:
    for number, step in enumerate(order.steps, 1):
        yield str(number), str(step.broker.id), _name_rack(step), str(step.place)
    for step in order.never:
        yield "-", str(step.broker.id), _name_rack(step), str(step.place)


def _name_rack(step: RestartStep) -> str:
    return "-" if step.broker.rack is None else step.broker.rack


def _describe(found: RestartAnswer) -> dict[str, Any]:
    """Return the answer for programs; null where nothing is known."""
    return {
        "verdict": found.verdict.value,
        "check": None if found.shown is None else _describe_check(found.shown),
        "lasting": [message_json(reason) for reason in found.lasting],
        "order": None if found.order is None else [_describe_step(step) for step in found.order.steps],
        "never": None if found.order is None else [_describe_step(step) for step in found.order.never],
    }


def _describe_check(check: RestartCheck) -> dict[str, Any]:
    return {
        "broker": check.broker.id,
        "verdict": check.verdict.value,
        "sentence": message_json(check.sentence),
        "reasons": [message_json(reason) for reason in check.reasons],
        "offline": _name_hits(check.offline),
        "under_min_isr": _name_hits(check.under_min_isr),
        "min_isr_unknown": check.unknown_min_isr,
        "not_caught_up": [_describe_behind(each) for each in check.behind],
        "quorum": None if check.quorum is None else _describe_quorum(check.quorum),
    }


def _name_hits(hits: Sequence[HitPartition]) -> list[str]:
    return [f"{hit.partition.topic}-{hit.partition.number}" for hit in hits]


def _describe_behind(behind: BehindBroker) -> dict[str, Any]:
    return {
        "broker": behind.id,
        "state": behind.state,
        "replicas": behind.replicas,
        "seconds_left": behind.seconds_left,
    }


def _describe_quorum(after: QuorumAfter) -> dict[str, Any]:
    return {
        "voters": after.voters,
        "majority": after.majority,
        "in_sync_now": after.in_sync_now,
        "in_sync_then": after.in_sync_then,
        "is_voter": bool(after.dying),
    }


def _describe_step(step: RestartStep) -> dict[str, Any]:
    return {
        "broker": step.broker.id,
        "rack": step.broker.rack,
        "place": step.place.value,
        "reasons": [message_json(reason) for reason in step.reasons],
    }
