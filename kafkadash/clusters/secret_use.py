"""How a stored secret may be used: with the addresses and the security that it was entered for.

Otherwise whoever changes a cluster's row, or may change its connection, has the secret sent to an address of his own,
or unprotected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from kafkadash.domain.wording import listed

USE_FIELDS = (
    "bootstrap_servers",
    "controller_servers",
    "security_protocol",
    "sasl_mechanism",
    "ca_pem",
    "check_hostname",
)


@dataclass(frozen=True, slots=True)
class SecretUse:
    """``ca`` is the SHA-256 of the CA certificates' PEM, empty without."""

    addresses: tuple[str, ...]
    protocol: str
    mechanism: str
    ca: str
    check_hostname: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """By the values of USE_FIELDS of a cluster."""
        return cls(
            addresses=tuple(sorted(_addresses(values))),
            protocol=values["security_protocol"],
            mechanism=values["sasl_mechanism"],
            ca=hashlib.sha256(values["ca_pem"].encode()).hexdigest() if values["ca_pem"] else "",
            check_hostname=values["check_hostname"],
        )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "addresses": tuple(stored["addresses"])})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def beyond(self, meant: SecretUse) -> str:
        """Return what of this use was not ``meant``, in words; empty if nothing. Fewer addresses are within it."""
        changed = ["addresses"] if set(self.addresses) - set(meant.addresses) else []
        changed += ["protocol"] if self.protocol != meant.protocol else []
        changed += ["SASL mechanism"] if self.mechanism != meant.mechanism else []
        changed += ["CA certificates"] if self.ca != meant.ca else []
        changed += ["check of host names"] if meant.check_hostname and not self.check_hostname else []
        return listed(changed) if changed else ""


def _addresses(values: Mapping[str, Any]) -> Iterator[str]:
    for text in (values["bootstrap_servers"], values["controller_servers"]):
        yield from filter(None, (address.strip() for address in text.split(",")))
