"""Secrets at rest: a text field that is stored as ciphertext and decrypted when the attribute is read.

A row is loaded with its ciphertext. So a process that never connects to Kafka never holds a password, and pages still
work after a key is lost; only code that reads the secret fails (SecretError).

The ciphertext includes its field and ``SecretUse``: the addresses and the security settings for which the secret was
entered. It fits no other field and no row with other settings. Otherwise a person who can change the row or the
connection of a cluster could have the secret sent to another address, or without TLS.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldError
from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression
from django.db.models.query_utils import DeferredAttribute

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.errors import UserError
from kafkadash.core.failures import FailureKind
from kafkadash.core.formatting import join_items
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.logs import remember_secrets

if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField

USE_FIELDS = (
    "bootstrap_servers",
    "controller_servers",
    "security_protocol",
    "sasl_mechanism",
    "ca_pem",
    "check_hostname",
    "oauth_endpoint",
    "zookeeper",
    "zookeeper_tls",
)
OF_ZOOKEEPER = frozenset({"zookeeper_password"})
"""Secrets that are sent to ZooKeeper, the others to Kafka or its token endpoint."""


@dataclass(frozen=True, slots=True)
class SecretUse:
    """``ca`` is the SHA-256 of the CA certificates' PEM, empty without."""

    addresses: tuple[str, ...]
    protocol: str
    mechanism: str
    ca: str
    check_hostname: bool
    endpoint: str = ""
    zookeeper: tuple[str, ...] = ()
    zookeeper_tls: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """By the values of USE_FIELDS of a cluster."""
        return cls(
            addresses=tuple(sorted(_addresses(values))),
            protocol=values["security_protocol"],
            mechanism=values["sasl_mechanism"],
            ca=hashlib.sha256(values["ca_pem"].encode()).hexdigest() if values["ca_pem"] else "",
            check_hostname=values["check_hostname"],
            endpoint=values["oauth_endpoint"],
            zookeeper=tuple(sorted(_split(values["zookeeper"].partition("/")[0]))),
            zookeeper_tls=values["zookeeper_tls"],
        )

    def beyond(self, meant: SecretUse, field: str) -> str:
        """Return how this use of a secret was not ``meant``, in words; empty if it was. Fewer addresses are within."""
        if field in OF_ZOOKEEPER:
            changed = ["ZooKeeper addresses"] if set(self.zookeeper) - set(meant.zookeeper) else []
            changed += ["ZooKeeper over TLS"] if meant.zookeeper_tls and not self.zookeeper_tls else []
            return self._name_changes(meant, changed)
        changed = ["ZooKeeper addresses"] if field == "key_pem" and self._shown() - meant._shown() else []
        changed += ["addresses"] if set(self.addresses) - set(meant.addresses) else []
        changed += ["protocol"] if self.protocol != meant.protocol else []
        changed += ["SASL mechanism"] if self.mechanism != meant.mechanism else []
        changed += ["token endpoint"] if self.endpoint != meant.endpoint else []
        return self._name_changes(meant, changed)

    def _shown(self) -> set[str]:
        """ZooKeeper servers that are shown the client certificate."""
        return set(self.zookeeper) if self.zookeeper_tls else set()

    def _name_changes(self, meant: SecretUse, changed: list[str]) -> str:
        changed += ["CA certificates"] if self.ca != meant.ca else []
        changed += ["host name verification"] if meant.check_hostname and not self.check_hostname else []
        return join_items(changed) if changed else ""


def _addresses(values: Mapping[str, Any]) -> Iterator[str]:
    for text in (values["bootstrap_servers"], values["controller_servers"]):
        yield from _split(text)


def _split(text: str) -> Iterator[str]:
    yield from filter(None, (address.strip() for address in text.split(",")))


MAKES_A_KEY = 'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class SecretError(UserError):
    """A stored secret cannot be written or read; ``str()`` says why and what to do."""

    kind = FailureKind.SECRET_UNREADABLE


class SealedSecret:
    """Ciphertext as it is stored. Its text form does not show it."""

    __slots__ = ("ciphertext",)

    def __init__(self, ciphertext: str) -> None:
        self.ciphertext = ciphertext

    def __repr__(self) -> str:
        return "<sealed>"

    def open(self, field: str, use: SecretUse) -> str:
        """The secret, to be used so. Raises SecretError where it was not meant for that, or no key fits."""
        decrypted = self._decrypted()
        try:
            content = json.loads(decrypted)
            of, meant, text = content["field"], unpack_dataclass(SecretUse, content["use"]), content["text"]
        except (ValueError, KeyError, TypeError):  # written by something else
            raise SecretError(ClusterErrorCode.SECRET_UNREADABLE) from None
        remember_secrets(text)
        if of != field:
            raise SecretError(ClusterErrorCode.SECRET_UNREADABLE)
        if beyond := use.beyond(meant, field):
            raise SecretError(ClusterErrorCode.SECRET_MEANT_FOR_OTHER, changed=beyond)
        return str(text)

    def rotated(self) -> SealedSecret:
        """The same under the first key. Raises SecretError when the keys are missing or none of them fits."""
        return SealedSecret(_fernet().encrypt(self._decrypted()).decode())

    def _decrypted(self) -> bytes:
        try:
            return _fernet().decrypt(self.ciphertext.encode())
        except InvalidToken:
            raise SecretError(ClusterErrorCode.SECRET_UNREADABLE) from None


def seal(text: str, field: str, use: SecretUse) -> SealedSecret:
    """Encrypt with the first of ``settings.FIELD_KEYS``. Raises SecretError when there is none or it is malformed."""
    remember_secrets(text)
    content = {"field": field, "use": pack_dataclass(use), "text": text}
    return SealedSecret(_fernet().encrypt(json.dumps(content).encode()).decode())


class SecretsUser(Protocol):
    """A model with secrets."""

    def secret_use(self) -> SecretUse:
        """Return how its secrets are used, by what the row says now."""


class _SecretAttribute(DeferredAttribute):
    """Opens on reading. Being a data descriptor, it wins over the instance's own dictionary."""

    def __get__(self, instance: models.Model | None, cls: type[models.Model] | None = None) -> Any:
        value = super().__get__(instance, cls)
        if isinstance(value, SealedSecret):
            return value.open(self.field.attname, cast("SecretsUser", instance).secret_use())
        return value

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class EncryptedTextField(_TextField):
    """A secret. The empty string stays empty, so "is there one" needs no key; nothing can be searched for in it."""

    descriptor_class = _SecretAttribute

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return what the row holds, unopened: saving other columns needs no key. A new value is sealed for its use."""
        return self.sealed(model_instance)

    def sealed(self, instance: models.Model) -> Any:
        """The value as it is stored: sealed, or an empty text. Raises SecretError as ``seal`` does."""
        value = instance.__dict__.get(self.attname, "")
        if not value or isinstance(value, SealedSecret):
            return value
        return seal(value, self.attname, cast("SecretsUser", instance).secret_use())

    def get_prep_value(self, value: Any) -> Any:
        return value if isinstance(value, SealedSecret) else super().get_prep_value(value)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if isinstance(value, SealedSecret):
            return value.ciphertext
        text = super().get_db_prep_value(value, connection, prepared)
        if text:
            raise FieldError(f"{self.name} is sealed for the use that its row says: save the row.")
        return text

    def from_db_value(self, value: str | None, _expression: Expression, _connection: BaseDatabaseWrapper) -> Any:
        return SealedSecret(value) if value else value

    def get_lookup(self, lookup_name: str) -> Any:
        raise FieldError(f"{self.name} is encrypted with a random nonce; it cannot be searched for.")


def rotate_all() -> tuple[int, list[str]]:
    """Every secret of every model under the first key, row by row; returns how many, and names of the unreadable ones.

    May run while others read and write: a row is locked while it is rewritten. Raises SecretError without usable keys.
    """
    _fernet()
    rotated, unreadable = 0, []
    for model in apps.get_models():
        for field in (field for field in model._meta.local_fields if isinstance(field, EncryptedTextField)):
            for pk in model._base_manager.order_by("pk").values_list("pk", flat=True):
                try:
                    rotated += _rotate(model, field.attname, pk)
                except SecretError:
                    unreadable.append(f"{field.name} of {model._meta.verbose_name} {pk}")
    return rotated, unreadable


def _rotate(model: type[models.Model], attname: str, pk: Any) -> int:
    with transaction.atomic():
        row = model._base_manager.select_for_update(no_key=True).filter(pk=pk).only(attname).first()
        sealed = row.__dict__[attname] if row is not None else None
        if row is None or not isinstance(sealed, SealedSecret):
            return 0
        setattr(row, attname, sealed.rotated())
        row.save(update_fields=[attname])
    return 1


def _fernet() -> MultiFernet:
    return _fernet_of(tuple(settings.FIELD_KEYS))


@lru_cache(maxsize=8)
def _fernet_of(keys: tuple[str, ...]) -> MultiFernet:
    """Raises SecretError; an error is not cached."""
    if not keys:
        raise SecretError(ClusterErrorCode.NO_KEYS, command=MAKES_A_KEY)
    remember_secrets(*keys)
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise SecretError(ClusterErrorCode.KEY_MALFORMED, command=MAKES_A_KEY) from None
