import base64
import hashlib
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Optional

import httpx

from zerofleet import ConnectionFailed, ContentMismatch, announcement

from .scripted import Broken, answer, scripted

CONTENT = bytes(range(10))


def upload(**changes: Any) -> Dict[str, Any]:
    record = {"id": "upl_1", "bytes": 10, "part_bytes": 4, "num_parts": 3, "received_parts": []}
    return {**record, "dataset_id": None, **changes}


def target(url: str) -> httpx.Response:
    return answer({"parts": [{"part_number": 1, "bytes": 4, "url": url, "headers": {"x-sum": "1"}}]})


class Uploads(unittest.TestCase):
    def test_an_announcement_has_size_and_digest(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a")
            path.write_bytes(CONTENT)
            digest = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
            expected = {"name": "n", "format": "jsonl", "bytes": 10, "digest": digest}
            self.assertEqual(announcement(path, name="n", format="jsonl"), expected)

    def test_missing_parts_are_sent_without_the_key_to_other_servers(self) -> None:
        client, seen = scripted(
            answer(upload(received_parts=[2])),
            target("https://bucket/part?sign=a%2Fb"),
            httpx.Response(200),
            target("/v1/uploads/upl_1/parts/3"),
            httpx.Response(204),
            answer({"id": "ds_1"}),
        )
        self.assertEqual(client.uploads.resume("upl_1", CONTENT)["id"], "ds_1")
        digest = base64.b64encode(hashlib.sha256(CONTENT[:4]).digest()).decode()
        self.assertEqual(json.loads(seen[1].content), {"part_numbers": [1], "sha256": [digest]})
        self.assertEqual(str(seen[2].url), "https://bucket/part?sign=a%2Fb")
        self.assertEqual((seen[2].content, seen[2].headers["x-sum"]), (CONTENT[:4], "1"))
        self.assertNotIn("authorization", seen[2].headers)
        self.assertEqual((seen[4].url.path, seen[4].content), ("/v1/uploads/upl_1/parts/3", CONTENT[8:]))
        self.assertEqual(seen[4].headers["content-type"], "application/octet-stream")

    def test_a_completed_upload_sends_nothing(self) -> None:
        client, seen = scripted(answer(upload(dataset_id="ds_1")), answer({"id": "ds_1"}))
        client.uploads.resume("upl_1", CONTENT)
        self.assertEqual(len(seen), 2)

    def test_another_content_is_refused(self) -> None:
        client, _ = scripted(answer(upload()))
        with self.assertRaises(ContentMismatch):
            client.uploads.resume("upl_1", b"short")


def listing(name: str = "a/weights", content: bytes = CONTENT, url: Optional[str] = None) -> httpx.Response:
    digest = hashlib.sha256(content).hexdigest()
    path = url or "/v1/checkpoints/ckpt_1/file?name=a%2Fweights"
    return answer({"files": [{"name": name, "bytes": 10, "sha256": digest, "url": path}]})


class Downloads(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_broken_download_continues(self) -> None:
        client, seen = scripted(
            listing(),
            httpx.Response(200, stream=Broken(CONTENT[:3])),
            httpx.Response(206, content=CONTENT[3:]),
        )
        [path] = client.checkpoints.download("ckpt_1", self.folder)
        self.assertEqual((path, path.read_bytes()), (self.folder / "a" / "weights", CONTENT))
        self.assertEqual(seen[1].url.query, b"name=a%2Fweights")
        self.assertEqual(seen[2].headers["range"], "bytes=3-")
        self.assertEqual([file.name for file in path.parent.iterdir()], ["weights"])

    def test_the_next_call_continues_and_keeps_what_is_complete(self) -> None:
        client, seen = scripted(
            listing(url="https://bucket/x"),
            httpx.Response(200, stream=Broken(CONTENT[:3])),
            *[httpx.ConnectError("refused")] * 3,
            listing(url="https://bucket/x"),
            httpx.Response(206, content=CONTENT[3:]),
            listing(),
        )
        with self.assertRaises(ConnectionFailed):
            client.checkpoints.download("ckpt_1", self.folder)
        for _ in range(2):
            client.checkpoints.download("ckpt_1", self.folder)
        self.assertEqual((self.folder / "a" / "weights").read_bytes(), CONTENT)
        self.assertEqual((len(seen), seen[6].headers["range"]), (8, "bytes=3-"))
        self.assertNotIn("authorization", seen[6].headers)

    def test_other_content_is_refused(self) -> None:
        client, _ = scripted(listing(), httpx.Response(200, content=b"x" * 10))
        with self.assertRaises(ContentMismatch):
            client.checkpoints.download("ckpt_1", self.folder)
        self.assertEqual(list((self.folder / "a").iterdir()), [])

    def test_names_stay_in_the_folder(self) -> None:
        for name in ("../x", "/x", ""):
            client, _ = scripted(listing(name))
            with self.assertRaises(ContentMismatch):
                client.checkpoints.download("ckpt_1", self.folder)
