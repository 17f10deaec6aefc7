"""Kafka's identifiers as text (class org.apache.kafka.common.Uuid)."""

from __future__ import annotations

import base64
import uuid


def new_id() -> str:
    """A random Uuid: 22 characters of url-safe base64, never starting with '-' (tools would take it for a flag)."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made
