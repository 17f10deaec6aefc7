"""A TLS context from the PEM texts of a connection."""

from __future__ import annotations

import secrets
import ssl
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from kafkadash.kafka.connection import Security
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.port import AuthenticationFailed


def ssl_context(security: Security) -> ssl.SSLContext:
    """Verifies brokers against ``ca_pem`` (or the system's store) and presents ``certificate_pem`` if there is one.

    Raises AuthenticationFailed with a sentence that names the text that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.check_hostname
    if security.ca_pem:
        try:
            context.load_verify_locations(cadata=security.ca_pem)
        except (ssl.SSLError, TypeError, ValueError) as error:  # TypeError: not only ASCII
            raise AuthenticationFailed(KafkaErrorCode.CA_UNUSABLE, detail=error) from None
    else:
        context.load_default_certs()
    if security.certificate_pem or security.key_pem:
        _present_certificate(context, security)
    return context


def _present_certificate(context: ssl.SSLContext, security: Security) -> None:
    """OpenSSL reads a key from a file only, so it goes there encrypted with a passphrase that is never stored."""
    if not (security.certificate_pem and security.key_pem):
        raise AuthenticationFailed(KafkaErrorCode.CERTIFICATE_WITHOUT_KEY)
    try:
        key = serialization.load_pem_private_key(security.key_pem.encode(), password=None)
    except (TypeError, ValueError):
        raise AuthenticationFailed(KafkaErrorCode.KEY_UNUSABLE) from None
    passphrase = secrets.token_bytes(32).hex()
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    with tempfile.TemporaryDirectory(prefix="kafkadash-tls-") as folder:
        path = Path(folder) / "client.pem"
        path.write_bytes(encrypted + b"\n" + security.certificate_pem.encode())
        try:
            context.load_cert_chain(path, password=passphrase)
        except (ssl.SSLError, ValueError) as error:
            raise AuthenticationFailed(KafkaErrorCode.PAIR_UNUSABLE, detail=error) from None


def tls_reason(error: OSError) -> str:
    """What OpenSSL or the other side's alert says, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate was refused ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return "the other side ended the handshake (is this really a TLS listener?)"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)
