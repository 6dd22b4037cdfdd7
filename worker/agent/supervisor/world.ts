import type { SystemUse } from '../../../contracts/index.js';
import type {
  AgentMessage,
  CallMessage,
  ConnectedMessage,
  LoadedMessage,
  RankMessage,
  ShardFailedMessage,
  ShardMessage,
  StartMessage,
  SteppedMessage,
} from '../../../contracts/rank-protocol.js';
import { deferred } from '../../shared/deferred.js';
import type { LogLine } from './log-line.js';
import { MemoryWatch } from './memory-watch.js';
import type { Rank, RankEnd, RankHost } from './rank.js';
import { type FailedRank, RootCause } from './root-cause.js';
import { SystemWatch } from './system-watch.js';

/** End of a generation of ranks. */
export type WorldEnd =
  /** All ranks stopped after the same step; `flags` is the reason, 0 at the end of training. */
  | { kind: 'stopped'; step: number; flags: number }
  | { kind: 'lost'; rank: number; host: string; end: RankEnd }
  /** This agent ended it. */
  | { kind: 'killed' };

/** Events of a running world. None of the methods may throw or block. */
export interface WorldListener {
  /** The ranks connected; the message of rank 0, which is the same on all. */
  onConnected(message: ConnectedMessage): void;
  /** Every rank loaded its part, before it runs or for a call. Resolve to continue; a rejection kills the world. */
  verifyLoad(messages: LoadedMessage[]): Promise<void>;
  onRunning(step: number): void;
  onStepped(message: SteppedMessage, use: StepUse): void;
  /** A rank of a session has run a call, or asks whether to load a checkpoint or to save. */
  onCall(rank: number, message: CallMessage): void;
  onShard(rank: number, message: ShardMessage): void;
  onShardFailed(rank: number, message: ShardFailedMessage): void;
  /** A line of a rank's log, until the world has ended. */
  onLine(rank: number, line: LogLine): void;
}

/** Resources that the ranks used. */
export interface StepUse {
  /** The most that one of the ranks used since the previous step. */
  memory_bytes: number;
  /** Null between two measurements. */
  system: SystemUse | null;
}

interface WorldOptions {
  /** Start message and host of each rank, in order. */
  ranks: readonly { start: StartMessage; host: RankHost }[];
  listener: WorldListener;
}

/** Grace period from `exit` until the process is killed. */
const EXIT_GRACE_MS = 5000;

/** Generation of a job: all of its ranks, started and ended together. */
export class World {
  readonly ended: Promise<WorldEnd>;

  private readonly ranks: Rank[];
  private readonly hosts: string[];
  private readonly end = deferred<WorldEnd>();
  private readonly rootCause: RootCause;
  /** Steps done, as each rank last reported. */
  private readonly steps = new Map<number, number>();
  private readonly memory = new MemoryWatch();
  private readonly system: SystemWatch;
  private readonly loaded = new Map<number, LoadedMessage>();
  private readonly stopped = new Map<number, { step: number; flags: number }>();
  private running = 0;
  private ending = false;

  constructor(private readonly options: WorldOptions) {
    this.ended = this.end.promise;
    this.system = new SystemWatch(options.ranks.length);
    this.rootCause = new RootCause({
      world_size: options.ranks.length,
      stepOf: (rank) => this.steps.get(rank) ?? null,
      onFound: (failed) => void this.lose(failed),
    });
    this.hosts = options.ranks.map(({ host }) => host.host);
    this.ranks = options.ranks.map(({ start, host }) => {
      const rank = host.start(start, {
        onMessage: (message) => this.receive(start.rank, message),
        onLine: (line) => options.listener.onLine(start.rank, line),
      });
      void rank.ended.then((end) => this.onRankEnd(start.rank, end));
      return rank;
    });
  }

  /** Kills every rank and waits until all have ended or are lost. Idempotent. */
  async kill(): Promise<void> {
    await this.finish({ kind: 'killed' });
    await this.ended;
  }

  private receive(rank: number, message: RankMessage): void {
    if (this.ending) return;
    const { listener } = this.options;
    if ('step' in message) this.steps.set(rank, message.step);
    switch (message.kind) {
      case 'heartbeat':
        this.memory.measured(rank, message.memory_bytes);
        this.system.measured(rank, message);
        break;
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
      case 'stepped':
        listener.onStepped(message, { memory_bytes: this.memory.take(), system: this.system.take() });
        break;
      case 'result_part':
      case 'called':
      case 'load_call':
      case 'save_call':
        listener.onCall(rank, message);
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
    const messages = [...this.loaded.values()];
    this.loaded.clear();
    try {
      await this.options.listener.verifyLoad(messages);
    } catch {
      // The listener has the error; the ranks hold bytes that must not be trained on.
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
    if (!this.ending) this.rootCause.ended(rank, end);
  }

  private async lose(failed: FailedRank): Promise<void> {
    const { rank } = failed;
    const host = this.hosts[rank] ?? '';
    if ('end' in failed) return this.finish({ kind: 'lost', rank, host, end: failed.end });
    // Its last output is known only after it ended.
    if (this.ending) return;
    this.ending = true;
    await this.ranks[rank]?.kill();
    const killed = await this.ranks[rank]?.ended;
    const { step = null, output = [] } = killed ?? {};
    const end: RankEnd =
      killed?.kind === 'node_lost' ? killed : { kind: 'stuck', ...failed.stuck, step, output };
    await this.clear({ kind: 'lost', rank, host, end });
  }

  /** Ends the world for the first reason; `ended` resolves when no process is left. */
  private async finish(end: WorldEnd): Promise<void> {
    if (this.ending) return;
    this.ending = true;
    this.rootCause.close();
    if (end.kind === 'stopped') await this.waitForExit();
    await this.clear(end);
  }

  private async clear(end: WorldEnd): Promise<void> {
    await Promise.all(this.ranks.map((rank) => rank.kill()));
    this.end.resolve(end);
  }

  private async waitForExit(): Promise<void> {
    const timeout = deferred<void>();
    const timer = setTimeout(timeout.resolve, EXIT_GRACE_MS);
    await Promise.race([Promise.all(this.ranks.map((rank) => rank.ended)), timeout.promise]);
    clearTimeout(timer);
  }

  /** Sends a message to every rank. */
  broadcast(message: AgentMessage): void {
    for (const rank of this.ranks) rank.send(message);
  }
}
