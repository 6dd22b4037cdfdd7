"""The client for asyncio: the same methods, awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, AsyncIterator, Callable, Iterator

from .client import Zerofleet
from .session import Call, Session
from .transport import Resource


class AsyncZerofleet:
    """A client whose methods are those of `Zerofleet`: calls are awaited, and iterators are read with `async for`.

    Each request runs in a thread of the event loop's executor, so that it blocks no other task. A stream such as
    `jobs.follow` holds its thread until its next entry, also when its task is cancelled. The methods of a session and
    of its calls are awaited, too. Takes the arguments of `Zerofleet`.
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


class _Async:
    """An object whose methods are awaited."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._target, name))

    def __repr__(self) -> str:
        return repr(self._target).replace("<", "<Async", 1)


_WITH_METHODS = (Resource, Session, Call)


def _awaited(member: Any) -> Any:
    if isinstance(member, _WITH_METHODS):
        return _Async(member)
    if not callable(member):
        return member
    if str(inspect.signature(member).return_annotation).startswith("Iterator"):
        return lambda *args, **options: _iterate(lambda: member(*args, **options))

    async def run(*args: Any, **options: Any) -> Any:
        result = await asyncio.to_thread(member, *args, **options)
        return _Async(result) if isinstance(result, _WITH_METHODS) else result

    return run


_END = object()


class _Reader:
    """Reads an iterator in threads, one item at a time. A task that is cancelled meanwhile does not wait for the
    thread, which then closes the iterator."""

    def __init__(self, items: Any) -> None:
        self._items = items
        self._lock = threading.Lock()
        self._is_reading = False
        self._is_left = False

    def read(self) -> Any:
        with self._lock:
            self._is_reading = True
        try:
            return next(self._items, _END)
        finally:
            with self._lock:
                self._is_reading = False
                is_left = self._is_left
            if is_left:
                self._items.close()

    def leave(self) -> None:
        with self._lock:
            self._is_left = True
            is_reading = self._is_reading
        if not is_reading:
            self._items.close()


async def _iterate(begin: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
    reader = _Reader(begin())
    try:
        while True:
            item = await asyncio.to_thread(reader.read)
            if item is _END:
                return
            yield item
    finally:
        await asyncio.to_thread(reader.leave)
