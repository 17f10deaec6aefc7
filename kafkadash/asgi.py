"""The ASGI application: Django for HTTP, ``live`` for WebSockets."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

# Only now: consumers import models, which need the settings that the line above loaded.
from typing import Any  # noqa: E402

from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import Error  # noqa: E402
from django.http import parse_cookie  # noqa: E402
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: E402

from kafkadash.core.middleware import BodyLimit  # noqa: E402
from kafkadash.core.thread_stacks import widen_thread_stacks  # noqa: E402
from kafkadash.live.consumer import user_of_session  # noqa: E402
from kafkadash.live.frames import in_thread  # noqa: E402
from kafkadash.live.routing import websockets  # noqa: E402
from kafkadash.planning.proposal import LARGEST_BYTES  # noqa: E402


async def is_signed_in(scope: dict[str, Any]) -> bool:
    """Say yes while the database is away: then the page says so, and knows what to do."""
    cookies = parse_cookie(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1"))
    try:
        return await in_thread(user_of_session)(cookies.get(settings.SESSION_COOKIE_NAME)) is not None
    except Error:
        return True


# A form with the file has more in it than the file; what is too large by a little is told by the form itself.
taking_files = r"/changes/\d+/draft/what/|/clusters/[-\w]+/verify/"
limited = BodyLimit(http, [(taking_files, LARGEST_BYTES + 1_000_000)], is_signed_in)
# A forwarded address counts only from a trusted proxy: any client can send the header.
application = ProxyHeadersMiddleware(
    ProtocolTypeRouter({"http": limited, "websocket": websockets}), trusted_hosts=settings.TRUSTED_PROXIES
)

widen_thread_stacks()  # views run in threads

# What was loaded stays for good. Without this the collector looks through all of it again and again, in the middle of
# requests: a status board of 200 findings took half as long again at the 95th percentile.
gc.collect()
gc.freeze()
