"""A product of its own with one broker and its pipeline; never beside another Spark, for which memory would not do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import DESKTOP
from tests.e2e.product import Product, run_folder


@pytest.fixture(scope="package")
def product(
    kafka_runtime: None, browser_type_launch_args: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    pytest.importorskip("pyspark", reason="the extra “pipeline” is not installed")
    own = Product(run_folder("e2e-pipeline"), racks=("a",), pipeline=True)
    with own.running(tmp_path_factory.mktemp("product")) as product:
        yield product


@pytest.fixture(scope="package")
def browser_context_args(product: Product) -> dict[str, Any]:
    return {"base_url": product.url, "viewport": DESKTOP}
