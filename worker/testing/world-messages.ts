/** Messages of a linked world's members, and a host that records the ranks it starts. */
import type { StartMessage } from '../../contracts/rank-protocol.js';
import type { SealedWorld } from '../../state/index.js';
import type { Rank, RankHost, RankListener } from '../agent/supervisor/rank.js';
import { RankProcess } from '../agent/supervisor/rank-process.js';
import type { WorldEnd } from '../agent/supervisor/world.js';
import { heartbeat } from './heartbeat.js';
import { scriptedHost } from './linked-world.js';

export const TOKEN = 'cc'.repeat(32);

export function lost(end: WorldEnd) {
  if (end.kind !== 'lost') throw new Error(`ended as ${end.kind}`);
  return end;
}

export function worldAt(port: number): SealedWorld {
  return {
    world_id: 'w',
    token: TOKEN,
    leader: { worker_id: 'leader', address: '127.0.0.1', port },
    members: [{ worker_id: 'a', ranks: [1] }],
    job_id: 'wait',
    execution: '1-a' as const,
  };
}

export function heartbeatOf(rank: number, step: unknown = 1) {
  return { kind: 'message', rank, message: { ...heartbeat(), step } };
}

export function shard(file: string) {
  const lossScaler = {
    scale: 1,
    iteration: 0,
    last_overflow_iteration: -1,
    hysteresis: 1,
    skipped_in_a_row: 0,
  };
  const at = { step: 1, optimizer_steps: 1, skipped_steps: 0 };
  return {
    kind: 'message',
    rank: 1,
    message: {
      kind: 'shard',
      save: { directory: 'd', ...at, loss_scaler: lossScaler },
      shard: { file, bytes: 1, data_begin: 1, sha256: '00'.repeat(32), crc32c: '00'.repeat(4) },
      digest_part: '00'.repeat(16),
      save_request: 0,
      cost: { stall_seconds: 0, write_seconds: 0 },
    },
  };
}

/** Wraps a host and records the ranks that it starts. */
export function recording(started: Rank[]): RankHost {
  const host = scriptedHost();
  return {
    host: host.host,
    start: (start: StartMessage, listener: RankListener) => {
      const rank = host.start(start, listener);
      started.push(rank);
      return rank;
    },
  };
}

export function isGone(rank: Rank): boolean {
  if (!(rank instanceof RankProcess) || rank.pid === undefined) return false;
  try {
    process.kill(rank.pid, 0);
    return false;
  } catch {
    return true;
  }
}
