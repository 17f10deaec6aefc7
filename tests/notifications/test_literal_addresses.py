"""Addresses that a person types are checked at once by the rule of delivery; names are resolved only when sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from unittest import mock

import pytest

from kafkadash.notifications import guarded_http
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.guarded_http import DeliveryFailed, check_literal_host

pytestmark = pytest.mark.domain
LOOPBACK, OFFICE = "127.0.0.0/8", "10.20.0.0/16"


def refusal(host: str, networks: Sequence[str] = (), scheme: str = "https") -> tuple[str, object] | None:
    """Return the code and the address that are refused. Fails where a name server would be asked."""
    with mock.patch.object(guarded_http, "resolve_host", side_effect=AssertionError):
        try:
            check_literal_host(f"{scheme}://{host}:8443/hook", [ipaddress.ip_network(text) for text in networks])
        except DeliveryFailed as refused:
            return refused.code, ipaddress.ip_address(refused.message.params["address"])
    return None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("169.254.169.254", "169.254.169.254"),
        ("[::1]", "::1"),
        ("[::ffff:10.20.0.9]", "::ffff:10.20.0.9"),
        ("[fe80::1%eth0]", "fe80::1"),
        ("[fec0::1]", "fec0::1"),
        ("[64:ff9b:1::a9fe:a9fe]", "64:ff9b:1::a9fe:a9fe"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0xA9.0xFE.0xA9FE", "169.254.169.254"),
        ("127.1", "127.0.0.1"),
        ("0", "0.0.0.0"),  # noqa: S104
        ("LOCALHOST", "127.0.0.1"),
    ],
)
def test_host_that_is_neither_public_nor_allowed__is_refused(host: str, address: str) -> None:
    assert refusal(host) == (DeliveryErrorCode.ADDRESS_FORBIDDEN, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("host", "networks", "scheme"),
    [
        ("8.8.8.8", (), "https"),
        ("[2606:4700::1111]", (), "https"),
        ("127.1", (LOOPBACK,), "http"),
        ("localhost", (LOOPBACK,), "http"),
        ("[::ffff:10.20.0.9]", (OFFICE,), "http"),
        ("hooks.example.com", (), "https"),
        ("127.0.0.1.example.com", (), "https"),
    ],
)
def test_public_and_allowed_addresses_and_names__are_taken(host: str, networks: Sequence[str], scheme: str) -> None:
    assert refusal(host, networks, scheme) is None


def test_public_address_without_tls__is_refused() -> None:
    public = ipaddress.ip_address("8.8.8.8")
    assert refusal("8.8.8.8", (OFFICE,), "http") == (DeliveryErrorCode.ADDRESS_FORBIDDEN, public)
