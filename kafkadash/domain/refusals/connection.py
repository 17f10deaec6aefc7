"""Connections: addresses, names and ports, certificates, stored secrets"""

from kafkadash.domain.refusals.entry import Entry

_UNDER_SETTINGS = "Correct it under Settings."

ADDRESS_MALFORMED = Entry(
    "address-malformed", "The bootstrap server {address!r} is not of the form host:port.", _UNDER_SETTINGS
)
PROTOCOL_UNKNOWN = Entry(
    "protocol-unknown", "The security protocol {protocol!r} is not known.", "Choose one of {known}."
)
MECHANISM_UNKNOWN = Entry(
    "mechanism-unknown", "The SASL mechanism {mechanism!r} is not known.", "Choose one of {known}."
)
CA_UNUSABLE = Entry(
    "ca-unusable",
    "The CA certificate is not a usable PEM text: {detail}.",
    "Give all of its text, from its first line, BEGIN CERTIFICATE, to its last.",
)
CERTIFICATE_WITHOUT_KEY = Entry(
    "certificate-without-key",
    "",
    "A client certificate needs both the certificate and its private key as PEM text.",
)
KEY_UNUSABLE = Entry(
    "key-unusable",
    "The private key is not an unencrypted PEM text.",
    "Give it without a passphrase; it is stored encrypted.",
)
PAIR_UNUSABLE = Entry(
    "pair-unusable",
    "The client certificate and its private key cannot be used together: {detail}.",
    "Give the key that the certificate was made for.",
)

NAME_SERVER_SLOW = Entry(
    "name-server-slow",
    "No answer came within {seconds:g} s: the name server or the network is slow.",
    "Test the connection again; if that goes on, see the name server of kafkadash's workers.",
)
NAME_UNRESOLVED = Entry(
    "name-unresolved",
    "The host name {host} cannot be resolved ({said}).",
    "Correct the name, or have the name server of kafkadash's workers know it.",
)
NO_TIME_TO_CONNECT = Entry("no-time-to-connect", "No time was left to try it.", "Test the connection again.")
NOTHING_ACCEPTED = Entry(
    "nothing-accepted",
    "Nothing at {address} accepted the connection within {seconds:.0f} s: a firewall, or a host that is down.",
    "Open the way to it from the machine of kafkadash's workers, or start it.",
)
CONNECTING_FAILED = Entry(
    "connecting-failed",
    "The connection to {address} failed: {said}.",
    "See that a broker listens there.",
)
TLS_SILENT = Entry(
    "tls-silent",
    "{address} did not answer the TLS handshake in time: is this a TLS listener?",
    "Give address and security of the same listener of Kafka.",
)
TLS_FAILED = Entry(
    "tls-failed",
    "{address}: {reason}.{shown}",
    "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
)
