"""SASL OAUTHBEARER: tokens of an identity provider, and what is said where it gives none."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from kafkadash.core.logs import without_secrets
from kafkadash.kafka import tokens
from kafkadash.kafka.api import (
    AuthenticationFailed,
    ClusterConnection,
    ConnectionSecurity,
    KafkaFailure,
    NotSupported,
    TokenUnavailable,
)
from kafkadash.kafka.connections import quiet_client_logs
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.reads import WireAdmin
from kafkadash.kafka.tokens import fetch_token, read_extensions
from tests.contract.certificates import new_authority, server_context
from tests.contract.fake_broker import FakeKafka, Login
from tests.contract.fake_model import ClusterModel
from tests.contract.identity_provider import AUDIENCE, CLIENT, CLIENT_SECRET, IdentityProvider, reply
from tests.contract.sockets import closed_port, silent_port
from tests.contract.test_security import loggers_at_lowest_level
from tests.contract.timing import in_time
from tests.raised_codes import raises_code
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
Connect = Callable[[ClusterConnection], WireAdmin]


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture
def kafka(provider: IdentityProvider) -> Iterator[FakeKafka]:
    login = Login("OAUTHBEARER", accepts=lambda token: provider.audience == AUDIENCE and token in provider.issued)
    with FakeKafka(ClusterModel(3), login=login) as kafka:
        yield kafka


def login_at(endpoint: str, secret: str = CLIENT_SECRET) -> ConnectionSecurity:
    return ConnectionSecurity(
        "SASL_PLAINTEXT", "OAUTHBEARER", CLIENT, secret, oauth_endpoint=endpoint, oauth_scope="kafka:read x"
    )


def of(endpoint: str, servers: tuple[str, ...] = ("127.0.0.1:1",), **more: Any) -> ClusterConnection:
    return ClusterConnection("c", 1, servers, replace(login_at(endpoint), **more))


def test_one_token_is_for_all_brokers(kafka: FakeKafka, provider: IdentityProvider, connect: Connect) -> None:
    admin = connect(of(provider.url, kafka.bootstrap_servers, oauth_extensions="logicalCluster=lkc-1"))
    assert admin.log_dirs([1, 2, 3], deadline=DEADLINE).brokers.keys() == {1, 2, 3}
    assert provider.requests == [{"grant_type": ["client_credentials"], "scope": ["kafka:read x"]}]


def test_a_token_is_renewed_before_it_ends_and_a_failure_then_goes_unnoticed(
    kafka: FakeKafka, provider: IdentityProvider, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "RENEW_AT", 0.0)
    admin = connect(of(provider.url, kafka.bootstrap_servers))
    admin.metadata(deadline=DEADLINE)
    wait_until(lambda: (admin.metadata(deadline=DEADLINE), len(provider.issued))[1] > 1, "a token is renewed", 5)
    before = len(provider.requests)
    provider.misbehave = lambda handler: reply(handler, 503, b"")
    wait_until(lambda: (admin.metadata(deadline=DEADLINE), len(provider.requests))[1] > before, "a renewal is tried", 5)

    assert admin.log_dirs([1, 2, 3], deadline=DEADLINE).brokers.keys() == {1, 2, 3}, "new connections use the old token"


def test_a_token_for_another_audience_is_refused_by_name_and_fetched_again(
    kafka: FakeKafka, provider: IdentityProvider, connect: Connect
) -> None:
    provider.audience = "billing"
    admin = connect(of(provider.url, kafka.bootstrap_servers))
    claims = "audience billing, issuer https://idp.example"
    with raises_code(KafkaErrorCode.TOKEN_REFUSED, AuthenticationFailed, claims=claims) as refusal:
        admin.metadata(deadline=DEADLINE)
    assert provider.issued[0] not in repr(refusal.value.message)

    provider.audience = AUDIENCE
    assert admin.metadata(deadline=DEADLINE).cluster_id == kafka.model.cluster_id


def test_a_wrong_secret_is_one_request_for_all_brokers(
    kafka: FakeKafka, provider: IdentityProvider, connect: Connect
) -> None:
    admin = connect(ClusterConnection("c", 1, kafka.bootstrap_servers, login_at(provider.url, "wrong")))
    expected = {"client": CLIENT, "detail": "invalid_client", "endpoint": provider.url}
    with in_time(1), raises_code(KafkaErrorCode.CLIENT_REJECTED, AuthenticationFailed, **expected):
        admin.metadata(deadline=DEADLINE)
    assert len(provider.requests) == 1


def test_a_silent_provider_costs_no_more_than_the_deadline(kafka: FakeKafka, connect: Connect) -> None:
    with silent_port() as address:
        admin = connect(of(f"http://{address}/token", kafka.bootstrap_servers))
        with in_time(1), raises_code(KafkaErrorCode.TOKEN_ENDPOINT_LATE, TokenUnavailable):
            admin.metadata(deadline=1)
        with in_time(0.5), raises_code(KafkaErrorCode.TOKEN_ENDPOINT_SLOW, TokenUnavailable, seconds=0.5):
            fetch_token(of(f"http://{address}/token"), 0.5)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send single bytes until the other side closes the connection."""
    handler.send_response(200)
    handler.end_headers()
    handler.connection.settimeout(0.02)
    with suppress(OSError):
        while True:
            handler.wfile.write(b" ")
            with suppress(TimeoutError):
                if not handler.connection.recv(1):
                    return


def flood(handler: BaseHTTPRequestHandler) -> None:
    with suppress(OSError):
        reply(handler, 200, b" " * 10_000_000)


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b" " * 10_000)


def answers(status: int, body: object = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda handler: reply(handler, status, content, **headers)


MISBEHAVIOUR: dict[str, tuple[Callable[[BaseHTTPRequestHandler], object], KafkaErrorCode]] = {
    "drip": (drip, KafkaErrorCode.TOKEN_ENDPOINT_SLOW),
    "flood": (flood, KafkaErrorCode.TOKEN_ANSWER_TOO_LARGE),
    "endless": (endless, KafkaErrorCode.TOKEN_ANSWER_TOO_LARGE),
    "redirect": (answers(302, Location="http://127.0.0.1:1/"), KafkaErrorCode.TOKEN_ENDPOINT_REDIRECTS),
    "unavailable": (answers(503, b"<html>"), KafkaErrorCode.TOKEN_ENDPOINT_FAILED),
    "html": (answers(401, b"<script>"), KafkaErrorCode.CLIENT_REJECTED),
    "long error": (answers(400, {"error": "bad\nthing" + "x" * 500}), KafkaErrorCode.TOKEN_ENDPOINT_FAILED),
    "refused by a proxy": (answers(403, b"<h1>Forbidden</h1>"), KafkaErrorCode.TOKEN_ENDPOINT_FAILED),
    "deep JSON": (answers(200, b"[" * 60_000), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "list": (answers(200, ["no", "object"]), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "control characters": (answers(200, {"access_token": "a\x01auth=b"}), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "expired": (answers(200, {"access_token": "abc", "expires_in": -1}), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "digits": (answers(200, {"access_token": "abc", "expires_in": "9" * 30}), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "other protocol": (lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n"), KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
    "nothing": (lambda _: None, KafkaErrorCode.TOKEN_ANSWER_UNUSABLE),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_an_answer_without_a_token_is_named(provider: IdentityProvider, name: str) -> None:
    provider.misbehave, code = MISBEHAVIOUR[name]
    with in_time(1), raises_code(code, KafkaFailure, endpoint=provider.url) as failure:
        fetch_token(of(provider.url), 1)
    assert len(str(failure.value)) < 250
    assert str(failure.value).isprintable()


def test_a_token_without_a_lifetime_is_kept_for_a_minute(provider: IdentityProvider) -> None:
    provider.misbehave = answers(200, {"access_token": "opaque"})
    token = fetch_token(of(provider.url))
    assert (token.text, token.lifetime_s, token.claims) == ("opaque", 60.0, "no readable claims")
    provider.misbehave = answers(200, {"access_token": "opaque", "expires_in": "3599"})
    assert fetch_token(of(provider.url)).lifetime_s == 3599.0


def test_an_endpoint_that_is_down_unknown_or_outside_the_networks() -> None:
    with closed_port() as address, raises_code(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable):
        fetch_token(of(f"http://{address}/"))
    with raises_code(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable, match="cannot be resolved"):
        fetch_token(of("http://idp.nowhere.invalid/"))
    outside = replace(of("http://127.0.0.1:1/"), networks=("10.20.0.0/16",))
    with raises_code(
        KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable, detail="127.0.0.1 is not in KAFKA_NETWORKS"
    ):
        fetch_token(outside)


def test_the_certificate_of_the_endpoint_is_verified() -> None:
    authority = new_authority()
    with IdentityProvider(server_context(authority)) as provider:
        trusting = of(provider.url, protocol="SASL_SSL", ca_pem=authority.pem)
        assert fetch_token(trusting).text == provider.issued[0]
        for ca_pem in (new_authority().pem, ""):
            with raises_code(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable, match="certificate was reje"):
                fetch_token(of(provider.url, protocol="SASL_SSL", ca_pem=ca_pem))
        lenient = replace(trusting, security=replace(trusting.security, check_hostname=False))
        elsewhere = new_authority("elsewhere.example")
        with IdentityProvider(server_context(elsewhere)) as other:
            security = replace(lenient.security, oauth_endpoint=other.url, ca_pem=elsewhere.pem)
            with raises_code(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable, match="mismatch"):
                fetch_token(replace(lenient, security=security))
        assert (len(provider.requests), other.requests) == (1, [])


@pytest.mark.parametrize(
    ("endpoint", "protocol", "code"),
    [
        ("http://idp.example/token", "SASL_SSL", KafkaErrorCode.TOKEN_ENDPOINT_UNENCRYPTED),
        *(
            (url, "SASL_PLAINTEXT", KafkaErrorCode.TOKEN_ENDPOINT_MALFORMED)
            for url in (
                "file:///etc/passwd",
                "https://",
                "https://me:secret@idp.example/",
                "https://idp.example/#x",
                "https://idp.example:99999/",
                "https://idp.example/a b\r\nX: y",
                "https://[::1/",
                "https://" + "x" * 2000,
            )
        ),
    ],
)
def test_an_endpoint_that_must_not_be_used(endpoint: str, protocol: str, code: KafkaErrorCode) -> None:
    with raises_code(code, NotSupported):
        fetch_token(of(endpoint, protocol=protocol))


def test_extensions_are_names_and_values() -> None:
    assert read_extensions(" logicalCluster=lkc-1, identityPoolId=p=1,") == {
        "logicalCluster": "lkc-1",
        "identityPoolId": "p=1",
    }
    for text in ("auth=x", "a", "a-b=c", "a=b\x01auth=c"):
        with raises_code(KafkaErrorCode.EXTENSIONS_MALFORMED, NotSupported):
            read_extensions(text)


def test_no_token_and_no_secret_is_in_the_log_at_any_level(
    kafka: FakeKafka, provider: IdentityProvider, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    quiet_client_logs()
    connection = of(provider.url, kafka.bootstrap_servers)
    with loggers_at_lowest_level(), caplog.at_level(1):
        connect(connection).metadata(deadline=DEADLINE)
        provider.audience = "billing"
        with suppress(AuthenticationFailed):
            connect(replace(connection, key="d")).metadata(deadline=DEADLINE)
    text = "\n".join(logging.Formatter("%(message)s %(args)s %(exc_text)s").format(record) for record in caplog.records)

    assert "SaslHandshake" in text, "the library's debug output was not captured"
    assert len(provider.issued) == 2
    for secret in (CLIENT_SECRET, *provider.issued, *(token[20:60] for token in provider.issued)):
        assert secret not in text + repr(connection)
    assert provider.issued[0] not in without_secrets(f"Authorization: Bearer {provider.issued[0]}")
