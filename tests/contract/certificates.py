"""Certificates for brokers and clients of a test, from an authority made for it."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    pem: str
    key_pem: str


@dataclass(frozen=True)
class Authority:
    """A certificate authority with a broker's and a client's certificate."""

    pem: str
    broker: Certificate
    client: Certificate


def new_authority(host: str = "127.0.0.1", *, broker_ended: dt.timedelta | None = None) -> Authority:
    """``broker_ended``: the broker's certificate ran out so long ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed("an authority", key.public_key(), "an authority", key, is_authority=True, host=None)
    return Authority(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        _issue("broker", key, host, ended=broker_ended),
        _issue("client", key, None),
    )


def self_signed(host: str) -> Authority:
    """Return a server's certificate that is its own authority, and no client's."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed("broker", key.public_key(), "broker", key, is_authority=False, host=host)
    own = _as_pem(certificate, key)
    return Authority(own.pem, own, own)


def _issue(
    name: str, authority_key: ec.EllipticCurvePrivateKey, host: str | None, *, ended: dt.timedelta | None = None
) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(
        name, key.public_key(), "an authority", authority_key, is_authority=False, host=host, ended=ended
    )
    return _as_pem(certificate, key)


def _as_pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certificate:
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )


def _signed(
    subject: str,
    public_key: ec.EllipticCurvePublicKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
    host: str | None,
    ended: dt.timedelta | None = None,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    if ended is not None:
        now -= ended + dt.timedelta(hours=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if host is not None:
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if host[0].isdigit():
            names = [x509.IPAddress(ipaddress.ip_address(host))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def server_context(authority: Authority, *, ask_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broker.pem"
        path.write_text(authority.broker.key_pem + authority.broker.pem)
        context.load_cert_chain(path)
    if ask_client:
        context.load_verify_locations(cadata=authority.pem)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
