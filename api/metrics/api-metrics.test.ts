import t from 'tap';
import { ApiMetrics } from './api-metrics.js';

const POOL = {
  name: 'a',
  workers: 2,
  slots: 8,
  used_slots: 3,
  running: 1,
  waiting: 4,
  groups: [],
  machines: null,
};

t.test('requests by operation and status, open streams', async (t) => {
  const metrics = new ApiMetrics();
  metrics.answered('getJob', 200, 0.004);
  metrics.answered('getJob', 200, 0.2);
  metrics.answered('getJob', 404, 0.001);
  metrics.streamOpened();
  metrics.streamOpened();
  metrics.streamEnded();
  const { type, text } = await metrics.scrape([]);
  t.match(type, /^text\/plain/);
  t.match(text, 'zerofleet_api_requests_total{operation="getJob",status="200"} 2');
  t.match(text, 'zerofleet_api_requests_total{operation="getJob",status="404"} 1');
  t.match(text, 'zerofleet_api_request_duration_seconds_bucket{le="0.005",operation="getJob"} 2');
  t.match(text, 'zerofleet_api_request_duration_seconds_sum{operation="getJob"} 0.205');
  t.match(text, 'zerofleet_api_request_duration_seconds_count{operation="getJob"} 3');
  t.match(text, 'zerofleet_api_open_streams 1');
});

t.test('the pools at the time of the scrape; a removed pool is no longer reported', async (t) => {
  const metrics = new ApiMetrics();
  const { text: before } = await metrics.scrape([POOL, { ...POOL, name: 'b' }]);
  for (const [name, value] of [
    ['workers', 2],
    ['slots', 8],
    ['used_slots', 3],
    ['running_jobs', 1],
    ['waiting_jobs', 4],
  ]) {
    t.match(before, `zerofleet_pool_${name}{pool="a"} ${value}`);
  }
  const { text: after } = await metrics.scrape([{ ...POOL, waiting: 0 }]);
  t.match(after, 'zerofleet_pool_waiting_jobs{pool="a"} 0');
  t.notMatch(after, 'pool="b"');
});
