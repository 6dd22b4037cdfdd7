import type { IncomingHttpHeaders } from 'node:http';
import type { TraceContext } from '../../contracts/index.js';
import { continueTrace } from '../../platform/tracing.js';

interface Traced {
  headers: IncomingHttpHeaders;
}

const traces = new WeakMap<Traced, TraceContext>();

/** Trace context of a request: a child of the client's trace or a new one; stable for one request. */
export function traceOf(request: Traced): TraceContext {
  let trace = traces.get(request);
  if (trace === undefined) {
    const { traceparent, tracestate } = request.headers;
    trace = continueTrace({ traceparent: text(traceparent), tracestate: text(tracestate) });
    traces.set(request, trace);
  }
  return trace;
}

/** Node may return repeated unknown headers as a list. */
function text(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join(',') : (value ?? '');
}
