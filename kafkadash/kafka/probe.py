"""Step-by-step test of one address: DNS name, TCP, TLS, certificate.

The client in ``kafka.dispatch`` only reports how a whole request ended; a connection test reports which step failed. No
secret is sent: a client certificate is presented only to a broker whose own certificate was accepted.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from cryptography import x509
from cryptography.x509.oid import NameOID

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import ConnectionSecurity
from kafkadash.kafka.connections import ssl_context, tls_reason
from kafkadash.kafka.errors import KafkaErrorCode

_AT_ONCE = 512
_GRACE = 0.25  # seconds: what has a time limit of its own says itself what it waited for


class ProbeStage(Enum):
    """Stage of a probe, in the order in which they are tried."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How far one ``host:port`` could be reached. ``failed`` is None when every step worked; ``why`` tells it."""

    address: str
    ips: tuple[str, ...] = ()
    failed: ProbeStage | None = None
    why: CodedMessage | None = None

    def reached(self, stage: ProbeStage) -> bool:
        """Return whether this stage was done and worked."""
        stages = list(ProbeStage)
        return self.failed is None or stages.index(self.failed) > stages.index(stage)

    def tried(self, stage: ProbeStage) -> bool:
        return self.failed is stage or self.reached(stage)


def probe(addresses: Sequence[str], security: ConnectionSecurity, *, deadline: float) -> list[ProbeResult]:
    """Tries all addresses, many at the same time; one result for each, in order, ``deadline`` seconds from now at most.

    Raises AuthenticationFailed when our own certificates cannot be used at all.
    """
    context = ssl_context(security) if security.protocol.endswith("SSL") else None
    until = time.monotonic() + deadline
    done: dict[str, ProbeResult] = {}
    wanted = list(dict.fromkeys(addresses))
    for begin in range(0, len(wanted), _AT_ONCE):
        # A name server that does not answer cannot be interrupted: such a thread is left to end by itself.
        threads = [
            threading.Thread(
                target=_record_probe, args=(done, address, context, until), name=f"probe-{address}", daemon=True
            )
            for address in wanted[begin : begin + _AT_ONCE]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until + _GRACE - time.monotonic()))
    late = coded(KafkaErrorCode.NAME_SERVER_SLOW, seconds=deadline)
    return [done.get(address) or ProbeResult(address, (), ProbeStage.RESOLVE, late) for address in addresses]


def _record_probe(done: dict[str, ProbeResult], address: str, context: ssl.SSLContext | None, until: float) -> None:
    done[address] = _probe_one(address, context, until)


def _probe_one(address: str, context: ssl.SSLContext | None, until: float) -> ProbeResult:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or str(error)
        return ProbeResult(
            address, (), ProbeStage.RESOLVE, coded(KafkaErrorCode.NAME_UNRESOLVED, host=host, said=words)
        )
    ips = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    failure: ProbeResult | None = None
    for entry in found:
        failure = _connect(address, host, ips, entry[4], context, until)
        if failure is None:
            return ProbeResult(address, ips)
    assert failure is not None
    return failure


def _connect(
    address: str,
    host: str,
    ips: tuple[str, ...],
    where: tuple[object, ...],
    context: ssl.SSLContext | None,
    until: float,
) -> ProbeResult | None:
    """None when it worked."""
    left = until - time.monotonic()
    if left <= 0:
        return ProbeResult(address, ips, ProbeStage.CONNECT, coded(KafkaErrorCode.NO_TIME_TO_CONNECT))
    try:
        connection = socket.create_connection((str(where[0]), int(str(where[1]))), timeout=left)
    except TimeoutError:
        why = coded(KafkaErrorCode.NOTHING_ACCEPTED, address=address, seconds=left)
        return ProbeResult(address, ips, ProbeStage.CONNECT, why)
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        return ProbeResult(
            address, ips, ProbeStage.CONNECT, coded(KafkaErrorCode.CONNECTING_FAILED, address=address, said=words)
        )
    with connection:
        if context is None:
            return None
        try:
            connection.settimeout(max(0.05, until - time.monotonic()))
            with context.wrap_socket(connection, server_hostname=host):
                return None
        except TimeoutError:
            why = coded(KafkaErrorCode.TLS_SILENT, address=address)
        except (ssl.SSLError, OSError) as error:
            shown = _certificate_words(host, where, until) if isinstance(error, ssl.SSLCertVerificationError) else ""
            why = coded(KafkaErrorCode.TLS_FAILED, address=address, reason=tls_reason(error), shown=shown)
        return ProbeResult(address, ips, ProbeStage.TLS, why)


def _certificate_words(host: str, where: tuple[object, ...], until: float) -> str:
    """Return the names, issuer and expiry of the refused certificate, in words. Nothing in it is trusted."""
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE  # only to read what was refused a moment ago; nothing is sent
    try:
        timeout = max(0.05, until - time.monotonic())
        with (
            socket.create_connection((str(where[0]), int(str(where[1]))), timeout=timeout) as plain,
            blind.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            shown = wrapped.getpeercert(binary_form=True)
        certificate = x509.load_der_x509_certificate(shown or b"")
    except (OSError, ValueError):
        return ""
    names = ", ".join(_names(certificate)) or "no host name"
    ends = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    issuer = _common_name(certificate.issuer) or certificate.issuer.rfc4514_string() or "an unknown issuer"
    return f" The certificate is for {names}, issued by {issuer}, valid until {ends}."


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [name for name in [_common_name(certificate.subject)] if name]
    return [
        *extension.get_values_for_type(x509.DNSName),
        *(str(ip) for ip in extension.get_values_for_type(x509.IPAddress)),
    ]


def _common_name(name: x509.Name) -> str:
    values = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(values[0].value) if values else ""


def is_ip(host: str) -> bool:
    """Return whether the host is an IP address, so that there is nothing to resolve."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
