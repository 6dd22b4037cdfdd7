import { type TrainableJobSpec, ZerofleetError } from '../../../contracts/index.js';
import type {
  EvaluationFile,
  ObjectStoreLocation,
  RankMessage,
  StartMessage,
  TrainingFile,
} from '../../../contracts/rank-protocol.js';
import type { Logger } from '../../../platform/logging/logging.js';
import type { SealedWorld } from '../../../state/index.js';
import { toRankError } from '../../shared/errors.js';
import type { Rank, RankHost } from '../supervisor/rank.js';
import { Link } from './link.js';
import {
  agentFromWire,
  asLeaderMessage,
  endToWire,
  type LeaderMessage,
  type MemberMessage,
  rankToWire,
  type StartOrder,
} from './protocol.js';
import { connectToLeader } from './tls.js';

/** A member's own data about the ranks that it is to run. */
export interface MemberJob {
  trace: StartMessage['trace'];
  spec: TrainableJobSpec;
  training_files: TrainingFile[];
  evaluation_files: EvaluationFile[];
  tokens_digest: string;
  object_store: ObjectStoreLocation;
  device: StartMessage['device'];
  threads: number;
  local_ranks: number;
  comm: StartMessage['comm'];
  heartbeat_ms: number;
  agent_silence_ms: number;
  save: StartMessage['save'];
}

interface MemberWorldOptions {
  world: SealedWorld;
  worker_id: string;
  /** Rank host of this machine. */
  host: RankHost;
  /** Prepares the data; rejects when `signal` is aborted. */
  prepare(signal: AbortSignal): Promise<MemberJob>;
  ping_ms: number;
  silence_ms: number;
  log: Logger;
}

/**
 * A member's part of a world that another worker leads: it runs the ranks that the leader starts and passes messages
 * on. It makes no decisions. Its ranks are killed as soon as the link ends because their results are useless without
 * the leader.
 */
export class MemberWorld {
  /** Resolves when no rank is left. Never rejects. */
  readonly ended: Promise<void>;

  private readonly link: Link;
  private readonly ranks = new Map<number, Rank>();
  private readonly closed = new AbortController();
  private job: MemberJob | null = null;

  constructor(private readonly options: MemberWorldOptions) {
    this.link = new Link(connectToLeader(options.world));
    // Pings begin with the first attempt to connect, so that a stopped leader cannot block this worker.
    this.link.watch(options);
    void this.link.ended.then(() => this.closed.abort());
    this.ended = this.run();
  }

  /** Asks the leader to continue without this worker. */
  leave(): void {
    this.send({ kind: 'leaving' });
  }

  /** Kills the ranks and waits until they have ended. Idempotent. */
  async end(reason: string): Promise<void> {
    this.link.close(reason);
    await this.ended;
  }

  private async run(): Promise<void> {
    const { log, world } = this.options;
    try {
      await this.join();
    } catch (error) {
      log.warn({ err: error, job_id: world.job_id }, 'world not joined');
      this.link.close((error as Error).message);
    }
    const reason = await this.link.ended;
    log.info({ job_id: world.job_id, reason }, 'world left');
    await Promise.all([...this.ranks.values()].map((rank) => rank.kill()));
  }

  private async join(): Promise<void> {
    const { worker_id, host } = this.options;
    await this.link.secured();
    this.send({ kind: 'join', worker_id, host: host.host });
    this.link.trust();
    this.link.onMessage((message) => this.receive(asLeaderMessage(message)));
    try {
      this.job = await this.options.prepare(this.closed.signal);
      this.send({ kind: 'ready', tokens_digest: this.job.tokens_digest });
    } catch (error) {
      this.send({ kind: 'refused', error: toRankError(error) });
    }
  }

  private receive(message: LeaderMessage): void {
    switch (message.kind) {
      case 'start':
        this.start(message);
        break;
      case 'message':
        this.rankOf(message.rank).send(agentFromWire(message.message));
        break;
      case 'kill':
        void this.rankOf(message.rank).kill();
        break;
    }
  }

  /** @throws ZerofleetError `link_protocol`, which ends the link */
  private start(order: StartOrder): void {
    const { world, worker_id, host } = this.options;
    const { rank } = order;
    const own = world.members.find((member) => member.worker_id === worker_id)?.ranks ?? [];
    if (!this.job || !own.includes(rank) || this.ranks.has(rank)) {
      throw new ZerofleetError('link_protocol', `rank ${rank} can't be started here now`);
    }
    const { job_id, execution } = world;
    const started = host.start(
      { ...order, job_id, execution, ...this.job },
      {
        onMessage: (message) => this.relay(rank, message),
        onLine: (line) => this.send({ kind: 'line', rank, line }),
      },
    );
    this.ranks.set(rank, started);
    void started.ended.then((end) => this.send({ kind: 'ended', rank, end: endToWire(end) }));
  }

  private relay(rank: number, message: RankMessage): void {
    const wire = rankToWire(message);
    if (wire) this.send({ kind: 'message', rank, message: wire });
  }

  /** @throws ZerofleetError `link_protocol` */
  private rankOf(rank: number): Rank {
    const known = this.ranks.get(rank);
    if (!known) throw new ZerofleetError('link_protocol', `rank ${rank} was not started here`);
    return known;
  }

  private send(message: MemberMessage): void {
    this.link.send(message);
  }
}
