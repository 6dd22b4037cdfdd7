import type { OutboxEntry } from './outbox-port.js';
import {
  BATCH,
  type RelayedStream,
  type RelayOptions,
  type StreamRelay,
  startStreamRelay,
} from './stream-relay.js';

/** What the job store's commands put there for the queue. */
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
 * Starts a relay of queue entries on connections of its own, which outlast the absence of Redis. `deliver` may be called twice
 * for the same entry, so it must name the queue job `${job_id}-${attempt}`, which makes the second add a no-op.
 * @throws ZerofleetError `job_store_unavailable` when Redis is not there at the start
 */
export function startOutboxRelay(options: RelayOptions<OutboxEntry>): Promise<StreamRelay> {
  return startStreamRelay(OUTBOX, options);
}
