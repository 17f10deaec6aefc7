"""Texts of this app's codes (``errors``): what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.metrics.errors import MetricsErrorCode as Code

METRICS_MESSAGES: Mapping[Code, MessageTemplate] = {
    Code.METRICS_OFF: MessageTemplate("Metrics are not enabled.", "Set METRICS_TOKEN or METRICS_NETWORKS."),
    Code.SCRAPE_REFUSED: MessageTemplate(
        "The request has no valid token, and its address is not in METRICS_NETWORKS.",
        "Send the header “Authorization: Bearer”, with the value of METRICS_TOKEN.",
    ),
}
