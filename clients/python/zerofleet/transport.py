"""Requests with the API's key, retries and errors."""

from __future__ import annotations

import time
import uuid
from typing import Any, BinaryIO, Dict, Iterable, Iterator, Mapping, Optional, Union
from urllib.parse import quote

import httpx

from .errors import ApiError, ConnectionFailed
from .names import with_id
from .retry import RetryPolicy, is_idempotent, is_retryable, retry_after
from .streams import ByteStream, EventStream

Content = Union[str, bytes, BinaryIO, Iterable[bytes]]
"""Content of an upload: all of it, or a file or iterator that is read while it is sent."""

Parameters = Mapping[str, object]

# Reading a sample or a copy may take minutes.
TIMEOUT = httpx.Timeout(300.0, connect=10.0)
# A stream without a heartbeat, which the server sends every 15 seconds, is broken.
EVENT_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


def quoted(value: object) -> str:
    """A parameter of a path."""
    return quote(str(value), safe="")


class Transport:
    """Sends requests to one server. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        retry: RetryPolicy,
        http_transport: Optional[httpx.BaseTransport],
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._key = {"authorization": f"Bearer {api_key}"}
        self._retry = retry
        self._client = httpx.Client(timeout=TIMEOUT, transport=http_transport)

    def close(self) -> None:
        self._client.close()

    def __repr__(self) -> str:
        return self.base_url

    def get(self, path: str, query: Parameters) -> Any:
        return self.json("GET", path, query=query)

    def json(self, method: str, path: str, **options: Any) -> Any:
        return self._read(method, path, **options).json()

    def text(self, method: str, path: str, **options: Any) -> str:
        return self._read(method, path, **options).text

    def empty(self, method: str, path: str, **options: Any) -> None:
        self._read(method, path, **options)

    def open(self, method: str, path: str, **options: Any) -> ByteStream:
        """Bytes of an answer."""
        return ByteStream(self.request(method, path, **options))

    def events(self, method: str, path: str, **options: Any) -> EventStream:
        """Server-sent events of an answer."""
        accept = {**(options.pop("headers", None) or {}), "Accept": "text/event-stream"}
        return EventStream(
            self.request(method, path, headers=accept, timeout=EVENT_TIMEOUT, **options)
        )

    def pages(self, path: str, query: Parameters) -> Iterator[Any]:
        """All entries of a list, fetched page by page on demand. If a loss of Redis between two pages invalidates the
        position, the list continues from the beginning of the recovered entries."""
        path = with_id(path, self.get)
        begin = after = query.get("after")
        while True:
            try:
                page = self.json("GET", path, query={**query, "after": after})
            except ApiError as error:
                if after == begin or error.code != "position_lost":
                    raise
                after = None
                continue
            yield from page["data"]
            after = page["next_cursor"]
            if after is None:
                return

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Parameters] = None,
        headers: Optional[Parameters] = None,
        body: Optional[object] = None,
        content: Optional[Content] = None,
        content_type: Optional[str] = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> httpx.Response:
        """An answer whose body is still to be read. Raises ApiError when it is no success."""
        path = with_id(path, self.get)
        given = {**self._key, **_present(headers)}
        if content is not None and content_type is not None:
            given["content-type"] = content_type
        elif content is None and _takes_key(method, path):
            # The request may then be repeated. Content is sent once, as it may be a stream.
            given.setdefault("Idempotency-Key", str(uuid.uuid4()))
        request = self._client.build_request(
            method,
            self.base_url + path,
            params=_present(query) or None,
            headers=given,
            json=body,
            content=content,
            timeout=timeout,
        )
        return self.send(request, repeatable=content is None or isinstance(content, (bytes, str)))

    def send(self, request: httpx.Request, repeatable: bool = True) -> httpx.Response:
        """Sends a request to any server until an answer is final. It has the headers it was made with: the key must
        only be sent to the API."""
        tries = self._retry.tries if repeatable else 1
        described = f"{request.method} {request.url.path}"
        attempt = 1
        while True:
            pause = self._retry.pause_after(attempt)
            try:
                response = self._client.send(request, stream=True)
                if response.is_success:
                    return response
                if attempt == tries or not is_retryable(response):
                    raise _error(described, response)
                response.close()
                pause = max(pause, retry_after(response))
            except httpx.TransportError as error:
                if attempt == tries or not is_idempotent(request):
                    raise ConnectionFailed(f"{described}: no answer ({error!r})") from error
            time.sleep(pause)
            attempt += 1

    def outside(
        self, method: str, url: str, headers: Mapping[str, str], content: Optional[bytes] = None
    ) -> httpx.Response:
        """A request to a presigned URL, without the key."""
        return self.send(self._client.build_request(method, url, headers=headers, content=content))

    def _read(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self.request(method, path, **options)
        try:
            response.read()
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{method} {path}: the answer broke ({error!r})") from error
        finally:
            response.close()
        return response


class Resource:
    """Operations on resources of one kind."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._http!r}>"


def _takes_key(method: str, path: str) -> bool:
    """A repeated sample would be computed again, beside the first one."""
    return method in ("POST", "PATCH", "DELETE") and not path.endswith("/sample")


def _present(parameters: Optional[Parameters]) -> Dict[str, Any]:
    """Parameters without those that are None."""
    return {name: value for name, value in (parameters or {}).items() if value is not None}


def _error(described: str, response: httpx.Response) -> ApiError:
    try:
        response.read()
        body = response.json()
    except (httpx.TransportError, ValueError):
        body = None
    finally:
        response.close()
    known = isinstance(body, dict) and {"code", "title", "status", "detail", "errors"} <= body.keys()
    return ApiError(described, response.status_code, body if known else None)
