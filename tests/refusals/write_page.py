"""Writes docs/errors.md anew: ``python -m tests.refusals.write_page``."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import django

DOC = Path(__file__).parents[2] / "docs/errors.md"
ROOT = Path(__file__).parents[2] / "kafkadash"
HEAD = """# Codes of refusals, failures and reasons

Made by `python -m tests.refusals.write_page`. A code stands beside its message on pages, behind it on the command line,
and in logs: search for it here. Names in ‹› are put in when the message is shown. Where: the module that uses the code.
"""
# Title → the enum of codes, and their messages: packages that know no Django leave texts to an app.
CATALOGUES = {
    "Signing in, accounts, and pages that cannot be shown": (
        "accounts.errors:AccountErrorCode",
        "accounts.messages:ACCOUNT_MESSAGES",
    ),
    "Requests to any page": ("core.errors:RequestErrorCode", "accounts.messages:REQUEST_MESSAGES"),
    "Clusters: their registration, settings and rights": (
        "clusters.errors:ClusterErrorCode",
        "clusters.messages:CLUSTER_MESSAGES",
    ),
    "Kafka: connections, and what it answers": ("kafka.errors:KafkaErrorCode", "clusters.messages:KAFKA_MESSAGES"),
    "Work in the background": ("jobs.errors:JobErrorCode", "jobs.messages:JOB_MESSAGES"),
    "Reading clusters": ("monitoring.errors:CollectionErrorCode", "monitoring.messages:COLLECTION_MESSAGES"),
    "Files for the pipeline": ("export.errors:ExportErrorCode", "export.messages:EXPORT_MESSAGES"),
    "The history": ("history.errors:HistoryErrorCode", "history.messages:HISTORY_MESSAGES"),
    "Changes: drafts, checks and people": ("changes.errors:ChangeErrorCode", "changes.messages:CHANGE_MESSAGES"),
    "Changes: actions and states": (
        "changes.state_machine:WorkflowErrorCode",
        "changes.messages:WORKFLOW_MESSAGES",
    ),
    "Changes: ACLs that they need": ("changes.errors:RightsCode", "changes.messages:RIGHTS_MESSAGES"),
    "Topic rules: their settings, and what they refuse": (
        "topic_rules.errors:RuleErrorCode",
        "topic_rules.messages:RULE_ERROR_MESSAGES",
    ),
    "Topic rules that cannot be met, or need a config to be set": (
        "topic_rules.errors:RuleConflictCode",
        "topic_rules.messages:RULE_CONFLICT_MESSAGES",
    ),
    "Reassignments: forms, plans and runs": (
        "planning.errors:ReassignmentErrorCode",
        "planning.messages:REASSIGNMENT_MESSAGES",
    ),
    "Files: reassignment JSON and exported topologies": (
        "planning.problem_codes:FileErrorCode",
        "planning.messages:FILE_MESSAGES",
    ),
    "Plans: requests and their problems": (
        "changes.plan:PlanErrorCode",
        "planning.messages:PLAN_MESSAGES",
    ),
    "Plans: results of the checker and of the checks before a run": (
        "planning.problem_codes:CheckErrorCode",
        "planning.messages:CHECK_MESSAGES",
    ),
    "Changes that are lists of items": (
        "short_runs.errors:ShortRunErrorCode",
        "short_runs.messages:SHORT_RUN_ERROR_MESSAGES",
    ),
    "Changes of configs": ("configs.errors:ConfigErrorCode", "configs.messages:CONFIG_ERROR_MESSAGES"),
    "Leader elections": ("elections.errors:ElectionErrorCode", "elections.messages:ELECTION_ERROR_MESSAGES"),
    "Changes of topics": ("topics.errors:TopicErrorCode", "topics.messages:TOPIC_ERROR_MESSAGES"),
    "Alteration of topics": ("topic_alter.errors:AlterErrorCode", "topic_alter.messages:ALTER_ERROR_MESSAGES"),
    "Changes of consumer groups": (
        "group_changes.errors:GroupErrorCode",
        "group_changes.messages:GROUP_CHANGE_ERROR_MESSAGES",
    ),
    "Changes of brokers": (
        "broker_life.errors:BrokerLifeErrorCode",
        "broker_life.messages:BROKER_LIFE_ERROR_MESSAGES",
    ),
    "Cancels of reassignments": (
        "move_cancels.errors:CancelNoteCode",
        "move_cancels.messages:CANCEL_NOTE_MESSAGES",
    ),
    "Throttle removals": (
        "throttle_removal.errors:RemovalNoteCode",
        "throttle_removal.messages:REMOVAL_NOTE_MESSAGES",
    ),
    "Maintenance and silences": (
        "maintenance.errors:MaintenanceErrorCode",
        "maintenance.messages:MAINTENANCE_MESSAGES",
    ),
    "Notifications: receivers, routes and deliveries": (
        "notifications.errors:DeliveryErrorCode",
        "notifications.messages:DELIVERY_MESSAGES",
    ),
    "The timeline": ("timeline.errors:TimelineErrorCode", "timeline.messages:TIMELINE_ERROR_MESSAGES"),
    "Findings": ("findings.errors:OnCallErrorCode", "findings.messages:ONCALL_MESSAGES"),
    "The demo": ("devtools.errors:DemoErrorCode", "devtools.messages:DEMO_MESSAGES"),
    "Commands and the audit": ("ops.errors:OperationErrorCode", "ops.messages:OPERATION_MESSAGES"),
    "Metrics": ("metrics.errors:MetricsErrorCode", "metrics.messages:METRICS_MESSAGES"),
    "Settings in the environment": ("core.setting_errors:SettingErrorCode", "core.setting_errors:SETTING_MESSAGES"),
    "The pipeline": ("pipeline.errors:PipelineErrorCode", "pipeline.messages:PIPELINE_MESSAGES"),
    "Servers that run beside kafkadash": (
        "devtools.embedded.errors:ServerErrorCode",
        "devtools.messages:SERVER_MESSAGES",
    ),
    "The playground": ("devtools.playground.errors:PlaygroundErrorCode", "devtools.messages:PLAYGROUND_MESSAGES"),
}


def whole_page() -> str:
    """Return the page: codes by app, then reasons of runs and of rows, and answers to orders."""
    from kafkadash.broker_life.messages import BROKER_LIFE_MESSAGES
    from kafkadash.changes.messages import RISK_MESSAGES
    from kafkadash.configs.messages import CONFIG_MESSAGES
    from kafkadash.elections.messages import ELECTION_MESSAGES
    from kafkadash.execution.command_answers import ORDER_MESSAGES
    from kafkadash.execution.messages import (
        LEDGER_MESSAGES,
        REPORT_NOTE_MESSAGES,
        ROW_MESSAGES,
        RUN_MESSAGES,
        STUCK_MESSAGES,
    )
    from kafkadash.findings.messages import FINDING_MESSAGES, FINDING_NOTE_MESSAGES
    from kafkadash.group_changes.messages import GROUP_CHANGE_MESSAGES
    from kafkadash.monitoring.messages import CANARY_MESSAGES, TRANSACTION_MESSAGES
    from kafkadash.move_cancels.messages import CANCEL_MESSAGES
    from kafkadash.notifications.messages import NOTIFICATION_MESSAGES
    from kafkadash.short_runs.messages import ITEM_MESSAGES, SHORT_RUN_MESSAGES
    from kafkadash.throttle_removal.messages import REMOVAL_MESSAGES
    from kafkadash.topic_rules.messages import RULE_MESSAGES
    from kafkadash.topics.messages import TOPIC_MESSAGES

    places = places_of_codes()
    sections = [error_section(title, catalogue_messages(title), places) for title in CATALOGUES]
    sections += [
        message_section("Changes: parts of the risk score", RISK_MESSAGES),
        finding_section("Findings: what is wrong with a cluster", FINDING_MESSAGES),
        message_section("Findings: what is said besides", FINDING_NOTE_MESSAGES),
        message_section("Notifications: their texts", NOTIFICATION_MESSAGES),
        message_section("Runs: why a run waits, stops or failed", RUN_MESSAGES),
        message_section("Moves: reasons of their states", ROW_MESSAGES),
        message_section("Moves in flight: causes of missing progress", STUCK_MESSAGES),
        message_section("Moves: results of requested actions", ORDER_MESSAGES),
        message_section("Runs of items: why a run waits or stands still", SHORT_RUN_MESSAGES),
        message_section("Items: reasons of their states", ITEM_MESSAGES),
        message_section("Topic rules: why an item breaks one", RULE_MESSAGES),
        message_section("Configs: why an item does not fit", CONFIG_MESSAGES),
        message_section("Elections: why an item does not fit", ELECTION_MESSAGES),
        message_section("Topics: why an item does not fit", TOPIC_MESSAGES),
        message_section("Consumer groups: why an item does not fit", GROUP_CHANGE_MESSAGES),
        message_section("Brokers: why an item does not fit", BROKER_LIFE_MESSAGES),
        message_section("Canary: why a broker failed or is not measured", CANARY_MESSAGES),
        message_section("Open transactions: why one is not judged", TRANSACTION_MESSAGES),
        message_section("Cancels: why an item does not fit, or needs nothing", CANCEL_MESSAGES),
        message_section("Throttle removals: why an item does not fit", REMOVAL_MESSAGES),
        message_section("Throttle ledger: results of entries", LEDGER_MESSAGES),
        message_section("Run reports: deviations from plan and other cluster activity", REPORT_NOTE_MESSAGES),
    ]
    return "\n".join([HEAD, *sections])


def catalogue_messages(title: str) -> Mapping[StrEnum, Any]:
    """Return the messages of a catalogue's own codes."""
    found: Mapping[StrEnum, Any] = _named(CATALOGUES[title][1])
    return found


def catalogue_codes(title: str) -> type[StrEnum]:
    found: type[StrEnum] = _named(CATALOGUES[title][0])
    return found


def _named(path: str) -> Any:
    module, name = path.split(":")
    return getattr(import_module(f"kafkadash.{module}"), name)


def places_of_codes() -> Mapping[str, set[str]]:
    """Return ``AccountErrorCode.NAME`` → the modules that use it, and value → the templates that show it."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    catalogues = {module.replace(".", "/") for modules in CATALOGUES.values() for module in modules}
    for path in ROOT.rglob("*.py"):
        if (name := path.relative_to(ROOT).with_suffix("").as_posix()) not in catalogues:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    places[f"{node.value.id}.{node.attr}"].add(name)
    templates = ROOT.parent / "templates"
    for path in templates.rglob("*.html"):
        for code in re.findall(r'{% (?:said|cause|then) "([a-z-]+)"', path.read_text(encoding="utf-8")):
            places[code].add(path.relative_to(templates).as_posix())
    return places


def error_section(title: str, messages: Mapping[StrEnum, Any], places: Mapping[str, set[str]]) -> str:
    rows = []
    for code, message in messages.items():
        where = places.get(f"{type(code).__name__}.{code.name}", set()) | places.get(code.value, set())
        rows.append((code, message, ", ".join(f"`{one}`" for one in sorted(where))))
    lines = [f"{_row(code, message)} {where} |" for code, message, where in rows]
    return "\n".join([f"## {title}", "", "| code | message | what to do | where |", "|---|---|---|---|", *lines, ""])


def message_section(title: str, messages: Mapping[Any, Any]) -> str:
    lines = [_row(code, message) for code, message in messages.items()]
    return "\n".join([f"## {title}", "", "| code | message | what to do |", "|---|---|---|", *lines, ""])


def finding_section(title: str, messages: Mapping[Any, Any]) -> str:
    """Return the section; a finding has a text, a title without its cluster, and details."""
    lines = [
        " | ".join(
            (f"| `{code}`", *(_shown(part) or "—" for part in (each.text, each.title, each.detail)), "")
        ).rstrip()
        for code, each in messages.items()
    ]
    return "\n".join([f"## {title}", "", "| code | finding | title | detail |", "|---|---|---|---|", *lines, ""])


def _row(code: StrEnum, message: Any) -> str:
    return f"| `{code}` | {_shown(message.many or message.text) or '—'} | {_shown(message.advice) or '—'} |"


def _shown(template: str) -> str:
    """Return a text with the names of its parameters; a plural where there are two forms."""
    plural = re.sub(r"\{(\w+):[^|}]*\|([^}]*)\}", lambda two: two[2].replace("#", f"‹{two[1]}›"), template)
    return re.sub(r"\{(\w+)[^}]*\}", r"‹\1›", plural).replace("|", r"\|")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")
    django.setup()
    DOC.write_text(whole_page(), encoding="utf-8")
