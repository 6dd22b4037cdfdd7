import asyncio
import json
import unittest
from typing import List

import httpx

from zerofleet import AsyncZerofleet, CallFailed, Session, WaitTimeout

from .scripted import answer, problem, scripted

JOB = "job_01KAJX9B2M4P6R8T0V2X4Z6B8D"
ROW = {"tokens": [1, 2], "targets": [2, 3]}
STEP = {"step": 1, "grad_norm": 1.0, "lr": 0.1, "finite": True, "state_digest": "0" * 32}
RECEIPT = answer({"number": 1, "type": "optim_step", "state": "pending"})
PENDING = answer({"number": 1, "state": "pending"})


def page(*numbers: int) -> httpx.Response:
    return answer({"data": [{"number": number} for number in numbers], "next_cursor": None})


def done(result: object) -> httpx.Response:
    return answer({"number": 1, "state": "done", "result": result})


class Sessions(unittest.TestCase):
    def test_creates_a_job_and_numbers_its_calls(self) -> None:
        client, seen = scripted(
            answer({"presets": ["llama-tiny"], "data": [], "next_cursor": None}),
            answer({"id": JOB}),
            page(),
            RECEIPT,
            RECEIPT,
            PENDING,
            done(STEP),
        )
        session = client.session("llama-tiny", method="lora", idle_seconds=60, sequence_length=64)
        session.forward_backward([ROW], "ppo", clip_low=0.1)
        step = session.optim_step(lr=0.1)
        self.assertEqual(step.result(), STEP)
        self.assertEqual(step.result(), STEP)
        document = json.loads(seen[1].content)
        self.assertEqual(
            document["train"],
            {"sequence_length": 64, "adapter": {"type": "lora"}, "session": {"idle_seconds": 60}},
        )
        self.assertEqual(document["data"], {})
        self.assertEqual([request.url.path[-8:] for request in seen[3:5]], ["/calls/1", "/calls/2"])
        sent = json.loads(seen[3].content)
        loss = {"type": "ppo", "clip_low": 0.1}
        self.assertEqual(sent, {"type": "forward_backward", "loss": loss, "rows": [ROW]})
        self.assertEqual(len(seen), 7)

    def test_continues_after_the_last_call(self) -> None:
        client, seen = scripted(page(7), RECEIPT)
        client.open_session(JOB).finish()
        self.assertTrue(seen[-1].url.path.endswith("/calls/8"))

    def test_a_request_without_an_answer_is_repeated_under_its_number(self) -> None:
        client, seen = scripted(page(), httpx.ReadError("reset"), RECEIPT, RECEIPT)
        session = client.open_session(JOB)
        session.optim_step()
        session.save_state()
        paths = [request.url.path.rsplit("/", 1)[1] for request in seen[1:]]
        self.assertEqual(paths, ["1", "1", "2"])

    def test_waits_while_too_many_calls_have_no_result(self) -> None:
        full = problem(429, "too_many_calls")
        client, seen = scripted(page(64), full, full, full, done(STEP), RECEIPT)
        Session(client.jobs, JOB).optim_step()
        self.assertTrue(seen[4].url.path.endswith("/calls/1/result"))

    def test_a_call_that_could_not_be_done(self) -> None:
        error = {"code": "no_gradients", "message": "no pass"}
        client, _ = scripted(page(), RECEIPT, done({"error": error}))
        step = client.open_session(JOB).optim_step()
        with self.assertRaisesRegex(CallFailed, "call 1: no_gradients: no pass") as caught:
            step.result()
        self.assertEqual(caught.exception.code, "no_gradients")

    def test_methods_of_an_async_session_are_awaited(self) -> None:
        answers = iter([page(4), RECEIPT, done(STEP)])
        seen: List[str] = []
        loops: List[asyncio.AbstractEventLoop] = []

        def reply(request: httpx.Request) -> httpx.Response:
            # Only a loop that is not blocked runs it.
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loops[0]).result(60)
            seen.append(f"{request.method} {request.url.path}")
            return next(answers)

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            async with AsyncZerofleet("http://api", "key", http_transport=httpx.MockTransport(reply)) as client:
                session = await client.open_session(JOB)
                step = await session.optim_step(lr=0.1)
                self.assertEqual(await step.result(), STEP)
                self.assertEqual((session.job_id, step.number), (JOB, 5))
                self.assertEqual(repr(session), f"<AsyncSession {JOB}>")

        asyncio.run(run())
        self.assertEqual(seen[1], f"PUT /v1/jobs/{JOB}/calls/5")

    def test_a_wait_has_a_timeout(self) -> None:
        client, _ = scripted(page(), RECEIPT, PENDING)
        with self.assertRaisesRegex(WaitTimeout, "call 1 has no result"):
            client.open_session(JOB).optim_step().result(timeout=0)
