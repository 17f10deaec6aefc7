"""What the settings pages say about roles, and which Kafka cluster answers."""

from __future__ import annotations

import pytest

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.domain.refusals import settings
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db


def gives(desk: Desk, **typed: str) -> str:
    return desk.sent("adam", "/settings/clusters/demo/roles/", {"user": "vera", "role": "operator", **typed})


def gives_to_a_closed_account(desk: Desk) -> str:
    User.objects.filter(username="vera").update(is_active=False)
    return gives(desk)


def answers_as_another(desk: Desk) -> str:
    Cluster.objects.filter(pk=desk.cluster.pk).update(kafka_id="MkU3OEVBNTcwNTJENDM2Qg")
    desk.cluster.refresh_from_db()
    return refused(IdentityChanged, lambda: check_identity(desk.cluster, "another"))


@each(
    case(settings.NOBODY_NAMED, lambda d: gives(d, user=" ")),
    case(settings.NO_SUCH_ACCOUNT, lambda d: gives(d, user="nobody"), name="nobody"),
    case(settings.ACCOUNT_CLOSED, gives_to_a_closed_account, name="vera"),
    case(settings.ROLE_UNKNOWN, lambda d: gives(d, role="")),
    case(settings.END_PASSED, lambda d: gives(d, expires_at="2020-01-01T00:00")),
    case(
        settings.NAME_TO_CONFIRM,
        lambda d: d.sent("adam", "/settings/clusters/demo/remove/", {"typed_name": "demmo", "reason": "gone"}),
        cluster="demo",
    ),
    case(
        settings.LAST_ADMINISTRATOR,
        lambda d: d.sent("adam", "/settings/roles/", {"do": "take", "user": "adam", "role": "admin"}),
        name="adam",
        of="of all clusters",
    ),
    case(settings.IDENTITY_CHANGED, answers_as_another, answered="another", expected="MkU3OEVBNTcwNTJENDM2Qg"),
)
def test_in_the_settings(one: Case, desk: Desk) -> None:
    one.check(desk)
