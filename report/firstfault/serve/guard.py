"""Who may talk to the page: this machine, with the token, from the page itself. Wraps the application.

The token comes once in the address and then as a cookie. The name in `Host` must be one of the loopback interface, so
that no foreign name can be made to point here. Whatever changes something needs a header that a form of another site
cannot send.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "firstfault"
MARK = "x-firstfault"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Lets requests through that may pass, and puts the policies on every answer."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in _LOOPBACK and host not in _LOOPBACK:
            return PlainTextResponse("this page answers to 127.0.0.1 and localhost only\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin")
            if headers.get(MARK) is None or (origin is not None and origin != f"http://{host}"):
                return PlainTextResponse("only the page itself may do this\n", 403)
        if self._known(cookie_parser(headers.get("cookie", "")).get(COOKIE)) or self._known(_bearer(headers)):
            return None
        given = QueryParams(scope["query_string"]).get("token")
        if scope["path"] == "/" and self._known(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        return PlainTextResponse("open the address with the token that `firstfault serve` printed\n", 401)

    def _known(self, token: str | None) -> bool:
        return token is not None and hmac.compare_digest(token.encode(), self._token.encode())


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" else None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *_missing(there)]
        await send(message)

    return sending


def _missing(there: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    wanted = {"content-security-policy": PAGE_POLICY, **_HEADERS}
    return [(name.encode(), value.encode()) for name, value in wanted.items() if name.encode() not in there]
