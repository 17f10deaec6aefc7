"""Addresses as people enter them: one sentence for each that cannot be used."""

from __future__ import annotations

import pytest

from kafkadash.clusters.addresses import BadAddresses, read_addresses


def test_it_reads_commas_blanks_and_lines() -> None:
    text = " kafka-1.example.org:9092,kafka_2:9093\n10.0.0.1:1  [2001:db8::1]:65535,, "
    assert read_addresses(text) == ["kafka-1.example.org:9092", "kafka_2:9093", "10.0.0.1:1", "[2001:db8::1]:65535"]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("kafka-1", "has no port"),
        ("[2001:db8::1]", "has no port"),
        (":9092", "has no port"),
        ("kafka-1:", r"has the port \(none\)"),
        ("kafka-1:0", "from 1 to 65535"),
        ("kafka-1:65536", "from 1 to 65535"),
        ("kafka-1:９０９２", "from 1 to 65535"),
        ("kafka-1:http", "from 1 to 65535"),
        ("http://kafka-1:9092", "protocol in front"),
        ("2001:db8::1:9092", "IPv6"),
        ("[2001:db8::zz]:9092", "no valid IPv6"),
        ("10.0.0.256:9092", "no valid IPv4"),
        ("-kafka:9092", "no valid host name"),
        ("kafka..org:9092", "no valid host name"),
        ("user@kafka:9092", "no valid host name"),
    ],
)
def test_it_says_what_is_wrong(item: str, says: str) -> None:
    with pytest.raises(BadAddresses, match=says) as caught:
        read_addresses(f"good:9092,{item}")
    assert len(caught.value.sentences) == 1
    assert item in caught.value.sentences[0]


def test_it_has_a_sentence_for_each() -> None:
    with pytest.raises(BadAddresses) as caught:
        read_addresses("a,b:0,c:9092,c:9092")
    assert len(caught.value.sentences) == 3
    assert caught.value.sentences[-1] == "c:9092 is there twice. Take one of them out."


@pytest.mark.parametrize("text", ["", " , \n"])
def test_nothing_is_not_enough(text: str) -> None:
    with pytest.raises(BadAddresses, match="No address was given"):
        read_addresses(text)
