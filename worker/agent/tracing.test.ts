/** Tests of a job's trace, from its record to its ranks. */
import t from 'tap';
import { parseTrace } from '../../contracts/index.js';
import { Fleet } from '../testing/fleet.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

t.test("the trace of the request is in the agent's log, in its ranks and in their output", async (t) => {
  const fleet = await Fleet.start({ ranks: { print: ['TRACEPARENT', 'TRACESTATE'] } });
  t.teardown(() => fleet.close());
  const lines: Record<string, string>[] = [];
  fleet.onLog = (line) => lines.push(JSON.parse(line));
  const trace = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=x' };
  const id = await fleet.submit({ steps: 5, ranks: 2 }, trace);
  t.same(await fleet.store.getTrace(id), trace);
  t.match((await fleet.events(id))[0], { type: 'job.created', data: { trace_id: TRACE } });
  await fleet.agent();
  await fleet.untilState(id, 'succeeded');
  const ofJob = lines.filter((line) => line.job_id === id);
  t.not(ofJob.length, 0);
  for (const line of ofJob) {
    t.equal(line.trace_id, TRACE, String(line.msg));
    t.match(line.span_id, /^[0-9a-f]{16}$/);
    t.not(line.span_id, SPAN, 'spans are their own');
  }
  const printed = lines.filter((line) => line.line?.startsWith('TRACEPARENT='));
  t.equal(printed.length, 2, 'both ranks');
  for (const line of printed) {
    const own = parseTrace(line.line?.split('=')[1]);
    t.match(own, { trace_id: TRACE, sampled: true });
    t.equal(line.span_id, own?.span_id, 'the line is logged with the span of its rank');
  }
  t.equal(new Set(printed.map((line) => line.span_id)).size, 2, 'each rank has its own span');
  t.equal(lines.filter((line) => line.line === 'TRACESTATE=vendor=x').length, 2);
});

t.test('a job that was created without a trace gets one', async (t) => {
  const fleet = await Fleet.start({ ranks: { print: ['TRACEPARENT', 'TRACESTATE'] } });
  t.teardown(() => fleet.close());
  const lines: Record<string, string>[] = [];
  fleet.onLog = (line) => lines.push(JSON.parse(line));
  const id = await fleet.submit({ steps: 2 });
  t.equal(await fleet.store.getTrace(id), null);
  t.same((await fleet.events(id))[0]?.data, {});
  await fleet.agent();
  await fleet.untilState(id, 'succeeded');
  const rank = lines.find((line) => line.line?.startsWith('TRACEPARENT='));
  t.ok(parseTrace(rank?.line?.split('=')[1]));
  t.equal(new Set(lines.filter((line) => line.job_id === id).map((line) => line.trace_id)).size, 1);
  t.ok(lines.some((line) => line.line === 'TRACESTATE=undefined'));
});
