import type {
  ConnectedMessage,
  LoadedMessage,
  MemoryMessage,
  RankMessage,
  ShardFailedMessage,
  ShardMessage,
  StartMessage,
  SteppedMessage,
} from '../../contracts/rank-protocol.js';
import type { Logger } from '../../platform/logging.js';
import { deferred } from '../deferred.js';
import { type RankEnd, RankProcess } from './rank-process.js';

/** How a generation of ranks ended. */
export type WorldEnd =
  /** All ranks stopped after the same step; `flags` says why, 0 at the end of training. */
  | { kind: 'stopped'; step: number; flags: number }
  | { kind: 'lost'; rank: number; end: RankEnd }
  /** This agent ended it. */
  | { kind: 'killed' };

/** What a world tells while it runs. None of these may throw or block. */
export interface WorldListener {
  /** The ranks met; `rank` is always 0, what it says is the same on all. */
  onConnected(message: ConnectedMessage): void;
  /** Every rank loaded its part. Resolve to let them go on; a rejection kills the world. */
  verifyLoad(messages: LoadedMessage[]): Promise<void>;
  onRunning(step: number): void;
  /** Every rank has done a step; what each has allocated, in order of rank. */
  onMemory(messages: MemoryMessage[]): void;
  onStepped(message: SteppedMessage): void;
  onShard(rank: number, message: ShardMessage): void;
  onShardFailed(rank: number, message: ShardFailedMessage): void;
}

export interface WorldOptions {
  /** Absolute path of the rank's main module. */
  program: string;
  /** One for each rank, in order. */
  starts: readonly StartMessage[];
  silence_ms: number;
  log: Logger;
  listener: WorldListener;
}

/**
 * A rank whose peer died reports a broken connection, often before the operating system reports the death itself. So a
 * communication error waits this long for the better explanation.
 */
const CAUSE_GRACE_MS = 1000;
/** From `exit` to the end of the process; then it is killed, for nothing depends on it any more. */
const EXIT_GRACE_MS = 5000;

/** One generation: all ranks of a job, started and ended together. */
export class World {
  readonly ended: Promise<WorldEnd>;

  private readonly ranks: RankProcess[];
  private readonly end = deferred<WorldEnd>();
  private readonly memory = new Map<number, MemoryMessage>();
  private readonly loaded = new Map<number, LoadedMessage>();
  private readonly stopped = new Map<number, { step: number; flags: number }>();
  private running = 0;
  private ending = false;
  private readonly symptoms: NodeJS.Timeout[] = [];

  constructor(private readonly options: WorldOptions) {
    this.ended = this.end.promise;
    this.ranks = options.starts.map((start) => {
      const process = new RankProcess({
        rank: start.rank,
        program: options.program,
        silence_ms: options.silence_ms,
        log: options.log,
        onMessage: (message) => this.receive(start.rank, message),
      });
      process.send(start);
      void process.ended.then((end) => this.onRankEnd(start.rank, end));
      return process;
    });
  }

  /** Bits for every rank to pass to its steps from the next one on. */
  setFlags(flags: number): void {
    this.broadcast({ kind: 'flags', flags });
  }

  /** Kills every rank and waits until all are gone. Idempotent. */
  async kill(): Promise<void> {
    await this.finish({ kind: 'killed' });
    await this.ended;
  }

  private receive(rank: number, message: RankMessage): void {
    if (this.ending) return;
    const { listener } = this.options;
    switch (message.kind) {
      case 'heartbeat':
      case 'failed':
        break;
      case 'publish':
        // The sender waits for its own keys too, so every rank gets every key.
        this.broadcast({ kind: 'deliver', key: message.key, value: message.value });
        break;
      case 'connected':
        if (rank === 0) listener.onConnected(message);
        break;
      case 'loaded':
        this.loaded.set(rank, message);
        if (this.loaded.size === this.ranks.length) void this.verifyLoad();
        break;
      case 'running':
        this.running++;
        if (this.running === this.ranks.length) listener.onRunning(message.step);
        break;
      case 'memory':
        this.memory.set(rank, message);
        if (this.memory.size === this.ranks.length) listener.onMemory(inOrder(this.memory));
        break;
      case 'stepped':
        listener.onStepped(message);
        break;
      case 'shard':
        listener.onShard(rank, message);
        break;
      case 'shard_failed':
        listener.onShardFailed(rank, message);
        break;
      case 'stopped':
        this.onStopped(rank, message);
        break;
    }
  }

  private async verifyLoad(): Promise<void> {
    try {
      await this.options.listener.verifyLoad([...this.loaded.values()]);
    } catch {
      // The listener knows why; the ranks hold bytes that must not be trained on.
      return this.finish({ kind: 'killed' });
    }
    this.broadcast({ kind: 'proceed' });
  }

  private onStopped(rank: number, { step, flags }: { step: number; flags: number }): void {
    this.stopped.set(rank, { step, flags });
    if (this.stopped.size < this.ranks.length) return;
    this.broadcast({ kind: 'exit' });
    void this.finish({ kind: 'stopped', step, flags });
  }

  private onRankEnd(rank: number, end: RankEnd): void {
    if (this.ending) return;
    if (!isSymptom(end)) return void this.finish({ kind: 'lost', rank, end });
    this.symptoms.push(setTimeout(() => void this.finish({ kind: 'lost', rank, end }), CAUSE_GRACE_MS));
  }

  /** The first reason to end wins; `ended` resolves when no process is left. */
  private async finish(end: WorldEnd): Promise<void> {
    if (this.ending) return;
    this.ending = true;
    for (const timer of this.symptoms) clearTimeout(timer);
    if (end.kind === 'stopped') await this.exitInPeace();
    await Promise.all(this.ranks.map((rank) => rank.kill()));
    this.end.resolve(end);
  }

  private async exitInPeace(): Promise<void> {
    const timeout = deferred<void>();
    const timer = setTimeout(timeout.resolve, EXIT_GRACE_MS);
    await Promise.race([Promise.all(this.ranks.map((rank) => rank.ended)), timeout.promise]);
    clearTimeout(timer);
  }

  private broadcast(message: Parameters<RankProcess['send']>[0]): void {
    for (const rank of this.ranks) rank.send(message);
  }
}

/** What each rank said, in order of rank. */
function inOrder<T>(messages: ReadonlyMap<number, T>): T[] {
  return [...messages].sort(([a], [b]) => a - b).map(([, message]) => message);
}

function isSymptom(end: RankEnd): boolean {
  return end.kind === 'failed' && (end.error.code === 'comm_failed' || end.error.code === 'comm_timeout');
}
