"""Forms with coded messages, and those of the settings pages, whose services refuse most (``ClusterRefused``)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.forms.boundfield import BoundField
from django.utils import timezone

from kafkadash.accounts.errors import form_error
from kafkadash.accounts.models import User
from kafkadash.accounts.templatetags.refusals import FieldMessage, field_messages
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import SECRETS, Cluster, Role, SecurityProtocol
from kafkadash.clusters.services import CONNECTION_FIELDS, ClusterRefused
from kafkadash.core.errors import FieldRefused, RequestErrorCode
from kafkadash.core.messages import CodedMessage, as_message
from kafkadash.kafka.connections import SASL_MECHANISMS

SECURITY_WORDS = {
    SecurityProtocol.PLAINTEXT: "PLAINTEXT: no encryption, no authentication",
    SecurityProtocol.SSL: "SSL: encryption, optional client certificate",
    SecurityProtocol.SASL_PLAINTEXT: "SASL_PLAINTEXT: authentication, no encryption",
    SecurityProtocol.SASL_SSL: "SASL_SSL: encryption and authentication",
}


class CodedForm(forms.Form):
    """A form refused with coded messages, which ``clusters/_wrong.html`` lists at the top of its page."""

    use_required_attribute = False

    def wrong(self) -> Iterator[tuple[BoundField | None, FieldMessage]]:
        """Yield every message with its field, for the summary at the top."""
        for message in field_messages(self.non_field_errors()):
            yield None, message
        for field in self:
            for message in field_messages(field.errors):
                yield (None if field.is_hidden else field), message

    def _refuse(self, name: str | None, said: StrEnum | CodedMessage) -> None:
        self.add_error(name, form_error(said))


class SettingsForm(CodedForm):
    """Fields know how the page shows them: ``hint`` is text below, ``errors`` become sentences at the field."""

    hints: dict[str, str] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.help_text = self.hints.get(name, field.help_text)

    def show_refusal(self, refused: FieldRefused) -> None:
        self._refuse(refused.field or None, refused.message)

    def refuse(self, refused: ClusterRefused) -> None:
        """Put each message at its field; what belongs to none goes to the top."""
        for name, messages in refused.messages.items():
            for message in messages:
                self._refuse(name if name in self.fields else None, as_message(message))


class CheckedChoiceField(forms.ChoiceField):
    """Choice of which the form or its service refuses unknown values, with a code of its own."""

    def valid_value(self, value: Any) -> bool:
        return True


class TimeZoneField(forms.CharField):
    """Name of a time zone; UTC where it is empty."""

    def __init__(self) -> None:
        super().__init__(label="Time zone", required=False, initial="UTC")

    def clean(self, value: Any) -> str:
        name = str(super().clean(value)) or "UTC"
        if name not in available_timezones():
            raise form_error(RequestErrorCode.TIME_ZONE_UNKNOWN)
        return name


class ConnectionForm(SettingsForm):
    """How to reach a cluster. The secrets are only taken, never shown: a page has no way to read them."""

    hints = {
        "bootstrap_servers": "host:port of one or more brokers, comma-separated or one per line.",
        "controller_servers": "host:port of the controller listeners, if kafkadash can reach them.",
        "sasl_mechanism": "OAUTHBEARER is OAuth client credentials. Kerberos (GSSAPI) is not supported.",
        "oauth_endpoint": "URL where the identity provider issues access tokens.",
        "oauth_scope": "As the identity provider requires it, often none.",
        "oauth_extensions": "name=value, comma-separated, where the brokers require them.",
        "sasl_username": "Reading needs Describe and DescribeConfigs on the cluster and on topics.",
        "ca_pem": "Trusted certificates, PEM. Leave empty for those of kafkadash's system.",
        "certificate_pem": "PEM. Only if the brokers require a client certificate.",
        "check_hostname": "Turn off only if the broker certificates are for other host names.",
        "zookeeper": "zookeeper.connect of the brokers: host:port,host:port/path.",
        "zookeeper_username": "Of ZooKeeper's digest scheme, if ACLs protect Kafka's znodes.",
        "zookeeper_tls": "With the certificates above.",
        "read_only": "kafkadash never changes this cluster, for any role.",
    }

    bootstrap_servers = forms.CharField(label="Bootstrap addresses", required=False)
    controller_servers = forms.CharField(label="Controller addresses", required=False)
    security_protocol = forms.ChoiceField(
        label="Security protocol", choices=[(p, SECURITY_WORDS[p]) for p in SecurityProtocol], required=False
    )
    sasl_mechanism = CheckedChoiceField(
        label="SASL mechanism", choices=[("", "none"), *((m, m) for m in SASL_MECHANISMS)], required=False
    )
    sasl_username = forms.CharField(label="User name or client ID", required=False)
    sasl_password = forms.CharField(label="Password or client secret", required=False, strip=False)
    oauth_endpoint = forms.CharField(label="Token endpoint", required=False)
    oauth_scope = forms.CharField(label="Scope", required=False)
    oauth_extensions = forms.CharField(label="SASL extensions", required=False)
    ca_pem = forms.CharField(label="CA certificates", required=False)
    certificate_pem = forms.CharField(label="Client certificate", required=False)
    key_pem = forms.CharField(label="Client private key", required=False)
    check_hostname = forms.BooleanField(label="Verify host name", required=False, initial=True)
    zookeeper = forms.CharField(label="ZooKeeper addresses", required=False)
    zookeeper_username = forms.CharField(label="ZooKeeper user", required=False)
    zookeeper_password = forms.CharField(label="ZooKeeper password", required=False, strip=False)
    zookeeper_tls = forms.BooleanField(label="ZooKeeper over TLS", required=False)
    read_only = forms.BooleanField(label="Read-only", required=False)

    def __init__(self, *args: Any, cluster: Cluster | None = None, **kwargs: Any) -> None:
        if cluster is not None:
            shown = [*(name for name in CONNECTION_FIELDS if name not in SECRETS), "read_only"]
            kwargs["initial"] = {name: getattr(cluster, name) for name in shown}
            kwargs["initial"]["bootstrap_servers"] = ", ".join(cluster.addresses)
        super().__init__(*args, **kwargs)
        for name in SECRETS:
            stored = cluster is not None and bool(cluster.__dict__[name])
            self.fields[name].help_text = (
                "Set, not shown. Leave empty to keep it. Enter it again for new addresses or security."
                if stored
                else "Stored encrypted, never shown again."
            )

    def connection(self) -> dict[str, Any]:
        """The values as the services take them: secrets that were left empty are left out, and so kept."""
        given = {name: self.cleaned_data[name] for name in CONNECTION_FIELDS if name in self.cleaned_data}
        if not given.get("certificate_pem", "").strip():
            given["key_pem"] = given.get("key_pem", "")  # a key without its certificate is of no use: it goes as well
        elif not given.get("key_pem"):
            given.pop("key_pem", None)
        if not given.get("sasl_password"):
            given.pop("sasl_password", None)
        if not given.get("zookeeper_username", "").strip():
            given["zookeeper_password"] = given.get("zookeeper_password", "")
        elif not given.get("zookeeper_password"):
            given.pop("zookeeper_password", None)
        return given


class RegisterForm(ConnectionForm):
    hints = {**ConnectionForm.hints, "name": "Shown on all pages, and part of their addresses."}

    name = forms.CharField(label="Name", required=False)
    field_order = ["name"]


class RemoveForm(SettingsForm):
    hints = {"reason": "Stored in the audit log."}

    typed_name = forms.CharField(label="Cluster name, to confirm", required=False, strip=False)
    reason = forms.CharField(label="Reason", required=False)


class RoleForm(SettingsForm):
    """Form that gives a person a role until a time (UTC; empty: no end)."""

    hints = {"expires_at": "UTC. Leave empty for no end."}

    user = forms.CharField(label="User", required=False)
    role = forms.ChoiceField(label="Role", choices=Role.choices, required=False, initial=Role.VIEWER)
    expires_at = forms.DateTimeField(label="Expires", required=False)

    def clean_user(self) -> User:
        name = self.cleaned_data["user"].strip()
        if not name:
            raise form_error(ClusterErrorCode.NOBODY_NAMED)
        user = User.objects.filter(username=name).first()
        if user is None:
            raise form_error(ClusterErrorCode.NO_SUCH_ACCOUNT, name=name)
        if not user.is_active:
            raise form_error(ClusterErrorCode.ACCOUNT_CLOSED, name=name)
        return user

    def clean_role(self) -> Role:
        role = self.cleaned_data["role"]
        if role not in Role.values:
            raise form_error(ClusterErrorCode.ROLE_UNKNOWN, roles=", ".join(Role.values))
        return Role(role)

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment is not None and moment <= timezone.now():
            raise form_error(ClusterErrorCode.END_PASSED)
        return moment
