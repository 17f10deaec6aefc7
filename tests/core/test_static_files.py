"""Static files are sent compressed to browsers that accept it, pages never."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

CHARTS = "js/charts.js"


def fetch(client: Client, path: str, **headers: Any) -> Any:
    response = client.get(f"/static/{path}", headers=headers)
    return response, b"".join(response)


@pytest.mark.parametrize(("accepts", "compressed"), [("gzip, deflate, br", True), ("", False), ("gzip;q=0", False)])
def test_a_script__is_compressed_for_browsers_that_accept_gzip(client: Client, accepts: str, compressed: bool) -> None:
    source = (settings.BASE_DIR / "static" / CHARTS).read_bytes()
    response, body = fetch(client, CHARTS, accept_encoding=accepts)
    assert response.status_code == 200
    assert ("Content-Encoding" in response.headers) is compressed
    assert response["Vary"] == "Accept-Encoding"
    assert int(response["Content-Length"]) == len(body)
    assert (gzip.decompress(body) if compressed else body) == source
    assert (len(body) < 0.5 * len(source)) is compressed


def test_a_font__is_sent_as_it_is(client: Client) -> None:
    path = "vendor/inter/inter-latin-wght.woff2"
    response, body = fetch(client, path, accept_encoding="gzip")
    assert "Content-Encoding" not in response.headers
    assert body == (settings.BASE_DIR / "static" / path).read_bytes()


@pytest.mark.django_db
def test_a_page__is_never_compressed(client: Client) -> None:
    response = client.get("/login/", headers={"accept-encoding": "gzip"}, follow=True)
    assert response.status_code == 200
    assert "Content-Encoding" not in response.headers
