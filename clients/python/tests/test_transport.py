import unittest
from unittest import mock

import httpx

from zerofleet import ApiError, ConnectionFailed
from zerofleet.retry import RetryPolicy

from .scripted import answer, problem, scripted


class Requests(unittest.TestCase):
    def test_a_request_has_key_query_and_body(self) -> None:
        client, seen = scripted(answer({"data": [], "next_cursor": None}), answer({"id": "job_1"}))
        self.assertEqual(list(client.jobs.list(state=["queued", "paused"], limit=5)), [])
        client.jobs.resume("job_1", {"ranks": 2})
        self.assertEqual(str(seen[0].url), "http://api/v1/jobs?limit=5&state=queued&state=paused")
        self.assertEqual(seen[0].headers["authorization"], "Bearer key")
        self.assertNotIn("idempotency-key", seen[0].headers)
        self.assertEqual(seen[1].url.raw_path, b"/v1/jobs/job_1/resume")
        self.assertEqual(httpx.Response(200, content=seen[1].content).json(), {"ranks": 2})

    def test_a_dry_run_is_a_request_of_its_own(self) -> None:
        client, seen = scripted(answer({}))
        client.jobs.dry_run({"model": {"preset": "llama-tiny"}, "data": {"dataset": "ds_1"}})
        self.assertEqual(seen[0].url.query.lower(), b"dry_run=true")


class Errors(unittest.TestCase):
    def test_a_problem_is_an_exception_with_its_fields(self) -> None:
        client, _ = scripted(problem(422, "invalid_job"))
        with self.assertRaises(ApiError) as caught:
            client.jobs.get("job_1")
        error = caught.exception
        self.assertEqual((error.status, error.code, error.message), (422, "invalid_job", "a invalid_job"))
        self.assertEqual(error.request_id, "req-1")
        self.assertEqual([field["pointer"] for field in error.details], ["/train/steps"])
        self.assertIn("/train/steps: at least 1", str(error))

    def test_another_body_is_no_problem(self) -> None:
        client, _ = scripted(httpx.Response(404, html="<p>proxy</p>"), httpx.Response(404, json=[1]))
        for _ in range(2):
            with self.assertRaises(ApiError) as caught:
                client.get_me()
            self.assertEqual((caught.exception.code, caught.exception.details), (None, []))


class Retries(unittest.TestCase):
    def test_a_request_is_repeated_with_the_same_key(self) -> None:
        client, seen = scripted(
            problem(503, "busy"), httpx.ConnectError("refused"), answer({"id": "job_1"})
        )
        self.assertEqual(client.jobs.pause("job_1")["id"], "job_1")
        keys = [request.headers["idempotency-key"] for request in seen]
        self.assertEqual((len(keys), len(set(keys))), (3, 1))

    def test_a_given_key_is_sent(self) -> None:
        client, seen = scripted(answer({}))
        client.jobs.fork("job_1", {}, idempotency_key="mine")
        self.assertEqual(seen[0].headers.get_list("idempotency-key"), ["mine"])

    def test_a_conflict_is_repeated_with_retry_after_only(self) -> None:
        client, seen = scripted(
            problem(409, "in_use", {"retry-after": "0"}), problem(409, "conflict"), answer({})
        )
        with self.assertRaises(ApiError):
            client.jobs.cancel("job_1")
        self.assertEqual(len(seen), 2)

    def test_attempts_end(self) -> None:
        client, seen = scripted(*[httpx.ConnectError("refused")] * 3)
        with self.assertRaises(ConnectionFailed):
            client.get_me()
        self.assertEqual(len(seen), 3)

    def test_a_sample_is_not_computed_again_beside_the_first_one(self) -> None:
        client, seen = scripted(
            problem(503, "model_loading", {"retry-after": "0"}), httpx.ReadTimeout("slow"), httpx.Response(504)
        )
        with self.assertRaises(ConnectionFailed):
            client.checkpoints.sample("ckpt_1", {"prompt": "a"})
        with self.assertRaises(ApiError):
            client.models.sample("mdl_1", {"prompt": "a"})
        self.assertEqual(len(seen), 3, "only the refusal that asks for it was sent again")
        self.assertNotIn("idempotency-key", seen[0].headers)

    def test_content_is_sent_once(self) -> None:
        client, seen = scripted(problem(503, "busy"))
        with self.assertRaises(ApiError):
            client.models.create(iter([b"tar"]), name="m")
        self.assertEqual((len(seen), seen[0].content), (1, b"tar"))
        self.assertNotIn("idempotency-key", seen[0].headers)

    def test_a_part_is_repeated_unless_it_is_a_stream(self) -> None:
        client, seen = scripted(problem(503, "busy"), httpx.Response(204), problem(503, "busy"))
        client.uploads.put_part("upl_1", 1, b"part")
        self.assertEqual([request.content for request in seen], [b"part", b"part"])
        with self.assertRaises(ApiError):
            client.uploads.put_part("upl_1", 1, iter([b"part"]))
        self.assertEqual(len(seen), 3)

    def test_a_pause_is_at_least_what_the_server_asks_for(self) -> None:
        client, _ = scripted(problem(429, "rate_limited", {"retry-after": "7"}), answer({}))
        with mock.patch("time.sleep") as sleep:
            client.get_me()
        sleep.assert_called_once_with(7.0)

    def test_pauses_double_up_to_the_maximum(self) -> None:
        policy = RetryPolicy(first_seconds=1.0, max_seconds=4.0)
        for attempt, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 4.0)):
            pause = policy.pause_after(attempt)
            self.assertTrue(longest / 2 <= pause <= longest, (attempt, pause))


class Pages(unittest.TestCase):
    def test_pages_follow_the_cursor(self) -> None:
        client, seen = scripted(
            answer({"data": [{"id": 1}], "next_cursor": "a"}),
            answer({"data": [{"id": 2}], "next_cursor": None}),
        )
        self.assertEqual(list(client.checkpoints.list()), [{"id": 1}, {"id": 2}])
        self.assertEqual(seen[1].url.query, b"after=a")

    def test_a_lost_position_begins_again(self) -> None:
        client, seen = scripted(
            answer({"data": [1], "next_cursor": "a"}),
            problem(410, "position_lost"),
            answer({"data": [1], "next_cursor": None}),
        )
        self.assertEqual(list(client.jobs.list_events("job_1")), [1, 1])
        self.assertEqual(seen[2].url.query, b"")

    def test_a_lost_beginning_is_an_error(self) -> None:
        client, _ = scripted(problem(410, "position_lost"))
        with self.assertRaises(ApiError):
            list(client.jobs.list_events("job_1", after="lost"))
