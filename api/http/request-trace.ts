import type { IncomingHttpHeaders } from 'node:http';
import type { TraceContext } from '../../contracts/index.js';
import { continueTrace } from '../../platform/tracing.js';

interface Traced {
  headers: IncomingHttpHeaders;
}

const traces = new WeakMap<Traced, TraceContext>();

/** Where a request is in its client's trace, or in one of its own; the same whenever it is asked. */
export function traceOf(request: Traced): TraceContext {
  let trace = traces.get(request);
  if (trace === undefined) {
    const { traceparent, tracestate } = request.headers;
    trace = continueTrace({ traceparent: text(traceparent), tracestate: text(tracestate) });
    traces.set(request, trace);
  }
  return trace;
}

/** Several headers of a name that is not known to Node may come as a list. */
function text(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join(',') : (value ?? '');
}
