"""The ASGI application: Django for HTTP, ``live`` for WebSockets."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

# Only now: consumers import models, which need the settings that the line above loaded.
from channels.routing import ProtocolTypeRouter  # noqa: E402

from kafkadash.body_limit import BodyLimit  # noqa: E402
from kafkadash.live.routing import websockets  # noqa: E402
from kafkadash.reassign.uploads import LARGEST_BYTES  # noqa: E402

# A form with the file has more in it than the file; what is too large by a little is told by the form itself.
taking_files = r"/changes/\d+/draft/what/|/clusters/[-\w]+/verify/"
limited = BodyLimit(http, [(taking_files, LARGEST_BYTES + 1_000_000)])
application = ProtocolTypeRouter({"http": limited, "websocket": websockets})

# What was loaded stays for good. Without this the collector looks through all of it again and again, in the middle of
# requests: a status board of 200 findings took half as long again at the 95th percentile.
gc.collect()
gc.freeze()
