"""Requests and responses of an ASGI application, for routes without parameters. The server (uvicorn) speaks HTTP."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class DisconnectedError(Exception):
    """The client has gone before its request was complete."""


class TooLargeError(Exception):
    """A request has more bytes than allowed."""


class Request:
    """An HTTP request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @cached_property
    def headers(self) -> dict[str, str]:
        """By their names in lower case; of a repeated one the first."""
        pairs = reversed(self.scope["headers"])
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}

    async def body(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            TooLargeError: it has more bytes than `limit`, or its header says so.
            DisconnectedError: the client has gone.
        """
        if int(self.headers.get("content-length") or 0) > limit:
            raise TooLargeError
        chunks, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise TooLargeError
            chunks.append(chunk)
            more = message.get("more_body", False)
        return b"".join(chunks)


class Response:
    """An HTTP response with its whole body."""

    def __init__(self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.body = body
        self.kind = kind
        self.status = status
        self.headers = dict(headers or {})

    async def send(self, send: Send) -> None:
        """Sends it."""
        headers = [(b"content-type", self.kind.encode()), (b"content-length", str(len(self.body)).encode())]
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
