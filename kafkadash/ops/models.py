"""Records that kafkadash keeps about itself."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """When a part of kafkadash last did its round. One row for each part, written every few seconds at most."""

    name = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%H:%M:%S}"
