"""POST to an address that a person typed: by a deadline, to allowed networks only, without redirects or proxies.

The host name is resolved once, and what is connected is the address that was checked: a name server that answers
differently a moment later changes nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpcore
import httpx

from kafkadash.core.errors import UserError
from kafkadash.core.host_names import HostUnresolved, resolve_host
from kafkadash.core.logs import HIDDEN
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.notifications.errors import DeliveryErrorCode

MOST_URL = 2_000
MOST_ANSWER_BYTES = 64_000
MOST_SHOWN = 200
SHORTEST_HIDDEN = 8
"""Characters from which a part of a URL is hidden in an answer: shorter ones are words."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The part of IPv6 that has public addresses (RFC 4291). Python takes others for public, such as site-local ones."""
_LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class DeliveryFailed(UserError):
    """A try that was not accepted; ``message`` says why.

    ``final``: another try would be answered in the same way. ``retry_after_s``: what the receiver asked for.
    """

    def __init__(
        self,
        message: CodedMessage,
        *,
        final: bool = False,
        status: int | None = None,
        answer: str = "",
        retry_after_s: float = 0,
    ) -> None:
        super().__init__(message)
        self.final = final
        self.status = status
        self.answer = answer
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class ReceiverAnswer:
    """Accepted request: HTTP status, and the first characters of the answer.

    ``lacking``: says which addresses of the receiver were refused, if the others were sent the message.
    """

    status: int | None
    text: str
    lacking: CodedMessage | None = None


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    networks: Sequence[Network],
    seconds: float,
    secrets: Sequence[str] = (),
) -> ReceiverAnswer:
    """Send the body, and return the answer if its status is 2xx; at most ``MOST_ANSWER_BYTES`` of it are read.

    A compressed answer is not asked for, and its text is left out: few bytes may unpack to more than the memory holds.

    ``networks``: allowed beside public addresses, and alone without TLS. ``secrets``: hidden where the answer repeats
    them, like the parts of the URL. Raises DeliveryFailed, within ``seconds``.
    """
    parts = httpx.URL(url)
    backend = _GuardedBackend(networks, time.monotonic() + seconds, public=parts.scheme == "https")
    sent = {"User-Agent": "kafkadash", "Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
    try:
        with (
            httpx.Client(
                transport=_GuardedTransport(backend),
                timeout=seconds,
                follow_redirects=False,
                trust_env=False,
            ) as client,
            client.stream("POST", parts, content=body, headers=sent) as response,
        ):
            status, retry_after = response.status_code, response.headers.get("retry-after", "")
            hidden = [*secrets, *_list_url_parts(url)]
            readable = response.headers.get("content-encoding", "identity") == "identity"
            shown = readable and (status < 300 or status >= 400)
            text = _read_start(response.iter_raw(), hidden) if shown else ""
    except DeliveryFailed:
        raise
    except (httpx.TimeoutException, TimeoutError):
        raise DeliveryFailed(coded(DeliveryErrorCode.SLOW, host=parts.host, seconds=seconds)) from None
    except (httpx.RemoteProtocolError, UnicodeError):
        raise DeliveryFailed(coded(DeliveryErrorCode.ANSWER_UNUSABLE, host=parts.host)) from None
    except (httpx.TransportError, OSError) as error:
        raise DeliveryFailed(_describe_failure(parts.host, error)) from None
    if status < 300:
        return ReceiverAnswer(status, text)
    code = DeliveryErrorCode.REDIRECTS if status < 400 else DeliveryErrorCode.STATUS
    raise DeliveryFailed(
        coded(code, host=parts.host, status=status),
        final=status in (400, 413, 422),
        status=status,
        answer=text,
        retry_after_s=float(retry_after) if retry_after.isdecimal() and len(retry_after) < 6 else 0,
    )


def is_plain_url(url: str) -> bool:
    """Return whether a typed URL is one word of ASCII, and no longer than ``MOST_URL``."""
    return url.isascii() and url.isprintable() and " " not in url and len(url) <= MOST_URL


def check_literal_host(url: str, networks: Sequence[Network]) -> None:
    """Check the host of a URL as a try does, if it is an address or localhost. A name is resolved only when sent.

    Raises DeliveryFailed, and httpx.InvalidURL where no request can be sent to the URL.
    """
    parts = httpx.URL(url)
    if addresses := _literal_addresses(parts.host):
        _pick_allowed(parts.host, addresses, networks, public=parts.scheme == "https")


def is_allowed_address(address: Address, networks: Sequence[Network], *, public: bool = True) -> bool:
    """Return whether a receiver may be at this address: one in an allowed network, or a public one where allowed."""
    own = _reached_address(address)
    if any(own in network for network in networks if network.version == own.version):
        return True
    if isinstance(own, ipaddress.IPv6Address) and own not in _UNICAST:
        return False
    return public and own.is_global and not own.is_multicast


def _pick_allowed(
    host: str, addresses: Sequence[Address], networks: Sequence[Network], *, public: bool
) -> Sequence[Address]:
    """Return the addresses that may be connected. Raises DeliveryFailed where there are none."""
    allowed = [each for each in addresses if is_allowed_address(each, networks, public=public)]
    if not allowed:
        raise DeliveryFailed(coded(DeliveryErrorCode.ADDRESS_FORBIDDEN, host=host, address=str(addresses[0])))
    return allowed


def _literal_addresses(host: str) -> Sequence[Address]:
    """Return the addresses of a host for which no name server is asked; none of a name.

    The resolver also takes an IPv4 address as one decimal or hexadecimal number, and with fewer than four parts.
    """
    if host == "localhost":
        return _LOOPBACK
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return ()
    return [_read_address(str(where[0])) for *_, where in rows]


def _read_address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _reached_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to: mapped, by 6to4, or by NAT64 (RFC 6052); else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _list_url_parts(url: str) -> set[str]:
    """Return what may be the secret of a URL: parts of its path and values of its query."""
    _, _, own = url.partition("://")
    parts = re.split(r"[/?&=;]", own)[1:]
    return {each for part in parts for each in (part, unquote(part)) if len(each) >= SHORTEST_HIDDEN}


def clean_answer(text: str) -> str:
    """Return the start of an answer as it is stored, without control characters."""
    return "".join(each if each.isprintable() else " " for each in text[:MOST_SHOWN]).strip()


def _read_start(parts: Iterator[bytes], hidden: Iterable[str]) -> str:
    """Return the start of an answer for the list of deliveries, without what is ``hidden``."""
    data = b""
    for part in parts:
        data += part
        if len(data) >= MOST_ANSWER_BYTES:
            break
    text = data[:MOST_ANSWER_BYTES].decode("utf-8", "replace")
    for each in sorted(filter(None, hidden), key=len, reverse=True):
        text = text.replace(each, HIDDEN)
    return clean_answer(text)


def _describe_failure(host: str, error: Exception) -> CodedMessage:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return coded(DeliveryErrorCode.TLS_FAILED, host=host, detail=cause.verify_message)
        if isinstance(cause, ssl.SSLError):
            return coded(DeliveryErrorCode.TLS_FAILED, host=host, detail=cause.reason or "no TLS server")
        if isinstance(cause, OSError) and cause.strerror:
            return coded(DeliveryErrorCode.UNREACHABLE, host=host, detail=cause.strerror.lower())
        cause = cause.__cause__ or cause.__context__
    return coded(DeliveryErrorCode.UNREACHABLE, host=host, detail="the connection was closed")


class _GuardedTransport(httpx.BaseTransport):
    """Transport over connections of a guarded backend; certificates are those that the system trusts."""

    def __init__(self, backend: _GuardedBackend) -> None:
        trust = ssl.create_default_context()
        self._pool = httpcore.ConnectionPool(ssl_context=trust, network_backend=backend, max_connections=1)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = self._pool.handle_request(asked)
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error)) from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except httpcore.NetworkError as error:
            raise httpx.ReadError(str(error)) from error
        return httpx.Response(answer.status, headers=answer.headers, stream=_AnswerStream(answer))

    def close(self) -> None:
        self._pool.close()


class _AnswerStream(httpx.SyncByteStream):
    """Body of an answer, which may end early in any of the ways of its connection."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_stream()
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error)) from error
        except httpcore.ProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except httpcore.NetworkError as error:
            raise httpx.ReadError(str(error)) from error

    def close(self) -> None:
        self._answer.close()


class _GuardedBackend(httpcore.NetworkBackend):
    """Connects to checked addresses; all that it connects ends at one time."""

    def __init__(self, networks: Sequence[Network], until: float, *, public: bool) -> None:
        self._networks = networks
        self._public = public
        self._until = until
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _resolve(host, port, self._until)
        allowed = _pick_allowed(host, addresses, self._networks, public=self._public)
        failure: Exception | None = None
        for index, address in enumerate(allowed):
            share = _seconds_left(self._until) / (len(allowed) - index)
            try:
                stream = self._inner.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream, self._until)
        assert failure is not None
        raise failure


class _DeadlineStream(httpcore.NetworkStream):
    """Stream whose reads and writes end at one time, however slowly bytes arrive."""

    def __init__(self, inner: httpcore.NetworkStream, until: float) -> None:
        self._inner = inner
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _seconds_left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _seconds_left(self._until))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._inner.start_tls(ssl_context, server_hostname, _seconds_left(self._until))
        return _DeadlineStream(stream, self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _resolve(host: str, port: int, until: float) -> list[Address]:
    """Raises DeliveryFailed, and TimeoutError where the name server does not answer."""
    try:
        found = resolve_host(host.strip("[]"), port, _seconds_left(until))
    except HostUnresolved as error:
        raise DeliveryFailed(coded(DeliveryErrorCode.HOST_UNKNOWN, host=host)) from error
    return [_read_address(str(where[0])) for *_, where in found]


def _seconds_left(until: float) -> float:
    """Raises httpcore.ReadTimeout when there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left
