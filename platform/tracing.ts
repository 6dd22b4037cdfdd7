import { parseTrace, type TraceContext, type TraceHeaders } from '../contracts/index.js';
import { randomPiece } from './random.js';

function newId(bytes: number): string {
  const id = randomPiece(bytes).toString('hex');
  // All zeros is an invalid id.
  return /[^0]/.test(id) ? id : newId(bytes);
}

/** Creates a child span of the trace in the headers; of a new trace without one. */
export function continueTrace(headers: Partial<TraceHeaders> | null | undefined): TraceContext {
  const before = parseTrace(headers?.traceparent, headers?.tracestate);
  const spanId = newId(8);
  if (before !== null) return { ...before, span_id: spanId };
  return { trace_id: newId(16), span_id: spanId, sampled: false, tracestate: null };
}

/** Returns the trace fields of log lines. */
export function traceFields({ trace_id, span_id }: TraceContext): { trace_id: string; span_id: string } {
  return { trace_id, span_id };
}
