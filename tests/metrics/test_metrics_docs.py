"""The page about metrics, the dashboard and the alert rules name series that exist, and labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkadash.metrics.series import SERIES
from tests.metrics.write_page import read_table, write_table

pytestmark = pytest.mark.domain

DOCS = Path(__file__).parents[2] / "docs" / "monitoring"
OF_PROMETHEUS = {"up"}
_NAME = re.compile(r"\bkafkadash_\w+|\bup\b")
_SELECTOR = re.compile(r"(kafkadash_\w+)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*[=!]~?")
_USED = re.compile(r"\$labels\.(\w+)|\{\{(\w+)\}\}")


def alert_rules() -> list[dict[str, Any]]:
    content = yaml.safe_load((DOCS / "alert-rules.yml").read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def panel_targets() -> Iterator[dict[str, Any]]:
    content = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    for panel in content["panels"]:
        yield from panel.get("targets", [])


def expressions() -> list[tuple[str, str]]:
    """Return each expression with the texts that use labels of its result."""
    rules = [(rule["expr"], " ".join(rule["annotations"].values())) for rule in alert_rules()]
    return rules + [(target["expr"], target["legendFormat"]) for target in panel_targets()]


def test_page__of_all_series__is_the_catalogue() -> None:
    assert read_table() == write_table()  # else: python -m tests.metrics.write_page


def test_series__in_dashboard_and_rules__exist_with_their_labels() -> None:
    found = expressions()
    assert len(found) > 50
    for expression, texts in found:
        names = set(_NAME.findall(expression))
        assert names, expression
        assert names <= SERIES.keys() | OF_PROMETHEUS, expression
        for name, selector in _SELECTOR.findall(expression):
            assert set(_LABEL.findall(re.sub(r'"[^"]*"', "", selector))) <= set(SERIES[name].labels), expression
        used = {label for pair in _USED.findall(texts) for label in pair if label}
        labels = {label for name in names - OF_PROMETHEUS for label in SERIES[name].labels}
        assert used <= labels | {"instance"}, (expression, texts)


def test_rules__of_the_file__have_a_name_a_severity_and_words() -> None:
    rules = alert_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(rule["labels"]["severity"] in ("critical", "warning") for rule in rules)
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules)


def test_dashboard__of_the_file__has_panels_that_do_not_overlap() -> None:
    content = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in content["panels"]}) == len(content["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
