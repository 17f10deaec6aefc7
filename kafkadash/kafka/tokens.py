"""Access tokens for SASL OAUTHBEARER: OIDC client credentials (KIP-768, RFC 6749 section 4.4), fetched and kept.

A token endpoint is asked with a deadline. It is connected only within the networks of the cluster, its certificate and
host name are always verified, no redirect is followed, and at most 64 kB of its answer are read. Nothing of the answer
is repeated but the OAuth error code. Tokens stay in memory and are in no log and no message.

A ``TokenSource`` belongs to one wire. It renews a token at 80 % of its lifetime, while the old one is in force, so that
an endpoint that fails for a short time goes unnoticed. The library authenticates a connection again before its
session ends (KIP-368) with the token that is in force then.
"""

from __future__ import annotations

import base64
import http.client
import io
import ipaddress
import json
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from kafkadash.core.host_names import HostUnresolved, resolve_host
from kafkadash.kafka.api import (
    AuthenticationFailed,
    ClusterConnection,
    ConnectionSecurity,
    KafkaFailure,
    NotSupported,
    TokenUnavailable,
)
from kafkadash.kafka.connections import Network, WireLoop, WirePromise, new_promise, ssl_context, tls_reason
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import AbstractTokenProvider, errors

log = logging.getLogger(__name__)

OAUTHBEARER = "OAUTHBEARER"
MOST_BYTES = 64_000
LONGEST_URL = 2000
FETCH_S = 10.0
RETRY_S = 5.0  # seconds for which a failure is the answer to everybody, so that many brokers are not many requests
RENEW_AT = 0.8  # of the lifetime
UNKNOWN_LIFETIME_S = 60.0  # of a token whose answer tells no expires_in
_NO_CLAIMS = "no readable claims"
_LONGEST_LIFETIME_S = 86_400.0
_URL = re.compile(r"[!-~]+")
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 section 2.1
_ERROR = re.compile(r"[!#-\[\]-~]{1,64}")  # RFC 6749 section 5.2
_EXTENSION_NAME = re.compile(r"[A-Za-z]{1,64}")  # RFC 7628 section 3.1
_EXTENSION_VALUE = re.compile(r"[ -~]{0,255}")


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Parts of a token endpoint's URL; ``host`` is without brackets."""

    url: str
    encrypted: bool
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.encrypted else 80) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """``expires_at`` and ``renew_at`` are on the monotonic clock; ``claims`` names audience and issuer, if readable."""

    text: str = field(repr=False)
    lifetime_s: float
    renew_at: float
    expires_at: float
    claims: str


def read_endpoint(url: str) -> TokenEndpoint:
    """Raises NotSupported for a URL that is not http or https, has credentials or a fragment, or cannot be parsed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotSupported(KafkaErrorCode.TOKEN_ENDPOINT_MALFORMED) from None
    usable = parts.scheme in ("http", "https") and "@" not in parts.netloc and not parts.fragment and port != 0
    host = parts.hostname or "."
    if not usable or host.startswith(".") or len(url) > LONGEST_URL or not _URL.fullmatch(url):
        raise NotSupported(KafkaErrorCode.TOKEN_ENDPOINT_MALFORMED)
    encrypted = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return TokenEndpoint(url, encrypted, host, port or (443 if encrypted else 80), target)


def check_endpoint(url: str, protocol: str) -> TokenEndpoint:
    """The endpoint for a cluster with this protocol: client secrets go unencrypted only where passwords do.

    Raises NotSupported.
    """
    endpoint = read_endpoint(url)
    if protocol == "SASL_SSL" and not endpoint.encrypted:
        raise NotSupported(KafkaErrorCode.TOKEN_ENDPOINT_UNENCRYPTED)
    return endpoint


def read_extensions(text: str) -> dict[str, str]:
    """SASL extensions (KIP-342) from ``name=value`` items, separated by commas. Raises NotSupported for others."""
    found: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals or name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise NotSupported(KafkaErrorCode.EXTENSIONS_MALFORMED, item=item[:80])
        found[name] = value
    return found


def fetch_token(connection: ClusterConnection, seconds: float = FETCH_S) -> AccessToken:
    """Ask the token endpoint of a connection; returns or raises within ``seconds``.

    Raises AuthenticationFailed where it rejects the client, NotSupported for an endpoint that must not be used, and
    TokenUnavailable otherwise.
    """
    security = connection.security
    endpoint = check_endpoint(security.oauth_endpoint, security.protocol)
    context = _trust(security.ca_pem) if endpoint.encrypted else None
    networks = [ipaddress.ip_network(text) for text in connection.networks]
    url, began = endpoint.url, time.monotonic()
    try:
        sock = _connect(endpoint, context, networks, began + seconds)
        with sock:
            status, body = _exchange(sock, _request_bytes(endpoint, security), began + seconds)
    except _AnswerOversized:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ANSWER_TOO_LARGE, endpoint=url, most=MOST_BYTES // 1000) from None
    except TimeoutError:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ENDPOINT_SLOW, endpoint=url, seconds=seconds) from None
    except http.client.HTTPException:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ANSWER_UNUSABLE, endpoint=url) from None
    except OSError as error:
        words = error.strerror.lower() if error.strerror else str(error)
        detail = tls_reason(error) if isinstance(error, ssl.SSLError) else words
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, endpoint=url, detail=detail) from None
    return _read_answer(endpoint, security.sasl_username, status, body, began)


def _trust(ca_pem: str) -> ssl.SSLContext:
    """The cluster's CA and the system's: brokers and identity provider often have different ones."""
    context = ssl_context(ConnectionSecurity(protocol="SSL", ca_pem=ca_pem))
    if ca_pem:
        context.load_default_certs()
    return context


def _request_bytes(endpoint: TokenEndpoint, security: ConnectionSecurity) -> bytes:
    """Client ID and secret are form-encoded in the header Authorization (RFC 6749 section 2.3.1)."""
    login = f"{quote_plus(security.sasl_username)}:{quote_plus(security.sasl_password)}"
    scope = {"scope": security.oauth_scope} if security.oauth_scope else {}
    body = urlencode({"grant_type": "client_credentials", **scope})
    lines = (
        f"POST {endpoint.target} HTTP/1.1",
        f"Host: {endpoint.authority}",
        f"Authorization: Basic {base64.b64encode(login.encode()).decode()}",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        "Accept: application/json",
        "User-Agent: kafkadash",
        "Connection: close",
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("ascii")


def _left(until: float) -> float:
    """Seconds until then. Raises TimeoutError when there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connect(
    endpoint: TokenEndpoint, context: ssl.SSLContext | None, networks: Sequence[Network], until: float
) -> socket.socket:
    try:
        addresses = resolve_host(endpoint.host, endpoint.port, _left(until))
    except HostUnresolved as error:
        raise OSError(f"the host name {endpoint.host} cannot be resolved ({error.detail})") from error
    failure: OSError = OSError(f"the host name {endpoint.host} has no address")
    for index, (family, kind, proto, address) in enumerate(addresses):
        if networks and not any(ipaddress.ip_address(address[0]) in network for network in networks):
            failure = OSError(f"{address[0]} is not in KAFKA_NETWORKS")
            continue
        sock = socket.socket(family, kind, proto)
        try:
            sock.settimeout(_left(until) / (len(addresses) - index))
            sock.connect(address)
            sock.settimeout(_left(until))
            return sock if context is None else context.wrap_socket(sock, server_hostname=endpoint.host)
        except OSError as error:
            sock.close()
            failure = error
    raise failure


class _AnswerOversized(Exception):
    """More than ``MOST_BYTES`` arrived."""


class _BoundedStream(io.RawIOBase):
    """Bytes of a socket until a time, and no more than ``MOST_BYTES``."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._until))
        count = self._sock.recv_into(buffer)
        self._count += count
        if self._count > MOST_BYTES:
            raise _AnswerOversized
        return count


class _ReadableSocket:
    """As much of a socket as ``http.client.HTTPResponse`` takes."""

    def __init__(self, stream: _BoundedStream) -> None:
        self._stream = stream

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._stream)


def _exchange(sock: socket.socket, request: bytes, until: float) -> tuple[int, bytes]:
    """Return status and body. Raises TimeoutError, OSError, HTTPException and _AnswerOversized."""
    sock.settimeout(_left(until))
    sock.sendall(request)
    response = http.client.HTTPResponse(_ReadableSocket(_BoundedStream(sock, until)), method="POST")  # type: ignore[arg-type]
    with response:
        response.begin()
        if response.length is not None and response.length > MOST_BYTES:
            raise _AnswerOversized
        return response.status, response.read()


def _read_answer(endpoint: TokenEndpoint, client: str, status: int, body: bytes, began: float) -> AccessToken:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    answer = content if isinstance(content, dict) else {}
    if 300 <= status < 400:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ENDPOINT_REDIRECTS, endpoint=endpoint.url, status=status)
    told = answer.get("error")
    reason = told if isinstance(told, str) and _ERROR.fullmatch(told) else ""
    # A proxy in front of the provider may answer 400 and 403 as well: only the provider gives a reason (RFC 6749, 5.2).
    if status == 401 or (status in (400, 403) and reason):
        detail = reason or f"HTTP status {status}"
        raise AuthenticationFailed(KafkaErrorCode.CLIENT_REJECTED, endpoint=endpoint.url, client=client, detail=detail)
    if status != http.client.OK:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ENDPOINT_FAILED, endpoint=endpoint.url, status=status)
    text, lifetime = answer.get("access_token"), _read_lifetime(answer.get("expires_in"))
    if not isinstance(text, str) or not _TOKEN.fullmatch(text) or lifetime is None:
        raise TokenUnavailable(KafkaErrorCode.TOKEN_ANSWER_UNUSABLE, endpoint=endpoint.url)
    # A session ends with its token: one that would end at once is of no use to the request that opened it.
    expires_at = began + lifetime - min(5.0, max(1.0, lifetime / 10))
    renew_at = min(began + lifetime * RENEW_AT, expires_at)
    return AccessToken(text, lifetime, renew_at, expires_at, _describe_claims(text))


def _read_lifetime(value: object) -> float | None:
    """Seconds, at most a day; None for a value that is no positive number. Some providers answer a text."""
    if value is None:
        return UNKNOWN_LIFETIME_S
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(min(value, _LONGEST_LIFETIME_S))


def _describe_claims(token: str) -> str:
    """Return audience and issuer of a JWT, unverified, for a person who compares them."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        audience, issuer = claims.get("aud"), claims.get("iss")
    except (IndexError, ValueError, AttributeError, RecursionError):
        return _NO_CLAIMS
    audiences = audience if isinstance(audience, list) else [audience]
    told = [("audience", ", ".join(each for each in audiences if isinstance(each, str))), ("issuer", issuer)]
    words = [f"{name} {value[:100]}" for name, value in told if isinstance(value, str) and value]
    return ", ".join(word for word in words if word.isprintable()) or _NO_CLAIMS


Within = Callable[[WirePromise, float], Awaitable[Any]]


class TokenSource(AbstractTokenProvider):  # type: ignore[misc]
    """The access token of one wire. Everything but the request to the endpoint runs on the loop's thread."""

    def __init__(self, connection: ClusterConnection, loop: WireLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._token: AccessToken | None = None
        self._fetch: WirePromise | None = None
        self._failure: KafkaFailure | None = None
        self._failed_at = 0.0

    @property
    def claims(self) -> str:
        return self._token.claims if self._token else _NO_CLAIMS

    def token(self) -> str:
        """The token in force, for the library. Raises KafkaConnectionError where there is none any more."""
        if self._token is None or time.monotonic() >= self._token.expires_at:
            raise errors.KafkaConnectionError("the access token expired")
        return self._token.text

    def extensions(self) -> Mapping[str, str]:
        return read_extensions(self._connection.security.oauth_extensions)

    def renew_if_due(self) -> None:
        """Begin to fetch a new token if the present one is old; the present one stays in force meanwhile."""
        now = time.monotonic()
        if self._token is None or now >= self._token.renew_at:
            self._begin(now)

    async def wait_for_token(self, within: Within, until: float) -> None:
        """Return when there is a token in force. Raises KafkaFailure where there is none by then."""
        self.renew_if_due()
        if self._in_force():
            return
        self._begin(time.monotonic())  # it may have ended since
        if self._fetch is not None:
            try:
                await within(self._fetch, until - time.monotonic())
            except errors.KafkaTimeoutError:
                endpoint = self._connection.security.oauth_endpoint
                raise TokenUnavailable(KafkaErrorCode.TOKEN_ENDPOINT_LATE, endpoint=endpoint) from None
        if not self._in_force():
            endpoint = self._connection.security.oauth_endpoint
            raise self._failure or TokenUnavailable(KafkaErrorCode.TOKEN_ANSWER_UNUSABLE, endpoint=endpoint)

    def _in_force(self) -> bool:
        return self._token is not None and time.monotonic() < self._token.expires_at

    def _begin(self, now: float) -> None:
        if self._fetch is not None or (self._failure is not None and now - self._failed_at < RETRY_S):
            return
        self._fetch = new_promise()

        def fetch() -> None:
            outcome: AccessToken | KafkaFailure
            try:
                outcome = fetch_token(self._connection)
            except KafkaFailure as failure:
                outcome = failure
            except Exception as error:
                endpoint = self._connection.security.oauth_endpoint
                log.error("kafka.token_request_crashed", exc_info=error)  # noqa: TRY400
                outcome = TokenUnavailable(KafkaErrorCode.ASKING_CRASHED, who=f"The token endpoint {endpoint}")
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                self._loop.call_soon_threadsafe(lambda: self._end(outcome))

        threading.Thread(target=fetch, name=f"token-{self._connection.key}", daemon=True).start()

    def _end(self, outcome: AccessToken | KafkaFailure) -> None:
        if isinstance(outcome, AccessToken):
            self._token, self._failure = outcome, None
        else:
            self._failure, self._failed_at = outcome, time.monotonic()
        fetched, self._fetch = self._fetch, None
        if fetched is not None:
            fetched.success(None)
