"""What a connection test says of addresses behind which there is no usable Kafka; with the real client."""

from __future__ import annotations

from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.clusters.services import register_cluster
from kafkadash.core.messages import coded
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job, enqueue, request_cancel
from kafkadash.kafka.api import ConnectionSecurity
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.probe import ProbeStage, probe
from tests.contract.certificates import new_authority
from tests.contract.sockets import answering_port, black_hole, closed_port, silent_port
from tests.contract.timing import in_time

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_deadlines(settings: Any) -> None:
    settings.KAFKA_DEADLINE = 1.0


def tried(admin: User, addresses: str, **security: Any) -> tuple[Job, dict[str, Any]]:
    job = enqueue(KIND, cluster=register_cluster(admin, "bad", addresses, **security))
    attempt_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.result is not None
    return job, {step["key"]: step for step in job.result["steps"]}


def test_a_name_that_nobody_knows(admin: User) -> None:
    job, steps = tried(admin, "kafka.nowhere.invalid:9092")
    assert list(steps) == ["resolve"]
    assert (job.error_code, job.error_params["host"]) == (KafkaErrorCode.NAME_UNRESOLVED, "kafka.nowhere.invalid")


def test_a_port_that_nobody_listens_at(admin: User) -> None:
    with closed_port() as address:
        job, steps = tried(admin, address)
    assert [step["state"] for step in steps.values()] == ["ok", "critical"]
    assert job.error == coded(KafkaErrorCode.CONNECTING_FAILED, address=address, said="connection refused")


def test_packets_that_are_dropped(admin: User) -> None:
    with black_hole() as address:
        job, steps = tried(admin, address)
    assert steps["connect"]["state"] == "critical"
    assert (job.error_code, job.error_params["address"]) == (KafkaErrorCode.NOTHING_ACCEPTED, address)


def test_something_that_accepts_and_says_nothing(admin: User) -> None:
    with silent_port() as address:
        job, steps = tried(admin, address)
    assert [steps[key]["state"] for key in ("connect", "kafka")] == ["ok", "critical"]
    assert job.error == coded(KafkaErrorCode.NODE_TOO_SLOW, who=f"The bootstrap server {address}")


def test_something_that_is_no_kafka(admin: User) -> None:
    with answering_port(lambda _: b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as address:
        job, steps = tried(admin, address)
    assert steps["connect"]["state"] == "ok"
    assert steps["kafka"]["state"] == "critical"
    assert job.error_code in (KafkaErrorCode.NOT_KAFKA, KafkaErrorCode.CLOSED_INSTEAD)


def test_no_tls_where_tls_is_expected(admin: User) -> None:
    with answering_port(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        job, steps = tried(admin, address, security_protocol="SSL", ca_pem=new_authority().pem)
    assert steps["tls"]["state"] == "critical"
    assert address in job.error_params.values()


def test_one_bad_address_among_good_ones_is_a_warning_of_its_step(admin: User) -> None:
    with silent_port() as good, closed_port() as bad:
        _, steps = tried(admin, f"{good},{bad}")
    assert steps["connect"]["state"] == "warning"
    assert steps["connect"]["said"] == f"{good} accepted the connection."
    assert steps["connect"]["items"] == [
        coded(KafkaErrorCode.CONNECTING_FAILED, address=bad, said="connection refused").as_json()
    ]


def test_a_test_that_hangs_can_be_cancelled(admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_port() as address:
        job = enqueue(KIND, cluster=register_cluster(admin, "bad", address))
        real = probe

        def cancelled_meanwhile(*args: Any, **kwargs: Any) -> Any:
            request_cancel(job.pk)
            return real(*args, **kwargs)

        monkeypatch.setattr("kafkadash.jobs.connection_test.probe", cancelled_meanwhile)
        attempt_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert job.result is not None
    assert [step["key"] for step in job.result["steps"]] == ["resolve"]


def test_many_addresses_are_probed_within_one_deadline() -> None:
    with black_hole() as hole, closed_port() as closed, silent_port() as silent, in_time(1.5):
        found = probe([hole, closed, silent] * 20, ConnectionSecurity(), deadline=0.5)
    assert [each.failed for each in found] == [ProbeStage.CONNECT, ProbeStage.CONNECT, None] * 20
