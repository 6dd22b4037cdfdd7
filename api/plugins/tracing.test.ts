import t from 'tap';
import type { Job, JobEvent } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { smallSpec, startTestStack } from '../testing/stack.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

const logTo = (lines: Record<string, string>[]) =>
  createLogger({
    level: 'info',
    name: 'api',
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });

t.test("a request continues the client's trace in its log and in the job", async (t) => {
  const lines: Record<string, string>[] = [];
  const stack = await startTestStack({ log: logTo(lines) });
  t.teardown(() => stack.close());
  const dataset = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const create = async (headers: Record<string, string>) => {
    lines.length = 0;
    const payload = smallSpec(dataset.id);
    const reply = await stack.request({ method: 'POST', url: '/v1/jobs', payload, headers });
    t.equal(reply.statusCode, 201);
    const [line] = lines;
    t.equal(new Set(lines.map(({ trace_id, span_id }) => `${trace_id} ${span_id}`)).size, 1, 'all lines');
    const { id } = reply.json<Job>();
    return { id, line, trace: await stack.store.getTrace(id) };
  };

  const given = await create({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=b' });
  t.equal(given.line?.trace_id, TRACE);
  t.not(given.line?.span_id, SPAN);
  t.same(given.trace, { traceparent: `00-${TRACE}-${given.line?.span_id}-01`, tracestate: 'a=b' });
  const events = await stack.request({ url: `/v1/jobs/${given.id}/events` });
  t.match(events.json<{ data: JobEvent[] }>().data[0], { type: 'job.created', data: { trace_id: TRACE } });

  const MALFORMED: Record<string, string>[] = [
    {},
    { tracestate: 'a=b' },
    { traceparent: `00-${TRACE}-${SPAN}`, tracestate: 'a=b' },
    { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` },
    { traceparent: `ff-${TRACE}-${SPAN}-01` },
  ];
  for (const headers of MALFORMED) {
    const own = await create(headers);
    t.match(own.line?.trace_id, /^(?!0+$)[0-9a-f]{32}$/);
    t.not(own.line?.trace_id, TRACE, JSON.stringify(headers));
    t.match(own.trace, { traceparent: new RegExp(`^00-${own.line?.trace_id}-`), tracestate: null });
  }
});

t.test('refusals are logged with the trace as well', async (t) => {
  const lines: Record<string, string>[] = [];
  const stack = await startTestStack({ log: logTo(lines) });
  t.teardown(() => stack.close());
  const headers = { traceparent: `00-${TRACE}-${SPAN}-00`, authorization: 'Bearer unknown' };
  for (const url of ['/v1/jobs', '/nowhere', '/%']) {
    lines.length = 0;
    await stack.app.inject({ url, headers });
    t.not(lines.length, 0, url);
    t.ok(
      lines.every(({ trace_id }) => trace_id === TRACE),
      url,
    );
  }
});
