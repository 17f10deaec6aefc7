"""TLS and SASL: who gets in, what a refusal says, and that no secret is left anywhere."""

import logging
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kafkadash.kafka.api import (
    AuthenticationFailed,
    ClusterConnection,
    ConnectionSecurity,
    KafkaFailure,
    KafkaUnreachable,
)
from kafkadash.kafka.connections import quiet_client_logs
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.reads import WireAdmin
from tests.contract.certificates import Authority, new_authority, server_context
from tests.contract.fake_broker import FakeKafka, Login
from tests.contract.fake_model import ClusterModel
from tests.contract.sockets import silent_port
from tests.contract.timing import in_time
from tests.raised_codes import raises_code
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
PASSWORD = 'pä55 "word"\\with\'quotes'
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

Connect = Callable[[ClusterConnection], WireAdmin]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority()


@contextmanager
def sasl_cluster(mechanism: str, tls: ssl.SSLContext | None = None) -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(2), login=Login(mechanism, "dash", PASSWORD), tls=tls) as kafka:
        yield kafka


def login(mechanism: str, password: str = PASSWORD) -> ConnectionSecurity:
    return ConnectionSecurity(
        protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_username="dash", sasl_password=password
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_gets_in(mechanism: str, connect: Connect) -> None:
    with sasl_cluster(mechanism) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login(mechanism)))

        assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id
        assert admin.log_dirs([1, 2], deadline=DEADLINE).brokers.keys() == {1, 2}
        assert admin.quorum(deadline=DEADLINE).leader_id == 101


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_at_once_and_again(mechanism: str, connect: Connect) -> None:
    with sasl_cluster(mechanism) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login(mechanism, "wrong")))
        for _ in range(2):
            with in_time(0.5), pytest.raises(AuthenticationFailed, match="rejected the credentials") as refusal:
                admin.metadata(deadline=DEADLINE)
            assert PASSWORD not in str(refusal.value)
            assert "wrong" not in str(refusal.value)


def test_a_refused_login_works_once_it_is_granted(connect: Connect) -> None:
    with sasl_cluster("PLAIN") as kafka:
        kafka.login = Login("PLAIN", "dash", "not yet")
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login("PLAIN")))
        with pytest.raises(AuthenticationFailed):
            admin.metadata(deadline=DEADLINE)

        kafka.login = Login("PLAIN", "dash", PASSWORD)

        assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id


def test_a_mechanism_that_the_brokers_do_not_have(connect: Connect) -> None:
    with sasl_cluster("PLAIN") as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login("SCRAM-SHA-512")))
        with pytest.raises(AuthenticationFailed, match="SASL mechanism"):
            admin.metadata(deadline=DEADLINE)


def test_no_login_where_one_is_asked_for(connect: Connect) -> None:
    with sasl_cluster("PLAIN") as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers))
        with in_time(0.5), pytest.raises(KafkaUnreachable, match="closed the connection"):
            admin.metadata(deadline=DEADLINE)


def test_tls_with_a_known_authority(authority: Authority, connect: Connect) -> None:
    with FakeKafka(ClusterModel(2), tls=server_context(authority)) as kafka:
        admin = connect(
            ClusterConnection("c", 1, kafka.bootstrap_servers, ConnectionSecurity("SSL", ca_pem=authority.pem))
        )

        assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_over_tls(mechanism: str, authority: Authority, connect: Connect) -> None:
    security = replace(login(mechanism), protocol="SASL_SSL", ca_pem=authority.pem)
    with sasl_cluster(mechanism, server_context(authority)) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, security))

        assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id


def test_an_unknown_authority_is_refused(authority: Authority, connect: Connect) -> None:
    with FakeKafka(ClusterModel(1), tls=server_context(authority)) as kafka:
        other = ConnectionSecurity("SSL", ca_pem=new_authority().pem)
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, other))
        with in_time(0.5), raises_code(KafkaErrorCode.HANDSHAKE_FAILED, AuthenticationFailed, match="certificate"):
            admin.metadata(deadline=DEADLINE)


def test_a_certificate_for_another_host_is_refused_unless_that_is_switched_off(connect: Connect) -> None:
    authority = new_authority(host="elsewhere.example")
    strict = ConnectionSecurity("SSL", ca_pem=authority.pem)
    with FakeKafka(ClusterModel(1), tls=server_context(authority)) as kafka:
        with raises_code(KafkaErrorCode.HANDSHAKE_FAILED, AuthenticationFailed, match="certificate"):
            connect(ClusterConnection("c", 1, kafka.bootstrap_servers, strict)).metadata(deadline=DEADLINE)

        lenient = connect(ClusterConnection("c", 2, kafka.bootstrap_servers, replace(strict, check_hostname=False)))
        assert lenient.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id


def test_a_client_certificate_is_presented(authority: Authority, connect: Connect) -> None:
    context = server_context(authority, ask_client=True)
    security = ConnectionSecurity(
        "SSL",
        ca_pem=authority.pem,
        certificate_pem=authority.client.pem,
        key_pem=authority.client.key_pem,
    )
    with FakeKafka(ClusterModel(1), tls=context) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, security))
        assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id

        without = connect(
            ClusterConnection("c", 2, kafka.bootstrap_servers, ConnectionSecurity("SSL", ca_pem=authority.pem))
        )
        with in_time(0.5), pytest.raises((AuthenticationFailed, KafkaUnreachable), match="certificate"):
            without.metadata(deadline=DEADLINE)


def test_a_handshake_that_is_never_answered(authority: Authority, connect: Connect) -> None:
    with silent_port() as address:
        admin = connect(ClusterConnection("c", 1, (address,), ConnectionSecurity("SSL", ca_pem=authority.pem)))
        with in_time(1), pytest.raises(KafkaFailure, match=address):
            admin.metadata(deadline=1)
        wait_until(lambda: not connections_to(address), "the handshake is given up, and its socket closed", 5)


def test_tls_spoken_to_a_plain_listener(fake: FakeKafka, authority: Authority, connect: Connect) -> None:
    admin = connect(ClusterConnection("c", 1, fake.bootstrap_servers, ConnectionSecurity("SSL", ca_pem=authority.pem)))
    with in_time(2), pytest.raises(KafkaFailure):
        admin.metadata(deadline=2)


def test_plain_spoken_to_a_tls_listener(authority: Authority, connect: Connect) -> None:
    with FakeKafka(ClusterModel(1), tls=server_context(authority)) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers))
        with in_time(2), pytest.raises(KafkaFailure):
            admin.metadata(deadline=2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ca_pem": "nonsense"}, "CA certificates are not valid PEM"),
        ({"certificate_pem": "only this"}, "needs its private key"),
        ({"certificate_pem": "x", "key_pem": "nonsense"}, "private key is not an unencrypted PEM"),
    ],
)
def test_unusable_texts_are_named(change: dict[str, str], sentence: str, authority: Authority) -> None:
    security = replace(ConnectionSecurity("SSL", ca_pem=authority.pem), **change)  # type: ignore[arg-type]
    with pytest.raises(AuthenticationFailed, match=sentence):
        WireAdmin(ClusterConnection("c", 1, ("127.0.0.1:1",), security)).metadata(deadline=1)


def test_no_file_is_left_of_a_private_key(
    authority: Authority, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    security = ConnectionSecurity(
        "SSL", ca_pem=authority.pem, certificate_pem=authority.client.pem, key_pem=authority.client.key_pem
    )
    with pytest.raises(KafkaUnreachable):
        connect(ClusterConnection("c", 1, ("127.0.0.1:1",), security)).metadata(deadline=1)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("password", [PASSWORD, "wrong-" + PASSWORD])
def test_no_password_is_in_the_log_at_any_level(
    mechanism: str, password: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    quiet_client_logs()
    with sasl_cluster(mechanism) as kafka:
        admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login(mechanism, password)))
        with loggers_at_lowest_level(), caplog.at_level(1), suppress(AuthenticationFailed):
            admin.metadata(deadline=DEADLINE)
    text = "\n".join(logging.Formatter("%(message)s %(args)s %(exc_text)s").format(record) for record in caplog.records)

    assert "SaslHandshake" in text, "the library's debug output was not captured"
    for spelling in (password, repr(password)[1:-1], repr(password.encode())[2:-1]):
        assert spelling not in text
    assert not re.search(r"[,'\s]p=", text), "a SCRAM proof lets the password be guessed offline"
    assert password not in repr(login(mechanism, password))


def test_the_library_is_quiet_unless_asked(fake: FakeKafka, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    admin = connect(ClusterConnection("c", 1, ("127.0.0.1:1",)))
    with pytest.raises(KafkaUnreachable):
        admin.metadata(deadline=1)
    connect(ClusterConnection("d", 1, fake.bootstrap_servers)).metadata(deadline=DEADLINE)

    assert [record for record in caplog.records if record.name.startswith("kafka")] == []


def connections_to(address: str) -> list[object]:
    port = int(address.rpartition(":")[2])
    return [c for c in psutil.Process().net_connections("tcp") if tuple(c.raddr)[1:] == (port,)]


@contextmanager
def loggers_at_lowest_level() -> Iterator[None]:
    names = [name for name in logging.root.manager.loggerDict if name == "kafka" or name.startswith("kafka.")]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
