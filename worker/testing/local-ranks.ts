/** Ranks of one world in this process, for tests of storing and loading. */
import type { Execution } from '../../contracts/execution.js';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import type {
  CheckpointLoad,
  RangeChecksum,
  RankMessage,
  ShardMessage,
  TrainingFile,
  TrainingPosition,
} from '../../contracts/rank-protocol.js';
import { sumDigests } from '../../formats/checkpoint/digest.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { type CompleteSave, SaveCollector } from '../agent/checkpoint/save-collector.js';
import { loadCheckpoint } from '../rank/load/load-checkpoint.js';
import { positionAfterLoad } from '../rank/position.js';
import { SnapshotWriter } from '../rank/snapshot-writer.js';
import { trainedState } from '../rank/trained-state.js';
import { trainerConfig } from '../rank/trainer-config.js';
import type { NativeCore, RankTrainer } from '../shared/native/adapter.js';
import { startMessage } from './start-message.js';

/** No retries, because the faults of a test are intended. */
const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };

/** Saves that answer no request, at steps without an evaluation. */
const NOTE = { save_request: 0, eval_losses: {}, early_stopping: null, calls: null };

interface LocalWorldOptions {
  core: NativeCore;
  spec: ResolvedJobSpec;
  world_size: number;
  /** Names of the job, its execution and its generation. */
  job_id?: string;
  execution?: Execution;
  nonce?: string;
  training_files?: TrainingFile[];
  /** Threads of each rank. */
  threads?: number;
}

interface LocalRank {
  trainer: RankTrainer;
  start: ReturnType<typeof startMessage>;
}

/** Result of a load by all ranks. */
interface LocalLoad {
  digest: string;
  at: TrainingPosition;
  ranges: RangeChecksum[];
}

export class LocalWorld {
  private readonly ranks: LocalRank[] = [];

  private constructor(private readonly options: LocalWorldOptions) {}

  /** Creates ranks and connects them. */
  static async start(options: LocalWorldOptions): Promise<LocalWorld> {
    const world = new LocalWorld(options);
    const { core, world_size, ...rest } = options;
    const relay = (key: string, value: Uint8Array) => {
      for (const { trainer } of world.ranks) trainer.deliver(key, value);
    };
    for (let rank = 0; rank < world_size; rank++) {
      const start = startMessage({ ...rest, rank, world_size, save: { periodic: ONCE, final: ONCE } });
      world.ranks.push({ start, trainer: core.createTrainer(trainerConfig(start), relay) });
    }
    await world.each(({ trainer }) => trainer.connect());
    return world;
  }

  get state() {
    const { core, spec } = this.options;
    return trainedState(core, trainerConfig(startMessage({ spec })), spec);
  }

  /** Message of rank 0 after the ranks connected. */
  get connected() {
    const { params, states, sharding } = this.state;
    const numericsFingerprint = this.options.core.fingerprint('cpu');
    return {
      kind: 'connected' as const,
      params: [...params],
      states: [...states],
      sharding,
      numerics_fingerprint: numericsFingerprint,
    };
  }

  async initialize(): Promise<void> {
    await this.each(({ trainer }) => trainer.initialize());
  }

  /** Prepares the snapshot buffers, as a rank does before its first step (worker/rank/run-rank.ts). */
  async prepareSnapshots(): Promise<void> {
    await this.each(async ({ trainer }) => trainer.prepareSnapshot());
  }

  async train(steps: number): Promise<void> {
    await this.each(async ({ trainer }) => {
      for (let done = 0; done < steps; done++) await trainer.step(0);
    });
  }

  digest(): string {
    return sumDigests(this.ranks.map(({ trainer }) => trainer.digestPart()));
  }

  /**
   * Stores the shards of all ranks and collects their reports.
   * @throws Error of the first rank that failed
   */
  async save(objects: ObjectStore): Promise<CompleteSave> {
    const reports = await this.each(async ({ trainer, start }) => {
      const sent: RankMessage[] = [];
      const send = async (message: RankMessage) => void sent.push(message);
      const { state } = this;
      const baseDigestPart = this.hasBase ? await trainer.baseDigestPart() : null;
      const writer = new SnapshotWriter({
        objects,
        start,
        state,
        base_digest_part: baseDigestPart,
        reference: null,
        send,
      });
      await writer.save(trainer, start.save.final, NOTE);
      await writer.idle();
      return sent.at(-1);
    });
    const failed = reports.find((message) => message?.kind === 'shard_failed');
    if (failed?.kind === 'shard_failed') throw Object.assign(new Error(failed.error.message), failed.error);
    return collect(reports.filter((message) => message?.kind === 'shard'));
  }

  /** Loads the parts of all ranks, each byte once, without verification. */
  async load(objects: ObjectStore, source: CheckpointLoad): Promise<LocalLoad> {
    const { state } = this;
    const { loss_scale } = this.options.spec.train;
    const parts = await this.each(async ({ trainer, start }) => {
      if (this.hasBase) await trainer.initializeBase(start.spec.train.seed);
      return loadCheckpoint({ objects, source, trainer, state, retry: ONCE });
    });
    const [first] = parts;
    if (!first) throw new Error('a world has at least one rank');
    const at = positionAfterLoad(first.manifest, source, loss_scale);
    await this.each(({ trainer }) => trainer.finishLoad({ ...at, restore: source.restore }));
    return { digest: this.digest(), at, ranges: parts.flatMap(({ ranges }) => ranges) };
  }

  /** Saves rank 0 alone; its bytes are written in the background. */
  async snapshotTo(objects: ObjectStore): Promise<{ stalled: number; stored: Promise<void> }> {
    const [rank] = this.ranks;
    if (!rank) throw new Error('a world has at least one rank');
    const { trainer, start } = rank;
    const send = async (message: RankMessage) => {
      if (message.kind === 'shard_failed') throw new Error(message.error.message);
    };
    const { state } = this;
    const writer = new SnapshotWriter({
      objects,
      start,
      state,
      base_digest_part: null,
      reference: null,
      send,
    });
    const stalled = await writer.save(trainer, start.save.periodic, NOTE);
    return { stalled, stored: writer.idle() };
  }

  private get hasBase(): boolean {
    return this.state.params.some(({ base }) => base);
  }

  get jobId(): string {
    return this.ranks[0]?.start.job_id ?? '';
  }

  async close(): Promise<void> {
    await this.each(({ trainer }) => trainer.close());
  }

  private each<T>(work: (rank: LocalRank) => Promise<T>): Promise<T[]> {
    return Promise.all(this.ranks.map(work));
  }
}

/** Collects the reports as the agent does. */
async function collect(reports: ShardMessage[]): Promise<CompleteSave> {
  const saves: CompleteSave[] = [];
  const collector = new SaveCollector({
    world_size: reports.length,
    commit: async (save) => void saves.push(save),
    onFailed: (_, error) => {
      throw error;
    },
  });
  for (const [rank, report] of reports.entries()) collector.shard(rank, report);
  await collector.settled();
  const [save] = saves;
  if (!save) throw new Error('the reports are no whole save');
  return save;
}
