import t from 'tap';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

t.test('metrics of requests and streams', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const scrape = async () => {
    const reply = await fetch(`${base}/metrics`, { headers });
    t.equal(reply.status, 200);
    t.match(reply.headers.get('content-type'), /^text\/plain/);
    return reply.text();
  };
  const { id } = await stack.createJob();
  await (await fetch(`${base}/v1/nothing`, { headers })).text();

  const gone = new AbortController();
  const stream = await fetch(`${base}/v1/jobs/${id}/stream`, { headers, signal: gone.signal });
  const reader = stream.body?.getReader();
  await reader?.read();
  const during = await scrape();
  t.match(during, 'zerofleet_api_requests_total{operation="createJob",status="201"} 1');
  t.match(during, 'zerofleet_api_requests_total{operation="none",status="404"} 1');
  t.match(during, 'zerofleet_api_open_streams 1');
  t.notMatch(during, 'operation="streamJob"', 'the duration of a stream is not a latency');
  t.match(during, 'zerofleet_pool_waiting_jobs{pool="default"} 1');

  gone.abort();
  await reader?.read().catch(() => undefined);
  // The server notices the closed connection a moment later.
  for (let text = during; !text.includes('zerofleet_api_open_streams 0'); text = await scrape());
  t.pass('a client that disconnects ends its stream');

  // A refused request opens no stream.
  await (await fetch(`${base}/v1/jobs/${id}/stream`)).text();
  const after = await scrape();
  t.match(after, 'zerofleet_api_requests_total{operation="streamJob",status="401"} 1');
  t.match(after, 'zerofleet_api_open_streams 0');
});
