"""``manage.py configs``: configs as stored, and proposals to set or remove them, as ``kafka-configs`` does."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.models import Cluster
from kafkadash.configs.edits import find_edit_fault
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND
from kafkadash.configs.stored import ConfigKey, ConfigOwner, OwnerKind, load_keys, load_owners
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.configs import source_words
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.monitoring.stored_commands import BAD, add_output_options, align_columns, find_cluster, find_freshness
from kafkadash.short_runs.commands import ItemCommand, add_proposal_options
from kafkadash.topic_rules.models import load_rules

ABSENT = "-"
_COLUMNS = ("CONFIG", "VALUE", "SOURCE", "DEFAULT", "TYPE", "READ-ONLY", "SENSITIVE")
_SHOWN = 60


class Command(ItemCommand):
    help = (
        "Describes configs of topics, of brokers and of the default of all brokers, from collected data, and proposes "
        "to set or remove them. Exit code 2: bad input, or a topic or broker is not known."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        describe = actions.add_parser("describe", help="configs that are set there, with type, source and default")
        describe.add_argument("--all", action="store_true", help="also those that are not set there")
        setter = actions.add_parser("set", help="propose values; KEY= sets an empty one")
        setter.add_argument("typed", nargs="+", metavar="KEY=VALUE")
        remover = actions.add_parser("delete", help="propose to remove values, so that defaults are in force again")
        remover.add_argument("typed", nargs="+", metavar="KEY")
        for action in (describe, setter, remover):
            scope = action.add_mutually_exclusive_group(required=True)
            scope.add_argument("--topic", action="append", metavar="TOPIC", help="may be given several times")
            scope.add_argument("--broker", action="append", type=int, metavar="ID", help="may be given several times")
            scope.add_argument("--broker-defaults", action="store_true", help="the dynamic default of all brokers")
        add_output_options(describe)
        add_proposal_options(setter, remover)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        freshness = find_freshness(cluster, CollectorKind.CONFIGS)
        owners = find_owners(cluster, options)
        keys = load_keys(cluster, owners[0].kind)
        if options["action"] != "describe":
            values = read_values(options["typed"], removes=options["action"] == "delete")
            self._propose(cluster, owners, keys, values, options)
            return
        told = [describe_owner(owner, keys, everything=options["all"]) for owner in owners]
        if options["json"]:
            self.print_json(freshness, {"owners": told})
            return
        self.print_age(freshness)
        for owner, one in zip(owners, told, strict=True):
            self.stdout.write(f"{owner.subject}: {choose_plural('# config|# configs', len(one['configs']))}")
            for row in align_columns([_COLUMNS, *map(format_config, one["configs"])]) if one["configs"] else ():
                self.stdout.write(row)

    def _propose(
        self,
        cluster: Cluster,
        owners: Sequence[ConfigOwner],
        keys: Mapping[str, ConfigKey],
        values: Mapping[str, str | None],
        options: Mapping[str, Any],
    ) -> None:
        rules = load_rules(cluster)
        for owner in owners:
            for key, value in values.items():
                if fault := find_edit_fault(owner, key, keys.get(key), value, rules):
                    raise command_error(fault, returncode=BAD)
        kind, ids = owners[0].kind, [owner.identity for owner in owners]
        edits = [{"of": str(kind), "ids": ids, "key": key, "value": value} for key, value in values.items()]
        subject = owners[0].subject
        if len(owners) > 1:
            subject = choose_plural(f"# {kind}|# {kind}s", len(owners))
        title = f"{next(iter(values)) if len(values) == 1 else 'Configs'} of {subject}"
        self.propose(cluster, KIND, {"edits": edits}, title, options)


def find_owners(cluster: Cluster, options: Mapping[str, Any]) -> list[ConfigOwner]:
    """Raises CodedCommandError for an owner that is not stored, or whose configs were never read."""
    owners = list(_load_scope(cluster, options))
    unread = next((owner.subject for owner in owners if owner.config is None), None)
    if unread is not None:
        raise command_error(ConfigErrorCode.NOT_READ, owner=unread, returncode=BAD)
    return owners


def _load_scope(cluster: Cluster, options: Mapping[str, Any]) -> Iterable[ConfigOwner]:
    if options["topic"]:
        names = dict.fromkeys(options["topic"])
        rows = TopicState.objects.filter(cluster=cluster, name__in=names).order_by("changed_at")
        columns = ("topic_id", "name", "config", "replication_factor")
        topics = {row[1]: ConfigOwner(OwnerKind.TOPIC, *row) for row in rows.values_list(*columns)}
        if missing := [name for name in names if name not in topics]:
            code = CollectionErrorCode.TOPIC_NOT_SEEN
            raise command_error(code, cluster=cluster.name, topic=missing[0], returncode=BAD)
        return [topics[name] for name in names]
    if options["broker"]:
        ids = dict.fromkeys(map(str, options["broker"]))
        brokers = load_owners(cluster, OwnerKind.BROKER, ids)
        if ids.keys() - brokers.keys():
            raise command_error(ConfigErrorCode.OWNER_UNKNOWN, cluster=cluster.name, returncode=BAD)
        return [brokers[id_] for id_ in ids]
    return load_owners(cluster, OwnerKind.DEFAULT, [""]).values()


def read_values(typed: Sequence[str], *, removes: bool) -> dict[str, str | None]:
    """Return key → value, None where it is removed. Raises CodedCommandError."""
    values: dict[str, str | None] = {}
    for text in typed:
        key, equals, value = (part.strip() for part in text.partition("="))
        if bool(equals) == removes or not key:
            code = ConfigErrorCode.TYPED_NO_KEY if removes else ConfigErrorCode.TYPED_NO_VALUE
            raise command_error(code, typed=text[:_SHOWN], returncode=BAD)
        if key in values:
            raise command_error(ConfigErrorCode.KEY_REPEATED, key=key[:_SHOWN], returncode=BAD)
        values[key] = None if removes else value
    return values


def describe_owner(owner: ConfigOwner, keys: Mapping[str, ConfigKey], *, everything: bool) -> dict[str, Any]:
    """Return an owner for programs, with the configs that are set on it, or all that it has."""
    shown = [key for name, key in sorted(keys.items()) if everything or owner.sets(name)]
    return {"of": owner.kind, "name": owner.name, "configs": [describe_config(owner, key) for key in shown]}


def describe_config(owner: ConfigOwner, key: ConfigKey) -> dict[str, Any]:
    """Return a config for programs; null where nobody knows, or Kafka hides a sensitive value."""
    value, source = owner.in_force(key)
    default, default_source = key.inherited or (None, None)
    return {
        "key": key.key,
        "value": None if key.sensitive else value,
        "source": source or None,
        "default": None if key.sensitive else default,
        "default_source": default_source,
        "type": key.type_words or None,
        "read_only": key.read_only,
        "sensitive": key.sensitive,
    }


def format_config(told: Mapping[str, Any]) -> list[str]:
    """Format the fields of a config as columns; text that a terminal would act on is escaped."""
    flags = ["yes" if told[name] else "no" for name in ("read_only", "sensitive")]
    source = source_words(told["source"]) if told["source"] else ABSENT
    return [
        told["key"],
        _format_value(told["value"]),
        source,
        _format_value(told["default"]),
        told["type"] or ABSENT,
        *flags,
    ]


def _format_value(value: str | None) -> str:
    if value is None:
        return ABSENT
    return value if value and value.isprintable() else json.dumps(value)
