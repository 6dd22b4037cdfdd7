"""Answers that are read while they arrive: bytes, and server-sent events."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from types import TracebackType
from typing import Iterable, Iterator, List, Optional, Type, TypeVar

import httpx

from .errors import ConnectionFailed

S = TypeVar("S", bound="ByteStream")


class ByteStream:
    """Bytes of an answer. Iterate over it in a `with` block, which closes the connection."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def chunks(self) -> Iterator[bytes]:
        """Raises ConnectionFailed when the connection breaks."""
        try:
            yield from self._response.iter_bytes()
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{self._response.request.url.path}: {error!r}") from error

    def __iter__(self) -> Iterator[bytes]:
        return self.chunks()

    def read(self) -> bytes:
        with self:
            return b"".join(self.chunks())

    def close(self) -> None:
        self._response.close()


@dataclass
class Event:
    """A server-sent event."""

    event: str
    data: str
    id: Optional[str]
    """None when the message has no id; an empty id resets the position."""
    retry_seconds: Optional[float]
    """Delay before a broken stream is reopened, when the server has sent one."""


class EventStream(ByteStream):
    """Server-sent events of an answer."""

    def events(self) -> Iterator[Event]:
        return parse_events(self.chunks())


def parse_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Events of a stream, as the HTML standard reads them; an unfinished event at the end is dropped."""
    data: List[str] = []
    name, identity, retry = "message", None, None
    for line in _lines(chunks):
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "":
            if data:
                yield Event(name, "\n".join(data), identity, retry)
            data, name, identity = [], "message", None
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            identity = value
        elif field == "retry" and value.isdigit():
            retry = int(value) / 1000


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines that end with LF, CR or CRLF. httpx' own lines also end at U+2028, which JSON may contain."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    for chunk in chunks:
        # A CR at the end may be the first half of CRLF.
        text = rest + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = text.split("\n")
        rest += held
        yield from lines
