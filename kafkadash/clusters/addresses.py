"""Reading the addresses of brokers as people enter them."""

from __future__ import annotations

import ipaddress
import re

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.domain.messages import message_text

_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


class BadAddresses(Exception):
    """``sentences`` has one for each address that cannot be used."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


def read_addresses(text: str) -> list[str]:
    """``host:port`` items, normalized, from text separated by commas or white space.

    Raises BadAddresses with a sentence for each bad one, or one sentence when there is none at all.
    """
    good: list[str] = []
    bad: list[str] = []
    for item in re.split(r"[,\s]+", text.strip()):
        if not item:
            continue
        fault = _fault(item)
        if fault:
            bad.append(fault)
        elif item in good:
            bad.append(message_text(ClusterErrorCode.ADDRESS_TWICE, item=item))
        else:
            good.append(item)
    if not good and not bad:
        bad.append(message_text(ClusterErrorCode.NO_ADDRESS))
    if bad:
        raise BadAddresses(bad)
    return good


def _fault(item: str) -> str:
    """What is wrong with one address; empty when nothing is."""
    if "://" in item:
        return message_text(ClusterErrorCode.PROTOCOL_IN_FRONT, item=item)
    host, colon, port = item.rpartition(":")
    if item.startswith("[") and not item.endswith("]") and "]:" not in item:
        return message_text(ClusterErrorCode.BRACKETS_WRONG, item=item)
    if item.count(":") > 1 and not item.startswith("["):
        return message_text(ClusterErrorCode.BRACKETS_MISSING, item=item)
    if not colon or not host or item.endswith("]"):
        return message_text(ClusterErrorCode.PORT_MISSING, item=item)
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        return message_text(ClusterErrorCode.PORT_WRONG, item=item, port=port or "(none)")
    return _host_fault(item, host)


def _host_fault(item: str, host: str) -> str:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return message_text(ClusterErrorCode.IPV6_WRONG, item=item)
        return ""
    if len(host) > 253 or not _NAME.fullmatch(host):
        return message_text(ClusterErrorCode.HOST_WRONG, item=item)
    if re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return message_text(ClusterErrorCode.IPV4_WRONG, item=item)
    return ""
