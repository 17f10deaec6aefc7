"""Environments of child processes: none gets secrets that it has no use for."""

from __future__ import annotations

from collections.abc import Mapping

# A child gets these only if it is given them: a server or Spark has no use for them, and who breaks in there would.
SECRET_NAMES = (
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "FIELD_KEYS",
    "DATABASE_URL",
    "REDIS_URL",
    "EMAIL_URL",
    "METRICS_TOKEN",
    "DEAD_MAN_URL",
)


def drop_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without secrets of the product, and without files that hold them."""
    return {name: value for name, value in environment.items() if name.removesuffix("_FILE") not in SECRET_NAMES}
