import unittest
from unittest import mock

from zerofleet import WaitTimeout
from zerofleet import sweeps as sweeps_module

from .scripted import answer, scripted

SWEEP = {"id": "swp_1", "name": "rates", "state": "running", "ended_at": None}
ENDED = {**SWEEP, "state": "succeeded", "ended_at": "2026-11-21T09:00:00.000Z"}


class Sweeps(unittest.TestCase):
    def test_waits_until_the_end(self) -> None:
        client, seen = scripted(answer(SWEEP), answer(SWEEP), answer(ENDED))
        with mock.patch.object(sweeps_module, "POLL_SECONDS", 0):
            self.assertEqual(client.sweeps.wait("swp_1"), ENDED)
        self.assertEqual([request.url.path for request in seen], ["/v1/sweeps/swp_1"] * 3)

    def test_a_wait_has_a_timeout(self) -> None:
        client, _ = scripted(answer(SWEEP), answer(SWEEP))
        with self.assertRaisesRegex(WaitTimeout, "swp_1 is running"):
            client.sweeps.wait("swp_1", timeout=0)

    def test_a_name_is_looked_up(self) -> None:
        page = {"data": [{"id": "swp_1"}], "next_cursor": None}
        client, seen = scripted(answer(page), answer(ENDED))
        client.sweeps.get("rates")
        self.assertEqual(seen[-1].url.path, "/v1/sweeps/swp_1")
