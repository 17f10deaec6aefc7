"""Somebody at the pages of change requests, and the services behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import kinds
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.domain.workflow_states import State
from tests.changes.parcels import PARCELS, propose
from tests.pages.conftest import text_of


@dataclass
class Desk:
    """``alice`` proposes, ``bob`` approves, ``ann`` may both, ``adam`` administers, ``vera`` looks."""

    cluster: Cluster
    people: Mapping[str, User]
    client_of: Callable[[User], Client]

    def change(self, state: State = State.PROPOSED, author: str = "alice", **fields: Any) -> ChangeRequest:
        return propose(self.cluster, self.people[author], state, **fields)

    def post(self, who: str, change: ChangeRequest, verb: str, **typed: str) -> str:
        """What the page answers where it was not done; ``digest`` is that of the change, unless it is typed."""
        form = {"digest": change.digest, **typed}
        return self.sent(who, f"/changes/{change.pk}/{verb}/", form)

    def sent(self, who: str, address: str, form: Mapping[str, str]) -> str:
        answer = self.client_of(self.people[who]).post(address, form)
        assert answer.status_code in (200, 400, 403, 404, 409), answer.status_code
        return text_of(answer.content.decode())

    def get(self, who: str, address: str) -> str:
        return text_of(self.client_of(self.people[who]).get(address, follow=True).content.decode())

    def see(self, who: str, change: ChangeRequest) -> str:
        return self.get(who, f"/changes/{change.pk}/")

    @contextmanager
    def can_run(self) -> Iterator[None]:
        """The kind of these changes can be run."""
        with mock.patch.dict(kinds._kinds, {PARCELS.name: replace(PARCELS, starts=True)}):
            yield
