"""Rights, and facts that are too old"""

from kafkadash.domain.refusals.entry import Entry

READ_ONLY = Entry(
    "read-only",
    "{cluster} is read-only in kafkadash: changes are neither proposed nor approved nor started on it.",
    "An administrator can allow them under Settings.",
)
CLUSTER_REMOVED = Entry(
    "cluster-removed", "{cluster} was removed from kafkadash.", "Register it again, then propose it there."
)
ITS_CLUSTER_REMOVED = Entry(
    "its-cluster-removed",
    "Its cluster was removed from kafkadash.",
    "Register it again, then propose it there.",
)
NEEDS_ROLE = Entry(
    "needs-role", "On {cluster}, this needs the role {roles}.", "Ask an administrator of the cluster for it."
)
NEEDS_ROLE_NOW = Entry(
    "needs-role-now",
    "{doing} on {cluster} you need the role {roles}, which you do not have now.",
    "Ask an administrator of the cluster for it.",
)
ROLE_COUNTS_LATER = Entry(
    "role-counts-later",
    "Your role on {cluster} was given lately: nothing is approved or started by it before {at}.",
    "Ask somebody whose role counts already.",
)
POLICY_NEEDS_ROLE = Entry(
    "policy-needs-role",
    "To change the policy of {cluster} you need the role {roles} on it.",
    "Ask an administrator of the cluster for it.",
)
NO_SUCH_CHANGE = Entry(
    "no-such-change",
    "There is no change #{number} on a cluster that you may view.",
    "Look at the list of changes, or ask an administrator for the role viewer on its cluster.",
)
FACTS_NOT_READ = Entry(
    "facts-not-read",
    "The {facts} of {cluster} have not been read yet, so nobody can tell whether this fits.",
    "Wait for the first refresh; the overview of the cluster says if it fails.",
)
FACTS_TOO_OLD = Entry(
    "facts-too-old",
    "What is known about {facts} of {cluster} is {age} old, so nobody can tell whether this still fits.",
    "Wait for the next refresh.",
)
CHECKS_NOT_MADE = Entry(
    "checks-not-made",
    "{doing} needs checks on data younger than {limit}; it was not checked yet.",
    "Wait for the next refresh.",
)
CHECKS_TOO_OLD = Entry(
    "checks-too-old",
    "{doing} needs checks on data younger than {limit}; the last are on data {age} old.",
    "Wait for the next refresh; the overview of the cluster says if it fails.",
)
NO_SUCH_CLUSTER = Entry(
    "no-such-cluster",
    "There is no cluster {slug} that you may view.",
    "Look at the list of clusters, or ask an administrator for the role viewer on it.",
)
NEEDS_ROLE_SOMEWHERE = Entry(
    "needs-role-somewhere", "This needs the role {roles} on a cluster.", "Ask an administrator for it."
)
NEEDS_ROLE_EVERYWHERE = Entry(
    "needs-role-everywhere", "This needs the role {roles} on all clusters.", "Ask an administrator for it."
)
