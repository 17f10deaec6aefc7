"""An answer to whoever asks for what does not exist, or what he may not know of."""

from __future__ import annotations

from django.http import Http404


class MissingObject(Http404):
    """Nothing is there under this name or number; ``str()`` is a sentence for the page that says so."""
