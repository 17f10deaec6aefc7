"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.jobs.errors import JobErrorCode as Code

_GRANT = "Grant it in Kafka."

JOB_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Work that a worker does for a page or a command
    Code.TOOK_TOO_LONG: MessageTemplate(
        "This took longer than the {seconds} s it may take.",
        "Ask for it again; if that goes on, see whether the brokers answer and the workers keep up.",
    ),
    Code.CRASHED: MessageTemplate(
        "kafkadash could not do this because of a fault of its own.",
        "The log of the worker says more; report what it says.",
    ),
    Code.WITHOUT_CLUSTER: MessageTemplate(
        "The cluster is not registered any more.", "Register it again, then ask for this once more."
    ),
    Code.NO_SUCH_TEST: MessageTemplate(
        "There is no such connection test, or it was so long ago that it is forgotten.",
        "Test the connection again under Settings.",
    ),
    Code.TEST_FOR_ADMINISTRATORS: MessageTemplate(
        "Only an administrator of that cluster may see this test.", "Ask one of them, or for the role admin on it."
    ),
    Code.ASKED_BY_ANOTHER: MessageTemplate(
        "This was asked for by {who}, so only that person or an administrator of the cluster may stop it.",
        "Ask one of them, or let it end.",
    ),
    Code.LOST_WORKER: MessageTemplate(
        "The worker that ran this stopped in the middle of it. Nothing further was written.", "Start it again."
    ),
    Code.KIND_UNKNOWN: MessageTemplate(
        "The worker knows no kind of job called {name!r}.",
        "Start the workers of the version that asked for it, then ask again.",
    ),
    # Clusters that do not answer, and what a connection test finds
    Code.NONE_GOT_THIS_FAR: MessageTemplate(
        "No bootstrap address got this far.", "Each says below why not; correct what it says."
    ),
    Code.LISTENERS_UNREACHABLE: MessageTemplate(
        "{reached} of {brokers} can be reached.",
        "Brokers give these addresses to every client; correct advertised.listeners there, or names and firewalls "
        "between the brokers and the machine that kafkadash's workers run on.",
    ),
    Code.LISTENER_UNREACHABLE: MessageTemplate(
        "Broker {broker} advertises {address}, which cannot be reached from here.", "{why}"
    ),
    Code.NO_VERSIONS: MessageTemplate(
        "No broker tells what it speaks.", "Each says below why not; test the connection again then."
    ),
    Code.LOGIN_UNANSWERED: MessageTemplate(
        "The login as {user} with {mechanism} was not answered.", "The next step says what was in the way."
    ),
    Code.NOT_ASKED: MessageTemplate(
        "Broker {broker} at {address} was not asked.", "Test the connection again when it is back."
    ),
    Code.TAKES_NO_PART: MessageTemplate(
        "Broker {broker} is fenced: it takes part in nothing.", "See why the controller fences it."
    ),
    Code.QUORUM_UNREAD: MessageTemplate("", "The controller quorum could not be read: {why}"),
    Code.RIGHTS_UNKNOWN: MessageTemplate("", "What this principal may do could not be asked: {why}"),
    Code.MISSING_ON_CLUSTER: MessageTemplate("{permission} on the cluster is missing: {costs}.", _GRANT),
    Code.MISSING_ON_TOPICS: MessageTemplate(
        "{permission} on {which} is missing: their configuration and throttled replicas stay unknown.", _GRANT
    ),
}
