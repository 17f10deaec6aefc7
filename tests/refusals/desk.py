"""Somebody at the pages of change requests, and the services behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from tests.changes.parcels import propose
from tests.pages.conftest import text_of


@dataclass
class Desk:
    """``alice`` proposes, ``bob`` approves, ``ann`` may both, ``adam`` administers, ``vera`` looks."""

    cluster: Cluster
    people: Mapping[str, User]
    client_of: Callable[[User], Client]

    def change(self, state: ChangeState = ChangeState.PROPOSED, author: str = "alice", **fields: Any) -> ChangeRequest:
        return propose(self.cluster, self.people[author], state, **fields)

    def post(self, who: str, change: ChangeRequest, verb: str, **typed: str) -> str:
        """What the page answers where it was not done; ``digest`` is that of the change, unless it is typed."""
        form = {"digest": change.digest, **typed}
        answer = self.client_of(self.people[who]).post(f"/changes/{change.pk}/{verb}/", form)
        assert answer.status_code in (400, 403, 404, 409), answer.status_code
        return text_of(answer.content.decode())

    def get(self, who: str, address: str) -> str:
        return text_of(self.client_of(self.people[who]).get(address, follow=True).content.decode())

    def see(self, who: str, change: ChangeRequest) -> str:
        return self.get(who, f"/changes/{change.pk}/")
