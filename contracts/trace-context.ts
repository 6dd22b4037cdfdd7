/**
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): propagates the trace from a request through the queue to
 * the ranks of a job. It is only propagated and logged here; trace collectors join their spans by it.
 */

/** A span of a trace. */
export interface TraceContext {
  /** 32 hex digits. */
  trace_id: string;
  /** 16 hex digits: the span of this process; parent of the work that it starts. */
  span_id: string;
  /** True if the caller may have recorded the trace. */
  sampled: boolean;
  /** Vendor-specific state, passed on unchanged; null for none. */
  tracestate: string | null;
}

/** The two headers as stored in records, queue entries and the environment of a rank. */
export interface TraceHeaders {
  traceparent: string;
  tracestate: string | null;
}

const VERSION_00_LENGTH = 55;
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;
const ALL_ZEROS = /^0+$/;
const SAMPLED = 1;

const MAX_STATE_LENGTH = 512;
const MAX_STATE_MEMBERS = 32;
const STATE_MEMBER =
  /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Parses the headers as the standard requires. A malformed `traceparent` counts as absent, and a malformed `tracestate`
 * is dropped alone. A later version is parsed as far as it is known.
 * @returns null if there is no trace to continue
 */
export function parseTrace(traceparent: string | undefined, tracestate?: string | null): TraceContext | null {
  const [, version = '', traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (version === '' || version === 'ff' || ALL_ZEROS.test(traceId) || ALL_ZEROS.test(spanId)) return null;
  if (version === '00' && traceparent?.length !== VERSION_00_LENGTH) return null;
  const sampled = (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
  return { trace_id: traceId, span_id: spanId, sampled, tracestate: validState(tracestate ?? '') };
}

/** Headers for work that is started from here. */
export function traceHeaders({ trace_id, span_id, sampled, tracestate }: TraceContext): TraceHeaders {
  return { traceparent: `00-${trace_id}-${span_id}-${sampled ? '01' : '00'}`, tracestate };
}

function validState(text: string): string | null {
  const members = text.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''));
  const given = members.filter((member) => member !== '');
  const keys = new Set(given.map((member) => member.slice(0, member.indexOf('='))));
  const isValid =
    text.length <= MAX_STATE_LENGTH &&
    given.length <= MAX_STATE_MEMBERS &&
    keys.size === given.length &&
    given.every((member) => STATE_MEMBER.test(member));
  return isValid && given.length > 0 ? given.join(',') : null;
}
