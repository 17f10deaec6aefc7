"""Template tag for the settings pages of a cluster: which of its topic rules cannot be met."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage
from kafkadash.topic_rules.checks import load_conflicts

register = template.Library()


@register.simple_tag
def impossible_rules(cluster: Cluster) -> Sequence[CodedMessage]:
    """Return which topic rules of the cluster no topic can keep now."""
    return load_conflicts(cluster)[0]
