import { isDeepStrictEqual } from 'node:util';
import { ZerofleetError } from '../../../contracts/index.js';
import type {
  RankError,
  SaveCost,
  SaveRef,
  ShardFailedMessage,
  ShardMessage,
  ShardRecord,
} from '../../../contracts/rank-protocol.js';

/** Save of which every rank stored its shard. */
export interface CompleteSave extends SaveRef {
  /** In order of rank. */
  shards: ShardRecord[];
  digest_parts: string[];
  /** Null without adapters. */
  base_digest_parts: string[] | null;
  /** Number of the save request that it answers; 0 for none. */
  save_request: number;
  /** Maximum over the ranks of the stall and of the write time. */
  cost: SaveCost;
}

interface SaveCollectorOptions {
  world_size: number;
  /** Commits a save. Calls are sequential, in the order in which the saves became complete. */
  commit(save: CompleteSave): Promise<void>;
  /** Called once for a save that cannot be committed: a shard could not be stored, or `commit` rejected. */
  onFailed(save: SaveRef, error: RankError | Error): void;
}

/** Collects the reports of a generation's ranks into complete saves. */
export class SaveCollector {
  private readonly open = new Map<string, Map<number, ShardMessage>>();
  private readonly failed = new Set<string>();
  private tail: Promise<void> = Promise.resolve();

  constructor(private readonly options: SaveCollectorOptions) {}

  shard(rank: number, message: ShardMessage): void {
    const { directory } = message.save;
    if (this.failed.has(directory)) return;
    const reports = this.open.get(directory) ?? new Map<number, ShardMessage>();
    this.open.set(directory, reports);
    const other = reports.values().next().value;
    if (other && !isDeepStrictEqual(other.save, message.save)) {
      const error = new ZerofleetError(
        'checkpoint_incomplete',
        `ranks saved ${JSON.stringify(other.save)} and ${JSON.stringify(message.save)} as one checkpoint`,
      );
      this.fail(message.save, error);
      return;
    }
    reports.set(rank, message);
    if (reports.size === this.options.world_size) this.complete(message.save, reports);
  }

  shardFailed(message: ShardFailedMessage): void {
    this.fail(message.save, message.error);
  }

  /** Resolves when every save that is complete by now was committed or has failed. */
  settled(): Promise<void> {
    return this.tail;
  }

  private complete(save: SaveRef, reports: Map<number, ShardMessage>): void {
    this.open.delete(save.directory);
    const ordered = [...reports].sort(([a], [b]) => a - b).map(([, message]) => message);
    const complete = {
      ...save,
      shards: ordered.map((message) => message.shard),
      digest_parts: ordered.map((message) => message.digest_part),
      base_digest_parts: baseDigestParts(ordered),
      save_request: Math.max(...ordered.map((message) => message.save_request)),
      cost: {
        stall_seconds: Math.max(...ordered.map(({ cost }) => cost.stall_seconds)),
        write_seconds: Math.max(...ordered.map(({ cost }) => cost.write_seconds)),
      },
    };
    this.tail = this.tail
      .then(() => this.options.commit(complete))
      .catch((error: unknown) => this.fail(save, error instanceof Error ? error : new Error(String(error))));
  }

  private fail(save: SaveRef, error: RankError | Error): void {
    if (this.failed.has(save.directory)) return;
    this.failed.add(save.directory);
    this.open.delete(save.directory);
    this.options.onFailed(save, error);
  }
}

function baseDigestParts(messages: readonly ShardMessage[]): string[] | null {
  const parts = messages.flatMap(({ base_digest_part }) => base_digest_part ?? []);
  return parts.length === 0 ? null : parts;
}
