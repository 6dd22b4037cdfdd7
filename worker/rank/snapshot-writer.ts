import type {
  ParamRecord,
  RankMessage,
  RetryPolicy,
  SaveRef,
  ShardRecord,
  StartMessage,
  TrainingPosition,
} from '../../contracts/rank-protocol.js';
import { checkpointDirectory, checkpointKey, shardName } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { isRetryable, toRankError } from '../errors.js';
import type { RankTrainer, Snapshot } from '../native/adapter.js';
import { retry } from '../retry.js';
import { Shard } from './shard.js';

export interface SnapshotWriterOptions {
  objects: ObjectStore;
  start: StartMessage;
  /** In canonical order. */
  params: readonly ParamRecord[];
  send(message: RankMessage): Promise<void>;
}

/** The core holds this many snapshots at once: one that travels, and one that was taken meanwhile. */
const MAX_SNAPSHOTS = 2;

/**
 * Saves this rank's part of the state. Taking the snapshot is the only stall of the training; its bytes travel while the next steps
 * are done. Every save ends in one message, `shard` or `shard_failed`.
 */
export class SnapshotWriter {
  private held = 0;
  private tail: Promise<void> = Promise.resolve();

  constructor(private readonly options: SnapshotWriterOptions) {}

  /** Whether every snapshot buffer is in use. */
  get busy(): boolean {
    return this.held >= MAX_SNAPSHOTS;
  }

  /** Resolves when training may go on. With all buffers in use it waits for the older one first. */
  async save(trainer: RankTrainer, policy: RetryPolicy): Promise<void> {
    const asked_at = performance.now();
    if (this.busy) await this.tail;
    const snapshot = await trainer.snapshot();
    const stall_seconds = secondsSince(asked_at);
    this.held++;
    this.tail = this.tail.then(async () => {
      try {
        await this.options.send(await this.store(snapshot, policy, stall_seconds));
      } finally {
        snapshot.release();
        this.held--;
      }
    });
    // Who waits for the tail sees the error; without this line it would end the process before.
    this.tail.catch(() => undefined);
  }

  /** Resolves when nothing travels any more. */
  idle(): Promise<void> {
    return this.tail;
  }

  private async store(snapshot: Snapshot, policy: RetryPolicy, stall_seconds: number): Promise<RankMessage> {
    const began_at = performance.now();
    const { job_id, epoch, nonce } = this.options.start;
    const { digest_part } = snapshot;
    const directory = checkpointDirectory({ step: snapshot.step, epoch, nonce });
    const save: SaveRef = { directory, ...positionOf(snapshot) };
    try {
      const shard = await this.put(snapshot, checkpointKey(job_id, save.directory), policy);
      const cost = { stall_seconds, write_seconds: secondsSince(began_at) };
      return { kind: 'shard', save, shard, digest_part, cost };
    } catch (error) {
      return { kind: 'shard_failed', save, error: toRankError(error) };
    }
  }

  private put(snapshot: Snapshot, directory: string, policy: RetryPolicy): Promise<ShardRecord> {
    const { objects, start, params } = this.options;
    const file = shardName(start.rank, start.world_size);
    const shard = new Shard(file, params, snapshot.slices);
    return retry(() => shard.putTo(objects, directory), policy, { retryable: isRetryable });
  }
}

function secondsSince(ms: number): number {
  return (performance.now() - ms) / 1000;
}

function positionOf(snapshot: Snapshot): TrainingPosition {
  const { step, optimizer_steps, skipped_steps, loss_scaler, lr_override, loss_scale_override } = snapshot;
  return { step, optimizer_steps, skipped_steps, loss_scaler, lr_override, loss_scale_override };
}
