"""The ASGI application: Django for HTTP, ``live`` for WebSockets."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

# Only now: consumers import models, which need the settings that the line above loaded.
from channels.routing import ProtocolTypeRouter  # noqa: E402

from kafkadash.live.routing import websockets  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": websockets})

# What was loaded stays for good. Without this the collector looks through all of it again and again, in the middle of
# requests: a status board of 200 findings took half as long again at the 95th percentile.
gc.collect()
gc.freeze()
