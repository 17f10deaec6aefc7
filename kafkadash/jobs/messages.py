"""Texts of this app's codes (``errors``): the state, and advice."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.jobs.errors import JobErrorCode as Code

_GRANT = "Grant it in Kafka."

JOB_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Work that a worker does for a page or a command
    Code.TOOK_TOO_LONG: MessageTemplate(
        "The job exceeded its time limit of {seconds} s.",
        "Start it again. If it keeps failing, check that the brokers respond and the workers keep up.",
    ),
    Code.CRASHED: MessageTemplate(
        "The job failed because of an error in kafkadash.", "Report the error in the worker's log."
    ),
    Code.WITHOUT_CLUSTER: MessageTemplate(
        "The cluster is no longer registered.", "Register the cluster, then start the job again."
    ),
    Code.NO_SUCH_TEST: MessageTemplate(
        "This connection test does not exist or was deleted after its retention time.",
        "Test the connection again under Settings.",
    ),
    Code.TEST_FOR_ADMINISTRATORS: MessageTemplate(
        "Only administrators of that cluster may see this test.", "Ask an administrator for the role admin on it."
    ),
    Code.ASKED_BY_ANOTHER: MessageTemplate(
        "{who} started this job. Only that user and administrators of the cluster may stop it.",
        "Ask one of them, or wait until it ends.",
    ),
    Code.LOST_WORKER: MessageTemplate(
        "The worker stopped during this job. Nothing further was written.", "Start the job again."
    ),
    Code.KIND_UNKNOWN: MessageTemplate(
        "The worker does not know the job kind {name!r}.",
        "Start workers of the version that created the job, then start the job again.",
    ),
    # Clusters that do not answer, and results of a connection test
    Code.NONE_GOT_THIS_FAR: MessageTemplate(
        "No bootstrap address passed this step.", "Fix the errors listed below, then test again."
    ),
    Code.LISTENERS_UNREACHABLE: MessageTemplate(
        "{reached} of {brokers} can be reached at their advertised listeners.",
        "Correct advertised.listeners on the brokers, or DNS and firewalls between brokers and kafkadash's workers.",
    ),
    Code.LISTENER_UNREACHABLE: MessageTemplate(
        "Broker {broker} advertises {address}, which kafkadash's workers cannot reach.", "{why}"
    ),
    Code.NO_VERSIONS: MessageTemplate(
        "No broker returned its API versions.", "Fix the errors listed below, then test again."
    ),
    Code.LOGIN_UNANSWERED: MessageTemplate(
        "The login as {user} with {mechanism} was not answered.", "The next step shows the cause."
    ),
    Code.NOT_ASKED: MessageTemplate(
        "Broker {broker} at {address} was not tested.", "Test the connection again when it is online."
    ),
    Code.TAKES_NO_PART: MessageTemplate(
        "Broker {broker} is fenced and serves no partitions.", "Check why the controller fences it."
    ),
    Code.QUORUM_UNREAD: MessageTemplate("", "The controller quorum could not be read: {why}"),
    Code.ZOOKEEPER_UNREAD: MessageTemplate("", "ZooKeeper could not be read: {why}"),
    Code.MIGRATES: MessageTemplate(
        "The cluster migrates to KRaft: controller {controller} is a KRaft controller. kafkadash only reads ZooKeeper.",
        "Finish the migration, then remove the ZooKeeper address.",
    ),
    Code.RIGHTS_UNKNOWN: MessageTemplate("", "The permissions of the principal could not be read: {why}"),
    Code.MISSING_ON_CLUSTER: MessageTemplate("{permission} on the cluster is missing. Not available: {costs}.", _GRANT),
    Code.CHANGE_NOT_GRANTED: MessageTemplate("{operation} on {where} is missing. Refused: {changes}.", _GRANT),
    Code.MISSING_ON_TOPICS: MessageTemplate(
        "{permission} on {which} is missing. Not available: their configuration and throttled replicas.", _GRANT
    ),
}
