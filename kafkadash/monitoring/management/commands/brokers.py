"""``manage.py brokers catch-up``: replicas that catch up without a reassignment, by broker, as stored."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from kafkadash.core import clock
from kafkadash.monitoring.catch_up.pages import CatchUpShown, load_catch_up
from kafkadash.monitoring.freshness import load_standing
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.stored_commands import (
    StoredFactsCommand,
    add_output_options,
    align_columns,
    find_cluster,
    find_freshness,
    format_iso,
)

_HEAD = ("Broker", "Replicas", "NotRead", "Records", "Bytes", "Records/s", "SecondsLeft", "Reason")
_UNKNOWN = "-"


class Command(StoredFactsCommand):
    help = "Shows replicas outside the ISR that no reassignment adds, from collected data. Bytes are estimated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        catch_up = actions.add_parser("catch-up", help="records and bytes behind, rate and time left of each broker")
        catch_up.add_argument("--broker", type=int, metavar="ID", help="of this broker alone")
        add_output_options(catch_up)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        freshness = find_freshness(cluster, CollectorKind.CATCH_UP)
        now = clock.now()
        brokers = None if options["broker"] is None else [options["broker"]]
        shown = load_catch_up(cluster, brokers, load_standing(cluster, now).runs, now)
        if options["json"]:
            self.print_json(freshness, {"brokers": [_describe(each) for _, each in sorted(shown.items())]})
            return
        self.print_age(freshness)
        if not shown:
            self.stdout.write("No replicas are behind.")
            return
        for line in align_columns([_HEAD, *(_build_line(each) for _, each in sorted(shown.items()))]):
            self.stdout.write(line)


def _build_line(shown: CatchUpShown) -> list[str]:
    row = shown.row
    figures = (row.replicas, shown.unread, row.records, row.bytes_behind, row.rate, shown.seconds_left)
    return [str(row.broker_id), *(_UNKNOWN if each is None else f"{each:.0f}" for each in figures), shown.reason]


def _describe(shown: CatchUpShown) -> dict[str, Any]:
    """Return a broker for programs; null where a figure is unknown."""
    row = shown.row
    return {
        "broker": row.broker_id,
        "replicas": row.replicas,
        "states": row.counts,
        "records_behind": row.records,
        "bytes_behind": row.bytes_behind,
        "records_per_second": row.rate,
        "bytes_per_second": row.rate_bytes,
        "seconds_left": shown.seconds_left,
        "reason": shown.reason,
        "sampled_at": format_iso(row.sampled_at),
        "stale": shown.freshness.stale,
    }
