"""A client whose server answers from a list."""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import httpx

from zerofleet import RetryPolicy, Zerofleet

Answer = Union[httpx.Response, httpx.TransportError, Callable[[httpx.Request], httpx.Response]]


def scripted(*answers: Answer) -> Tuple[Zerofleet, List[httpx.Request]]:
    """The client, and the requests that it has sent."""
    seen: List[httpx.Request] = []
    left = iter(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        answer = next(left)
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    retry = RetryPolicy(tries=3, first_seconds=0.0)
    transport = httpx.MockTransport(handle)
    return Zerofleet("http://api/", "key", retry=retry, http_transport=transport), seen


def problem(status: int, code: str, headers: Optional[Dict[str, str]] = None) -> httpx.Response:
    field = {"pointer": "/train/steps", "code": "too_small", "message": "at least 1"}
    body = {
        "type": f"urn:zerofleet:error:{code}",
        "title": code,
        "status": status,
        "detail": f"a {code}",
        "code": code,
        "request_id": "req-1",
        "retryable": False,
        "errors": [field],
    }
    return httpx.Response(status, json=body, headers=headers)


def answer(body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


class Broken(httpx.SyncByteStream):
    """Bytes after which the connection breaks."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        raise httpx.ReadError("connection reset")


def message(event: str, data: Any, identity: Optional[str] = None) -> bytes:
    named = "" if identity is None else f"id: {identity}\n"
    return f"retry: 0\nevent: {event}\n{named}data: {json.dumps(data)}\n\n".encode()
