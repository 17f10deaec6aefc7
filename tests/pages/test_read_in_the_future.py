"""After the database's clock was set back, nobody can tell whether what was read before that is true still."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.observe.models import CollectorRun, Kind
from tests.factories import NOW, watched
from tests.pages.conftest import Page
from tests.pages.test_drill import topic

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["brokers/", "topics/", "topics/orders/", "racks/", "drill/"])
def test_page_of_metadata_from_the_future__is_not_green(get_page: Callable[[str], Page], path: str) -> None:
    cluster = watched("ahead")
    topic(cluster, "orders", [1, 2, 3])
    assert 'data-state="ok"' in get_page("/clusters/ahead/brokers/").html
    ahead = NOW + timedelta(hours=1)
    CollectorRun.objects.filter(cluster=cluster, kind=Kind.METADATA).update(succeeded_at=ahead)

    shown = get_page(f"/clusters/ahead/{path}")

    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]
