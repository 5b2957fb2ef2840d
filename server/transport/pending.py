"""Answers owed to the client: a pipe ends right after its last request and waits for them."""

from __future__ import annotations

import anyio
import mcp_types as types

__all__ = ["PendingRequests"]

Message = (
    types.JSONRPCRequest | types.JSONRPCNotification | types.JSONRPCResponse | types.JSONRPCError
)


class PendingRequests:
    """The requests that wait for their answer."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._none = anyio.Event()
        self._none.set()

    def received(self, message: Message) -> None:
        """Notes what the client says: a request, or that it no longer waits for one."""
        match message:
            case types.JSONRPCRequest(method="subscriptions/listen"):
                pass  # a stream that lasts as long as the client does
            case types.JSONRPCRequest(id=request):
                self._ids.add(request)
                self._none = anyio.Event()
            case types.JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": request}
            ):
                self._settle(request)

    def sent(self, message: Message) -> None:
        """Notes what the client was told."""
        match message:
            case types.JSONRPCResponse(id=request) | types.JSONRPCError(id=request):
                self._settle(request)

    async def wait_for_none(self) -> None:
        """Waits until every request has been answered or cancelled."""
        await self._none.wait()

    def _settle(self, request: object) -> None:
        self._ids.discard(request)
        if not self._ids:
            self._none.set()
