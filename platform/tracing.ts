import { parseTrace, type TraceContext, type TraceHeaders } from '../contracts/index.js';
import { randomPiece } from './random.js';

function newId(bytes: number): string {
  const id = randomPiece(bytes).toString('hex');
  // All zeros is no id.
  return /[^0]/.test(id) ? id : newId(bytes);
}

/** The next place of the trace that headers name; of a new trace when they name none. */
export function continueTrace(headers: Partial<TraceHeaders> | null | undefined): TraceContext {
  const before = parseTrace(headers?.traceparent, headers?.tracestate);
  const span_id = newId(8);
  if (before !== null) return { ...before, span_id };
  return { trace_id: newId(16), span_id, sampled: false, tracestate: null };
}

/** What log lines have of it. */
export function traceFields({ trace_id, span_id }: TraceContext): { trace_id: string; span_id: string } {
  return { trace_id, span_id };
}
