import type { HeartbeatMessage } from '../../contracts/rank-protocol.js';

/** Returns a heartbeat of a rank that has just begun. */
export function heartbeat(fields: Partial<HeartbeatMessage> = {}): HeartbeatMessage {
  return {
    kind: 'heartbeat',
    step: 3,
    memory_bytes: 100,
    cpu_seconds: 0.1,
    sent_bytes: 0,
    gpu_busy: null,
    uptime_seconds: 0.1,
    ...fields,
  };
}
