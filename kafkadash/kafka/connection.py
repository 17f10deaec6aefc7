"""Where a cluster is and how to connect to it: addresses, TLS, credentials."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Security:
    """How to connect. Secrets are in here: ``repr`` hides them."""

    protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ca_pem: str = field(default="", repr=False)
    certificate_pem: str = field(default="", repr=False)
    key_pem: str = field(default="", repr=False)
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Connection:
    """Where and how. ``version`` changes whenever an address or a credential does, and gives a fresh client.

    ``controller_servers``: host:port of the controllers' own listeners (KRaft), connected in the same way; empty where
    they cannot be reached. ``networks``: nothing outside of these is connected, whatever a name resolves to or a broker
    names; empty for everywhere.
    """

    key: str
    version: int
    bootstrap_servers: tuple[str, ...]
    security: Security = field(default_factory=Security)
    client_id: str = "kafkadash"
    controller_servers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
