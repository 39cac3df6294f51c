"""Access to the server: for whoever knows the token, by this server's own name; forms only from its own pages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import MultiMapping

from turnwise.doors import Door

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Policy of what pages may load: this server's own style sheet and script, and pictures that stand in the page itself."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewGuard:
    """Lets requests in or turns them away.

    The terminal prints an address with the token. Whoever opens it is given a cookie that scripts cannot read and other
    sites do not send, and is sent on to the same address without the token.
    """

    def __init__(self, door: Door) -> None:
        self.door = door
        self.cookie = f"turnwise-view-{door.port}"
        self._secret = secrets.token_bytes(32)

    @property
    def csrf(self) -> str:
        """Token that forms carry, which no other site can know."""
        return hmac.new(self._secret, b"form", hashlib.sha256).hexdigest()

    def address(self, path: str = "/") -> str:
        """An address with the token in it, for the terminal."""
        return f"http://{self.door.host}:{self.door.port}{path}?{urlencode({'token': self.door.token})}"

    def check_form(self, fields: MultiMapping[str | bytearray | bytes | web.FileField]) -> None:
        """Refuse a form that is not of one of our pages.

        Raises:
            HTTPForbidden: its token is another.
        """
        given = fields.get("csrf", "")
        if not isinstance(given, str) or not hmac.compare_digest(
            given.encode("utf-8", "replace"), self.csrf.encode()
        ):
            raise web.HTTPForbidden(text="This form is too old or not of this page. Load the page again.")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The outermost layer of the server."""
        try:
            response = await self._answer(request, handler)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(HEADERS)
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.query.get("token")
        token = given if given is not None else request.cookies.get(self.cookie, "")
        if refused := self.door.refuses(_headers(request, token)):
            status, why = refused
            if status == 401:
                why = "Open the address that `turnwise view` printed: it carries the token."
            return web.Response(status=status, text=why)
        if request.method == "POST" and not self._is_ours(request):
            return web.Response(status=403, text="Forms are accepted from this server's own pages only.")
        if given is None:
            return await handler(request)
        rest = {name: value for name, value in request.query.items() if name != "token"}
        sent_on = web.Response(
            status=303, headers={"Location": request.path + (f"?{urlencode(rest)}" if rest else "")}
        )
        sent_on.set_cookie(self.cookie, given, httponly=True, samesite="Strict", path="/")
        return sent_on

    def _is_ours(self, request: web.Request) -> bool:
        origin = request.headers.get("Origin")
        return origin is None or origin == f"http://{request.headers.get('Host', '')}"


def _headers(request: web.Request, token: str) -> Mapping[str, str]:
    """The headers that a door looks at, with the token of the cookie or the address."""
    known = request.headers.get("Authorization")
    return {"Host": request.headers.get("Host", ""), "Authorization": known or f"Bearer {token}"}
