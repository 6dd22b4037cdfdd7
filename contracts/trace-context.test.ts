import fc from 'fast-check';
import t from 'tap';
import { parseTrace, traceHeaders } from './trace-context.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

t.test('headers are parsed, and written as version 00', async (t) => {
  const trace = parseTrace(`00-${TRACE}-${SPAN}-01`, 'rojo=00f067aa0ba902b7, congo=t61rcWkgMzE');
  t.same(trace, {
    trace_id: TRACE,
    span_id: SPAN,
    sampled: true,
    tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  });
  t.ok(trace);
  if (trace)
    t.same(traceHeaders(trace), {
      traceparent: `00-${TRACE}-${SPAN}-01`,
      tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
    });
  t.match(parseTrace(`00-${TRACE}-${SPAN}-00`), { sampled: false, tracestate: null });
  t.match(parseTrace(`00-${TRACE}-${SPAN}-ff`), { sampled: true }, 'unknown flags are ignored');
  t.match(parseTrace(`cc-${TRACE}-${SPAN}-01`), { trace_id: TRACE }, 'a later version');
  t.match(parseTrace(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be`), { span_id: SPAN });
});

t.test('malformed headers are ignored', async (t) => {
  const MALFORMED = [
    undefined,
    '',
    'x',
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01.`,
    `cc-${TRACE}-${SPAN}-01.what`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE.slice(1)}g-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
    // Two headers, joined as by Node.
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  ];
  for (const text of MALFORMED) t.equal(parseTrace(text, 'a=b'), null, String(text));
  fc.assert(fc.property(fc.string(), (text) => parseTrace(text) === null));
});

t.test('a malformed state is dropped, and the trace is kept', async (t) => {
  const state = (text: string) => parseTrace(`00-${TRACE}-${SPAN}-01`, text)?.tracestate;
  for (const good of ['a=b', 'tenant@vendor=x', 'a=b,c=d', '1t@v=x', `k=${'v'.repeat(256)}`, 'a= b'])
    t.equal(state(good), good);
  t.equal(state(' a=b ,, \tc=d,'), 'a=b,c=d', 'blanks and empty members');
  const BAD = [
    '',
    ',',
    'a',
    'a=',
    '=b',
    'A=b',
    'a=b=c',
    'a=b\u00e4',
    'a=b,a=c',
    '1t=x',
    'a\r\nset-cookie: x=y',
    `k=${'v'.repeat(257)}`,
    Array.from({ length: 33 }, (_, index) => `k${index}=v`).join(','),
    Array.from({ length: 3 }, (_, index) => `k${index}=${'v'.repeat(200)}`).join(','),
  ];
  for (const bad of BAD) t.equal(state(bad), null, bad);
});
