"""The client for asyncio: the same methods, awaited."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, AsyncIterator, Callable, Iterator

from .client import Zerofleet
from .transport import Resource


class AsyncZerofleet:
    """A client whose methods are those of `Zerofleet`: calls are awaited, and iterators are read with `async for`.

    Each request runs in a thread of the event loop's executor, so that it blocks no other task. Takes the arguments of
    `Zerofleet`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._client = Zerofleet(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._client, name))

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def __aenter__(self) -> AsyncZerofleet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._client.close)


class _AsyncResource:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._resource, name))


def _awaited(member: Any) -> Any:
    if isinstance(member, Resource):
        return _AsyncResource(member)
    if not callable(member):
        return member
    if str(inspect.signature(member).return_annotation).startswith("Iterator"):
        return lambda *args, **options: _iterate(lambda: member(*args, **options))
    return lambda *args, **options: asyncio.to_thread(member, *args, **options)


_END = object()


async def _iterate(begin: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
    items = await asyncio.to_thread(begin)
    try:
        while True:
            item = await asyncio.to_thread(next, items, _END)
            if item is _END:
                return
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            await asyncio.to_thread(close)
