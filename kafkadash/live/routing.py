"""The addresses of WebSockets."""

from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from channels.sessions import CookieMiddleware
from django.urls import path, re_path

from kafkadash.live.consumer import LiveConsumer, SameOrigin

websockets = SameOrigin(
    CookieMiddleware(
        URLRouter(
            [
                path("live/", LiveConsumer.as_asgi()),
                re_path("", WebsocketDenier.as_asgi()),
            ]
        )
    )
)
