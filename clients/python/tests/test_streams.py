import unittest
from typing import List, Tuple

import httpx

from zerofleet import WaitTimeout
from zerofleet.streams import parse_events

from .scripted import Broken, answer, message, scripted


def parsed(*chunks: bytes) -> List[Tuple[str, str]]:
    return [(event.event, event.data) for event in parse_events(chunks)]


class Parser(unittest.TestCase):
    def test_events_in_any_chunks(self) -> None:
        text = "event: a\r\ndata: ü\u2028x\r\ndata:y\r\n\r\n: heartbeat\n\ndata: z\r\rdata: lost".encode()
        expected = [("a", "ü\u2028x\ny"), ("message", "z")]
        self.assertEqual(parsed(text), expected)
        self.assertEqual(parsed(*(text[i : i + 1] for i in range(len(text)))), expected)

    def test_an_id_may_be_empty_or_absent(self) -> None:
        events = list(parse_events([b"id:\ndata: a\n\nid: 7\ndata: b\n\nretry: 50\ndata: c\n\n"]))
        self.assertEqual([event.id for event in events], ["", "7", None])
        self.assertEqual(events[2].retry_seconds, 0.05)


class Follow(unittest.TestCase):
    def test_a_broken_stream_continues_after_the_last_entry(self) -> None:
        first, second = ({"kind": "event", "seq": 1}, {"kind": "event", "seq": 2})
        end = message("end", {"state": "succeeded"})
        client, seen = scripted(
            httpx.Response(200, stream=Broken(message("event", first, "p1"), b"data: half")),
            httpx.ConnectError("refused"),
            httpx.Response(200, content=message("event", second, "p2") + end),
        )
        self.assertEqual(list(client.jobs.follow("job_1")), [first, second])
        self.assertNotIn("last-event-id", seen[0].headers)
        self.assertEqual(seen[2].headers["last-event-id"], "p1")
        self.assertEqual(seen[0].headers["accept"], "text/event-stream")

    def test_a_reset_begins_again(self) -> None:
        client, seen = scripted(
            httpx.Response(200, content=message("reset", {}, "")),
            httpx.Response(200, content=message("end", {"state": "failed"})),
        )
        self.assertEqual(list(client.jobs.follow("job_1", after="p9")), [])
        self.assertEqual(seen[0].headers["last-event-id"], "p9")
        self.assertNotIn("last-event-id", seen[1].headers)

    def test_logs_of_one_rank(self) -> None:
        logs = [{"kind": "log", "rank": rank, "line": str(rank)} for rank in (0, 1)]
        content = b"".join(message("log", log, "p") for log in logs) + message("end", {})
        client, seen = scripted(httpx.Response(200, content=content))
        self.assertEqual(list(client.jobs.follow_logs("job_1", rank=1)), [logs[1]])
        self.assertEqual(seen[0].url.query, b"kinds=log")


def job(state: str, version: int) -> httpx.Response:
    return answer({"id": "job_1", "state": state, "state_version": version})


class Wait(unittest.TestCase):
    def test_until_the_end(self) -> None:
        client, seen = scripted(job("running", 3), job("running", 3), job("failed", 9))
        self.assertEqual(client.jobs.wait("job_1")["state"], "failed")
        self.assertEqual(seen[1].url.query, b"wait=30s&since_version=3")

    def test_until_a_state(self) -> None:
        client, _ = scripted(job("queued", 1), job("running", 2))
        states: List[str] = []
        waited = client.jobs.wait(
            "job_1", states=["running"], on_job=lambda job: states.append(job["state"])
        )
        self.assertEqual((waited["state"], states), ("running", ["queued", "running"]))

    def test_until_the_timeout(self) -> None:
        client, _ = scripted(job("queued", 1))
        with self.assertRaises(WaitTimeout):
            client.jobs.wait("job_1", timeout=0)
