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
    pool: fields.get('pool') ?? '',
    // Entries of earlier versions have none.
    delay_ms: Number(fields.get('delay_ms') ?? 0),
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
