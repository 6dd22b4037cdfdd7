import type {
  CallPosition,
  EvaluationRecord,
  RankMessage,
  RetryPolicy,
  SaveRef,
  ShardRecord,
  StartMessage,
  TrainingPosition,
} from '../../contracts/rank-protocol.js';
import {
  checkpointDirectory,
  checkpointKey,
  REFERENCE_FILE,
  shardName,
} from '../../formats/checkpoint/layout.js';
import { ShardContents, type ShardedState } from '../../formats/checkpoint/shard-contents.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { retryTransient, toRankError } from '../shared/errors.js';
import type { RankTrainer, Snapshot } from '../shared/native/adapter.js';
import type { Reference } from './reference.js';
import { Shard } from './shard.js';

interface SnapshotWriterOptions {
  objects: ObjectStore;
  start: StartMessage;
  /** State that is trained. */
  state: Omit<ShardedState, 'world_size'>;
  /** This rank's share of the digest of the base; null without adapters. */
  base_digest_part: string | null;
  /** Reference of the objective, which rank 0 saves; null if it uses none. */
  reference: Reference | null;
  send(message: RankMessage): Promise<void>;
}

/** Records that a save has besides the state. */
export interface SaveNote extends EvaluationRecord {
  /** Number of the request that the save answers; 0 for none. */
  save_request: number;
  /** Null for a job that is no session. */
  calls: CallPosition | null;
  /** By default that of the generation. */
  nonce?: string;
}

/** Maximum number of snapshots in the core: one being written, and one taken meanwhile. */
const MAX_SNAPSHOTS = 2;

/**
 * Saves this rank's part of the state. Only taking the snapshot stalls the training; its bytes are written during the
 * next steps. Every save ends in one message, `shard` or `shard_failed`.
 */
export class SnapshotWriter {
  private held = 0;
  private tail: Promise<void> = Promise.resolve();
  /** Resolves when the oldest save in progress is stored. */
  private oldest: Promise<void> = Promise.resolve();

  constructor(private readonly options: SnapshotWriterOptions) {}

  /** True if every snapshot buffer is in use. */
  get busy(): boolean {
    return this.held >= MAX_SNAPSHOTS;
  }

  /**
   * Saves a snapshot; resolves when training may continue. If all buffers are in use it waits for the older one first.
   * @returns the seconds for which the training stalled
   */
  async save(trainer: RankTrainer, policy: RetryPolicy, note: SaveNote): Promise<number> {
    const started = performance.now();
    if (this.busy) await this.oldest;
    const snapshot = await trainer.snapshot();
    const stallSeconds = secondsSince(started);
    this.held++;
    const before = this.tail;
    this.oldest = before;
    this.tail = before.then(async () => {
      try {
        await this.options.send(await this.store(snapshot, policy, { ...note, stall_seconds: stallSeconds }));
      } finally {
        snapshot.release();
        this.held--;
      }
    });
    // Prevents an unhandled rejection; callers of `idle` receive the error.
    this.tail.catch(() => undefined);
    if (this.held === 1) this.oldest = this.tail;
    return stallSeconds;
  }

  /** Resolves when no save is in progress. */
  idle(): Promise<void> {
    return this.tail;
  }

  private async store(
    snapshot: Snapshot,
    policy: RetryPolicy,
    note: SaveNote & { stall_seconds: number },
  ): Promise<RankMessage> {
    const started = performance.now();
    const { start, base_digest_part, reference } = this.options;
    const { job_id, execution } = start;
    const { save_request, stall_seconds, nonce = start.nonce, ...records } = note;
    const { digest_part } = snapshot;
    const directory = checkpointDirectory({ step: snapshot.step, execution, nonce });
    const save: SaveRef = {
      directory,
      reference: reference?.record ?? null,
      ...positionOf(snapshot),
      ...records,
    };
    try {
      const shard = await this.put(snapshot, checkpointKey(job_id, save.directory), policy);
      const cost = { stall_seconds, write_seconds: secondsSince(started) };
      return { kind: 'shard', save, shard, digest_part, base_digest_part, save_request, cost };
    } catch (error) {
      return { kind: 'shard_failed', save, error: toRankError(error) };
    }
  }

  private async put(snapshot: Snapshot, directory: string, policy: RetryPolicy): Promise<ShardRecord> {
    const { objects, start, state, reference } = this.options;
    const { rank, world_size } = start;
    if (reference !== null && rank === 0)
      await retryTransient(() => objects.put(`${directory}/${REFERENCE_FILE}`, reference.bytes), policy);
    const contents = new ShardContents({ ...state, world_size });
    const shard = new Shard(shardName(rank, world_size), contents, rank, snapshot.slices);
    return retryTransient(() => shard.putTo(objects, directory), policy);
  }
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

function positionOf(snapshot: Snapshot): TrainingPosition {
  const { step, optimizer_steps, skipped_steps, loss_scaler } = snapshot;
  return { step, optimizer_steps, skipped_steps, loss_scaler };
}
