"""What Kafka told of a group goes through Spark and comes back: onto its chart, and onto the page of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import BrowserContext, expect

from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.agreement.test_consumer_groups import printed
from tests.committed import commit_offsets
from tests.e2e.moves import opened, was_never_reloaded
from tests.e2e.product import Product

GROUP, TOPIC = "e2e-archive", "e2e-archived"
# Spark starts, and its first batches compile what they run, which takes minutes on a machine that is busy otherwise.
ARRIVES_MS = 240_000


@pytest.fixture
def pipeline(product: Product) -> Iterator[None]:
    pytest.importorskip("pyspark", reason="the extra “pipeline” is not installed")
    with product.with_pipeline():
        yield


@pytest.mark.usefixtures("pipeline")
def test_lag_of_a_group__comes_back_from_spark_as_kafkas_own_tool_tells_it(
    alice: BrowserContext, product: Product
) -> None:
    bootstrap = product.playground.bootstrap
    load_topics(bootstrap, [LoadTopic(TOPIC, partitions=1, rf=1, fill_bytes=200_000)])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    commit_offsets(consumer, [TopicPartition(TOPIC, 0, 7)])
    consumer.close()
    told = printed(product.tools)[GROUP][TOPIC, 0].lag
    assert told

    listed = alice.new_page()
    listed.goto(f"/clusters/demo/groups/?q={GROUP}")
    expect(listed.locator("table.groups tbody tr")).to_contain_text(f"{told:,}")
    chart = opened(alice.new_page(), f"/clusters/demo/groups/{GROUP}/history/?range=hour")
    canvas = chart.locator("#group-history-canvas")
    expect(canvas).to_be_visible(timeout=ARRIVES_MS)
    drawn = json.loads(str(canvas.get_attribute("data-chart")))
    for line in drawn["series"]:
        assert {value for value in line["y"] if value is not None} == {told}, line["label"]
    expect(chart.locator("#group-history .chart-summary")).to_contain_text(f"p95: peak {told:,} record")
    assert was_never_reloaded(chart)

    page = opened(alice.new_page(), "/pipeline/")
    expect(page.locator("#compared-demo")).to_be_visible(timeout=ARRIVES_MS)
    expect(page.locator("#pipeline-verdicts")).to_contain_text("verdicts agree")
    expect(page.get_by_role("heading", level=1)).to_have_text("History is up to date", timeout=ARRIVES_MS)
    says = page.locator("#pipeline-beat .facts")
    expect(says).to_contain_text("idle", timeout=ARRIVES_MS)
    expect(says).to_contain_text("at the end of the last batch")
    expect(page.locator("#pipeline-beat .freshness")).to_contain_text("data")
    expect(page.locator("#pipeline-batches tbody tr").first).to_contain_text("rollup")
