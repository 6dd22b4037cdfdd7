import type { TraceHeaders } from '../../contracts/index.js';
import {
  BATCH,
  type RelayedStream,
  type RelayOptions,
  type StreamRelay,
  startStreamRelay,
} from './stream-relay.js';

/** Message to the queue: a worker has to begin attempt k of job j. */
export interface OutboxEntry {
  job_id: string;
  attempt: number;
  /** Worker that leads the job's ranks. */
  worker_id: string;
  /** Trace of the request that created the job; null when it has none. */
  trace: TraceHeaders | null;
}

/** Queue entries that the job store's commands write. */
const OUTBOX: RelayedStream<OutboxEntry> = {
  name: 'outbox',
  atOnce: BATCH,
  parse: (fields) => ({
    job_id: fields.get('job_id') ?? '',
    attempt: Number(fields.get('attempt')),
    worker_id: fields.get('worker_id') ?? '',
    trace: JSON.parse(fields.get('trace') ?? 'null'),
  }),
};

/**
 * Starts a relay of queue entries on its own connections. Redis may be away, also at the start. `deliver` may be called
 * twice for the same entry, so it must name the queue job `${job_id}-${attempt}`, which makes the second add a no-op.
 */
export function startOutboxRelay(options: RelayOptions<OutboxEntry>): StreamRelay {
  return startStreamRelay(OUTBOX, options);
}
