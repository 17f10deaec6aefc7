"""More listeners for a playground's brokers: TLS, logins, permissions; for tests of how clients are let in or refused.

The plain listener stays, for the brokers among themselves and for Kafka's tools: who comes without a name is
``User:ANONYMOUS`` there and, with an authorizer, a super user. Certificates are PEM texts in the properties
(``ssl.keystore.type=PEM``, KIP-651), logins JAAS lines, SCRAM users records of the first metadata (KIP-900).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Listener:
    """``protocol`` is Kafka's (SSL, SASL_PLAINTEXT, SASL_SSL). With TLS: the broker's certificate and key as PEM.

    ``advertised_host`` is what the broker tells clients, loopback where empty.
    """

    protocol: str
    certificate_pem: str = ""
    key_pem: str = ""
    advertised_host: str = ""


@dataclass(frozen=True, slots=True)
class Secured:
    """``listeners`` by name (upper case). ``users`` are name → password, for PLAIN and for both kinds of SCRAM."""

    listeners: Mapping[str, Listener]
    users: Mapping[str, str] = field(default_factory=dict)
    authorizer: bool = False

    def properties(self) -> dict[str, str]:
        """For every node, apart from its own addresses."""
        values: dict[str, str] = {}
        for name, listener in self.listeners.items():
            prefix = f"listener.name.{name.lower()}."
            if listener.protocol.endswith("SSL"):
                values[f"{prefix}ssl.keystore.type"] = "PEM"
                values[f"{prefix}ssl.keystore.certificate.chain"] = listener.certificate_pem
                values[f"{prefix}ssl.keystore.key"] = listener.key_pem
            if listener.protocol.startswith("SASL"):
                values |= self._logins(prefix)
        if self.authorizer:
            values["authorizer.class.name"] = AUTHORIZER
            values["super.users"] = "User:ANONYMOUS"
        return values

    def scram_arguments(self) -> list[str]:
        """For Kafka's storage tool: users that exist from the first record on."""
        return [
            part
            for name, password in self.users.items()
            for mechanism in SCRAM
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    def _logins(self, prefix: str) -> dict[str, str]:
        users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            f"{prefix}sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            f"{prefix}plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
            **{f"{prefix}{mechanism.lower()}.sasl.jaas.config": scram for mechanism in SCRAM},
        }
