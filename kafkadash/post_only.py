"""Addresses that only a form is sent to: whoever opens one in a browser is led to the page on which the form stands.

A reload, a bookmark, a copied link and the way back from signing in all ask with GET for what was the answer to a form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

View = Callable[..., HttpResponseBase]


def post_only(page: str, *, same_arguments: bool = True) -> Callable[[View], View]:
    """Declare that only POST reaches the view; GET leads to the page of this name, whose URL has the same arguments
    or none.

    Outermost: the page asks for its own rights, so nobody learns more from the redirect than from the page.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def posted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method == "POST":
                return view(request, *args, **kwargs)
            return redirect(page, *args, **kwargs) if same_arguments else redirect(page)

        posted.page = page  # type: ignore[attr-defined]  # for tests that walk all URLs
        return require_http_methods(["GET", "HEAD", "POST"])(posted)

    return decorate
