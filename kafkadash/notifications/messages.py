"""Texts of the codes of notifications."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.errors import NotificationCode as Told

_CHANGE = "Change #{number}, {title},"

NOTIFICATION_MESSAGES: Mapping[Told, MessageTemplate] = {
    Told.CHANGE_WAITING: MessageTemplate(f"{_CHANGE} waits for approval."),
    Told.CHANGE_APPROVED: MessageTemplate(f"{_CHANGE} is approved."),
    Told.CHANGE_DECLINED: MessageTemplate(f"{_CHANGE} was declined."),
    Told.CHANGE_STALE: MessageTemplate(
        f"{_CHANGE} is stale: the cluster has changed since it was planned.", "Create a new plan for it."
    ),
    Told.CHANGE_STARTED: MessageTemplate(f"{_CHANGE} started."),
    Told.CHANGE_ENDED: MessageTemplate(f"{_CHANGE} ended: {{state}}."),
    Told.CHANGE_WITH_EXCEPTIONS: MessageTemplate(
        f"{_CHANGE} ended: {{state}}, with exceptions.", "Read its report: not all was changed as planned."
    ),
    Told.TEST: MessageTemplate("Test notification for {target}, requested by {person}.", "Nothing is wrong."),
    Told.DIGEST: MessageTemplate("{events:# event|# events} on {clusters:names}: {opened} opened, {closed} closed."),
}

DELIVERY_MESSAGES: Mapping[Code, MessageTemplate] = {
    # A try that failed
    Code.HOST_UNKNOWN: MessageTemplate(
        "The host name {host} cannot be resolved.", "Correct the address of the receiver, or the name server."
    ),
    Code.ADDRESS_FORBIDDEN: MessageTemplate(
        "{host} is at {address}, which is not allowed: it is not public, or the URL has no TLS.",
        "An administrator of the server can allow its network: NOTIFICATION_NETWORKS.",
    ),
    Code.UNREACHABLE: MessageTemplate("{host} cannot be reached: {detail}.", "It is tried again."),
    Code.TLS_FAILED: MessageTemplate(
        "The TLS handshake with {host} failed: {detail}.", "Renew the receiver's certificate. It is tried again."
    ),
    Code.SLOW: MessageTemplate("{host} did not answer within {seconds:g} s.", "It is tried again."),
    Code.ANSWER_UNUSABLE: MessageTemplate("The answer of {host} is not HTTP.", "Check the address of the receiver."),
    Code.REDIRECTS: MessageTemplate(
        "{host} redirects to another address ({status}); redirects are not followed.",
        "Enter the address that it redirects to.",
    ),
    Code.STATUS: MessageTemplate("{host} answered with HTTP status {status}.", "See the answer of the receiver."),
    Code.MAIL_FAILED: MessageTemplate("The mail server did not accept the message: {detail}.", "It is tried again."),
    Code.ADDRESSES_REFUSED: MessageTemplate(
        "The mail server refused {addresses:names}: {detail}. It took the message for the other addresses.",
        "Correct the addresses of the receiver: this message is not sent again.",
    ),
    Code.FAULT: MessageTemplate(
        "kafkadash could not send the message because of a fault of its own.", "See the logs of worker-notify."
    ),
    # Forms
    Code.URL_WRONG: MessageTemplate("This is no usable URL.", "Enter one that begins with https://, with a host."),
    Code.URL_UNENCRYPTED: MessageTemplate(
        "The URL is not encrypted.", "Use https://. Only networks in NOTIFICATION_NETWORKS may be sent to by http://."
    ),
    Code.URL_OF_SERVICE: MessageTemplate("{host} is no host of {service}.", "Copy the URL from {service}."),
    Code.SERVICE_UNKNOWN: MessageTemplate(
        "This is no Apprise URL of a service that kafkadash sends to.", "Enter one of {services:names}."
    ),
    Code.SERVICE_URL_WRONG: MessageTemplate(
        "Apprise cannot use this URL for {service}.", "Write it as the documentation of Apprise shows it."
    ),
    Code.SERVICE_OPTION: MessageTemplate("kafkadash does not pass on the option {option} to {service}.", "Remove it."),
    Code.SERVICE_UNCHECKED: MessageTemplate(
        "The URL for {service} could not be checked: Apprise failed or took too long.",
        "Retry. If it fails again, see the logs of the web server.",
    ),
    Code.SERVICE_SEVERAL: MessageTemplate(
        "The URL has several recipients of {service}.", "Enter one here, and add a receiver for each of the others."
    ),
    Code.KEY_WRONG: MessageTemplate(
        "This is no integration key.", "Copy the key of 32 characters of an Events API V2 integration."
    ),
    Code.MAIL_WRONG: MessageTemplate("{address} is no e-mail address.", "Enter addresses separated by commas."),
    Code.MAIL_NOT_SET: MessageTemplate(
        "kafkadash has no mail server.", "Set EMAIL_URL and EMAIL_FROM on the server first."
    ),
    Code.NAME_NEEDED: MessageTemplate("The name is missing.", "Enter a name, at most 64 characters."),
    Code.NAME_TAKEN: MessageTemplate("There is a receiver {name} already.", "Choose another name."),
    Code.NOTHING_SENT: MessageTemplate("The route sends nothing.", "Select findings, changes or both."),
    Code.FINDINGS_ONLY: MessageTemplate(
        "PagerDuty takes findings only.", "Send changes to a receiver of another kind."
    ),
    Code.CLUSTER_UNKNOWN: MessageTemplate("Unknown cluster.", "Choose one from the list."),
    Code.TARGET_GONE: MessageTemplate("This receiver was removed.", "Open the list of receivers."),
}
