import asyncio
import json
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, Iterator, List
from unittest import mock

import httpx

from zerofleet import AsyncZerofleet, RetryPolicy, Zerofleet, ZerofleetError, announcement
from zerofleet import jobs as jobs_module
from zerofleet import progress as progress_module
from zerofleet.datasets import format_of_name

from .scripted import answer, message, scripted

JOB = {"id": "job_1", "name": "mine", "state": "running", "progress": {"step": 0, "total_steps": 20}}
DATASET = {"id": "ds_1", "num_preferences": 0, "num_labelled": 0}


def page(*records: Dict[str, Any]) -> httpx.Response:
    return answer({"data": list(records), "next_cursor": None})


class Names(unittest.TestCase):
    def test_a_name_is_looked_up_and_an_id_is_not(self) -> None:
        client, seen = scripted(page({"id": "job_1"}), answer(JOB), answer(JOB))
        client.jobs.get("my run/2")
        client.jobs.get("job_1")
        self.assertEqual(
            [str(request.url) for request in seen],
            [
                str(httpx.URL("http://api/v1/jobs", params={"name": "my run/2", "limit": 5})),
                "http://api/v1/jobs/job_1",
                "http://api/v1/jobs/job_1",
            ],
        )

    def test_a_name_is_one_part_of_a_path(self) -> None:
        client, seen = scripted(page({"id": "job/1"}), answer(JOB))
        client.jobs.get("x")
        self.assertEqual(seen[-1].url.raw_path, b"/v1/jobs/job%2F1")

    def test_a_job_stands_for_its_newest_checkpoint(self) -> None:
        checkpoints = page({"id": "ckpt_2", "step": 400}, {"id": "ckpt_1", "step": 200})
        for name, found in {"mine": "ckpt_2", "mine@200": "ckpt_1"}.items():
            client, seen = scripted(page({"id": "job_1"}), checkpoints, answer({}))
            client.checkpoints.get(name)
            self.assertEqual(seen[-1].url.path, f"/v1/checkpoints/{found}")
        client, _ = scripted(page({"id": "job_1"}), checkpoints)
        with self.assertRaisesRegex(ZerofleetError, "mine has no checkpoint after step 300"):
            client.checkpoints.get("mine@300")

    def test_names_of_nothing_and_of_several_are_refused(self) -> None:
        client, _ = scripted(page())
        with self.assertRaisesRegex(ZerofleetError, "no dataset is named 'x'"):
            client.datasets.get("x")
        client, _ = scripted(page({"id": "job_1"}, {"id": "job_2"}))
        with self.assertRaisesRegex(ZerofleetError, "give an id: job_1, job_2"):
            client.jobs.cancel("x")


    def test_a_name_is_looked_up_once(self) -> None:
        found, end = page({"id": "job_1"}), httpx.Response(200, content=message("end", {}))
        client, seen = scripted(found, httpx.Response(200, content=b": nothing\n\n"), end)
        with mock.patch.object(jobs_module, "REOPEN_SECONDS", 0.0):
            self.assertEqual(list(client.jobs.follow("mine")), [])
        self.assertEqual([request.url.path for request in seen], ["/v1/jobs", *2 * ["/v1/jobs/job_1/stream"]])
        first = answer({"data": [{"id": "ckpt_2"}], "next_cursor": "c"})
        client, seen = scripted(found, first, page({"id": "ckpt_1"}))
        self.assertEqual(len(list(client.jobs.list_checkpoints("mine"))), 2)
        self.assertEqual(seen[-1].url.path, "/v1/jobs/job_1/checkpoints")


class Files(unittest.TestCase):
    def test_name_and_format_follow_from_the_path(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "chats.jsonl.gz")
            path.write_bytes(b"1")
            found = announcement(path)
        self.assertEqual((found["name"], found["format"]), ("chats.jsonl.gz", "jsonl"))
        with self.assertRaisesRegex(ZerofleetError, "needs a name"):
            announcement(b"1")
        names = {"a.CSV": "jsonl", "a.bin": "tokens", "a.md": "text", "jsonl": "jsonl", "a.parquet.zst": "jsonl"}
        self.assertEqual({name: format_of_name(name) for name in names}, names)


class Training(unittest.TestCase):
    def body(self, *answers: Any, **arguments: Any) -> Dict[str, Any]:
        client, seen = scripted(*answers, answer(JOB))
        client.train(**arguments)
        body: Dict[str, Any] = json.loads(seen[-1].content)
        return body

    def test_a_job_in_one_call(self) -> None:
        presets = answer({"data": [], "presets": ["llama-tiny"], "next_cursor": None})
        body = self.body(answer(DATASET), presets, data="ds_1", method="lora", name="mine", seed=3)
        expected = {"epochs": 3, "seed": 3, "adapter": {"type": "lora"}}
        self.assertEqual(body["train"], expected)
        self.assertEqual((body["name"], body["model"]), ("mine", {"preset": "llama-tiny"}))
        pairs = answer({**DATASET, "num_preferences": 4})
        body = self.body(pairs, data="ds_1", model="hf://a/b", steps=5, fields={"labels": {"a": "b"}})
        self.assertEqual(body["train"], {"steps": 5, "objective": {"type": "dpo"}})
        self.assertEqual((body["model"], body["labels"]), ({"init_from": "hf://a/b"}, {"a": "b"}))

    def test_a_job_begins_with_another_one(self) -> None:
        checkpoint = answer({"id": "ckpt_1", "job_id": "job_1"})
        begun = answer({"spec": {"model": {"preset": "llama-tiny"}}})
        body = self.body(checkpoint, begun, data="hf://datasets/a/b/c.jsonl", model="ckpt_1")
        init_from = {"checkpoint": "ckpt_1", "restore": "weights"}
        self.assertEqual(body["model"], {"preset": "llama-tiny", "init_from": init_from})
        self.assertEqual(body["data"], {"uri": "hf://datasets/a/b/c.jsonl"})


class Watching(unittest.TestCase):
    def test_progress_is_shown_without_tqdm(self) -> None:
        metrics = [{"kind": "metric", "step": step, "loss": None if step == 20 else 2.5} for step in range(1, 21)]
        events = b"".join(message("metric", metric, str(metric["step"])) for metric in metrics)
        done = {**JOB, "state": "succeeded"}
        began = message("event", {"kind": "event", "type": "job.state"}, "0")
        stream = httpx.Response(200, content=began + events + message("end", {}))
        client, _ = scripted(answer(JOB), stream, answer(JOB), answer(done))
        lines: List[str] = []
        with mock.patch.object(progress_module, "_tqdm", None), mock.patch.object(
            progress_module.Progress, "_print", lambda self, text: lines.append(text)
        ):
            self.assertEqual(client.jobs.watch("job_1")["state"], "succeeded")
        self.assertEqual(lines[:3], ["running", "step 1/20  loss 2.5000", "step 2/20  loss 2.5000"])
        self.assertEqual(lines[-1], "step 20/20  loss NaN")
        self.assertEqual(len(lines), 12)

    def test_metrics_are_a_frame_where_pandas_is(self) -> None:
        rows = [{"kind": "metric", "step": 1, "loss": 3.0}, {"kind": "metric", "step": 1, "loss": 2.0}]
        client, _ = scripted(page(*rows))
        if find_spec("pandas") is None:
            with self.assertRaisesRegex(ZerofleetError, "needs pandas"):
                client.jobs.metrics_frame("job_1")
            return
        frame = client.jobs.metrics_frame("job_1")
        self.assertEqual((list(frame.index), list(frame["loss"])), ([1], [2.0]))


class Asynchronous(unittest.TestCase):
    def test_calls_are_awaited_and_lists_are_iterated(self) -> None:
        answers = iter([answer(JOB), page({"id": "job_1"}, {"id": "job_2"})])
        transport = httpx.MockTransport(lambda request: next(answers))

        async def run() -> List[str]:
            async with AsyncZerofleet("http://api", "key", http_transport=transport) as client:
                job = await client.jobs.get("job_1")
                return [job["id"], *[one["id"] async for one in client.jobs.list()], repr(client)]

        expected = ["job_1", "job_1", "job_2", "AsyncZerofleet(http://api)"]
        self.assertEqual(asyncio.run(run()), expected)

    def test_a_cancelled_task_does_not_wait_for_its_stream(self) -> None:
        closed = threading.Event()
        goes_on = threading.Event()

        class Silent(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                yield message("event", {"kind": "event"}, "p1")
                goes_on.wait()
                yield message("event", {"kind": "event"}, "p2")

            def close(self) -> None:
                closed.set()

        transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Silent()))

        async def run() -> None:
            async with AsyncZerofleet("http://api", "key", http_transport=transport) as client:
                seen = asyncio.Event()

                async def follow() -> None:
                    async for _ in client.jobs.follow("job_1"):
                        seen.set()

                task = asyncio.create_task(follow())
                await seen.wait()
                # The stream is being read.
                await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertFalse(closed.is_set())
                goes_on.set()
                self.assertTrue(await asyncio.to_thread(closed.wait, 60))

        asyncio.run(run())

    def test_repr_names_the_server(self) -> None:
        client = Zerofleet("http://api", "secret", retry=RetryPolicy(tries=1))
        self.assertEqual(repr(client), "Zerofleet(http://api)")
        self.assertEqual(repr(client.jobs), "<Jobs of http://api>")


class StepAnswers(unittest.TestCase):
    def test_answers_of_checkpoints_are_read_from_events(self) -> None:
        answered = {"step": 5, "checkpoint_id": "ckpt_1", "answers": ["x"]}
        failed = {"step": 9, "checkpoint_id": "ckpt_2", "error": "prompt_too_long", "message": "too long"}
        events = [
            {"type": "job.created", "data": {}},
            {"type": "samples.answered", "data": answered},
            {"type": "samples.failed", "data": failed},
        ]
        client, seen = scripted(page(*events))
        self.assertEqual(
            client.jobs.samples("job_1"),
            [
                {"step": 5, "checkpoint_id": "ckpt_1", "answers": ["x"], "error": None},
                {"step": 9, "checkpoint_id": "ckpt_2", "answers": [], "error": "too long"},
            ],
        )
        self.assertEqual(seen[0].url.path, "/v1/jobs/job_1/events")


class Package(unittest.TestCase):
    def test_a_wheel_is_built_without_other_packages(self) -> None:
        root = Path(__file__).resolve().parents[1]
        with tempfile.TemporaryDirectory() as folder:
            for build in ("build_wheel", "build_editable", "build_sdist"):
                code = f"import build_backend; print(build_backend.{build}({folder!r}))"
                done = subprocess.run(
                    [sys.executable, "-S", "-c", code], cwd=root, check=True, capture_output=True, text=True
                )
                name = done.stdout.strip()
                self.assertTrue(Path(folder, name).is_file(), name)
                first = Path(folder, name).read_bytes()
                if build == "build_wheel":
                    names = zipfile.ZipFile(Path(folder, name)).namelist()
                    self.assertIn("zerofleet/py.typed", names)
                    self.assertIn("zerofleet/operations.py", names)
                if build == "build_sdist":
                    with tarfile.open(Path(folder, name)) as archive:
                        names = [member.name.partition("/")[2] for member in archive]
                    for needed in ("PKG-INFO", "pyproject.toml", "build_backend.py", "zerofleet/py.typed"):
                        self.assertIn(needed, names)
                subprocess.run([sys.executable, "-S", "-c", code], cwd=root, check=True, capture_output=True)
                self.assertEqual(Path(folder, name).read_bytes(), first, "the same sources, the same bytes")
