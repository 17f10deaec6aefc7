"""An identity provider on loopback: issues signed access tokens to one client, or misbehaves."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, quote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER, AUDIENCE = "https://idp.example", "kafka"
CLIENT, CLIENT_SECRET = "watcher", "cl13nt s3cret:/+"

Misbehave = Callable[[BaseHTTPRequestHandler], object]


class IdentityProvider:
    """``misbehave``, if set, answers instead. ``requests`` are the forms of all requests so far."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.misbehave: Misbehave | None = None
        self.audience = AUDIENCE
        self.lifetime_s = 300.0
        self.requests: list[dict[str, list[str]]] = []
        self.issued: list[str] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}/oauth2/token"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def write_keys(self, path: Path) -> str:
        """Write the public key as JWKS; returns the address of the file."""
        public = self._key.public_key().public_numbers()
        numbers = {
            name: _encode(n.to_bytes((n.bit_length() + 7) // 8)) for name, n in (("n", public.n), ("e", public.e))
        }
        keys = [{"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", **numbers}]
        path.write_text(json.dumps({"keys": keys}), encoding="ascii")
        return path.as_uri()

    def issue(self) -> str:
        now = time.time()
        claims = {"sub": CLIENT, "iss": ISSUER, "aud": self.audience, "iat": now, "exp": now + self.lifetime_s}
        told = [json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "k1", "typ": "JWT"}, claims)]
        signed = ".".join(map(_encode, told))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        self.issued.append(f"{signed}.{_encode(signature)}")
        return self.issued[-1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self
        login = f"{quote_plus(CLIENT)}:{quote_plus(CLIENT_SECRET)}"
        expected = f"Basic {base64.b64encode(login.encode()).decode()}"

        class TokenHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.requests.append(parse_qs(body.decode()))
                if provider.misbehave is not None:
                    provider.misbehave(self)
                elif self.headers["Authorization"] != expected:
                    reply(self, 401, json.dumps({"error": "invalid_client", "error_description": "<b>no</b>"}).encode())
                else:
                    token = {"access_token": provider.issue(), "token_type": "Bearer"}
                    reply(self, 200, json.dumps({**token, "expires_in": provider.lifetime_s}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        return TokenHandler


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _encode(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")
