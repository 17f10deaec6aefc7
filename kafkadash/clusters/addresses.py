"""Reading the addresses of brokers as people enter them."""

from __future__ import annotations

import ipaddress
import re

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
            bad.append(f"{item} is there twice.")
        else:
            good.append(item)
    if not good and not bad:
        bad.append("No address was given: at least one broker is needed, as host:port.")
    if bad:
        raise BadAddresses(bad)
    return good


def _fault(item: str) -> str:
    """What is wrong with one address; empty when nothing is."""
    if "://" in item:
        return f"{item} has a protocol in front: enter only host:port, the protocol is chosen separately."
    host, colon, port = item.rpartition(":")
    if item.startswith("[") and not item.endswith("]") and "]:" not in item:
        return f"{item} is not an address: write an IPv6 address as [address]:port."
    if item.count(":") > 1 and not item.startswith("["):
        return f"{item} looks like an IPv6 address: write it as [address]:port."
    if not colon or not host or item.endswith("]"):
        return f"{item} has no port: write it as host:port, for example {item}:9092."
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        return f"{item} has the port {port or '(none)'}: a port is a number from 1 to 65535."
    return _host_fault(item, host)


def _host_fault(item: str, host: str) -> str:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return f"{item} has no valid IPv6 address between its brackets."
        return ""
    if len(host) > 253 or not _NAME.fullmatch(host):
        return f"{item} has no valid host name in front of its port."
    if re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return f"{item} has no valid IPv4 address in front of its port."
    return ""
