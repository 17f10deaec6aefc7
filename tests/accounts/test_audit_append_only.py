"""The database refuses to change what the audit says."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from kafkadash.accounts.models import AuditEvent


@pytest.fixture
def event(db: None) -> AuditEvent:
    return AuditEvent.objects.create(
        actor="user:1", actor_name="ann", action="cluster.registered", object_type="cluster", object_id="1"
    )


def test_it_refuses_save(event: AuditEvent) -> None:
    event.reason = "another one"
    with pytest.raises(DatabaseError, match=r"append-only: UPDATE"), transaction.atomic():
        event.save(update_fields=["reason"])


def test_it_refuses_update_of_a_queryset(event: AuditEvent) -> None:
    with pytest.raises(DatabaseError, match=r"append-only: UPDATE"), transaction.atomic():
        AuditEvent.objects.update(reason="another one")


def test_it_refuses_delete(event: AuditEvent) -> None:
    with pytest.raises(DatabaseError, match=r"append-only: DELETE"), transaction.atomic():
        event.delete()


@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        ("UPDATE accounts_auditevent SET actor_name = 'somebody else'", "UPDATE"),
        ("DELETE FROM accounts_auditevent", "DELETE"),
        ("TRUNCATE accounts_auditevent", "TRUNCATE"),
        ("SET LOCAL session_replication_role = replica; DELETE FROM accounts_auditevent", "DELETE"),
    ],
)
def test_it_refuses_raw_sql(event: AuditEvent, sql: str, operation: str) -> None:
    with (
        pytest.raises(DatabaseError, match=f"append-only: {operation}"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert AuditEvent.objects.get().actor_name == "ann"


@pytest.mark.django_db(transaction=True)
def test_it_is_emptied_between_tests_with_real_transactions() -> None:
    """The harness may do what nobody else may; run twice, this test sees what the first run left."""
    assert not AuditEvent.objects.exists()
    AuditEvent.objects.create(actor="a", actor_name="a", action="a.b", object_type="a", object_id="1")


@pytest.mark.django_db(transaction=True)
def test_it_is_refused_again_after_the_harness_emptied_it() -> None:
    AuditEvent.objects.create(actor="a", actor_name="a", action="a.b", object_type="a", object_id="1")
    with pytest.raises(DatabaseError, match="append-only: TRUNCATE"), connection.cursor() as cursor:
        cursor.execute("TRUNCATE accounts_auditevent")
