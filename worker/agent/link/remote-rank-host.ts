import { plainText, ZerofleetError } from '../../../contracts/index.js';
import type { AgentMessage, StartMessage } from '../../../contracts/rank-protocol.js';
import { type Deferred, deferred } from '../../shared/deferred.js';
import { fromRankError } from '../../shared/errors.js';
import { workerLine } from '../supervisor/log-line.js';
import type { Rank, RankEnd, RankHost, RankListener } from '../supervisor/rank.js';
import { endText } from '../supervisor/rank-end.js';
import type { Link } from './link.js';
import { agentToWire, asMemberMessage, type LeaderMessage, rankFromWire } from './protocol.js';

interface RemoteRank {
  end: Deferred<RankEnd>;
  listener: RankListener;
  step: number | null;
  hasEnded: boolean;
}

/** The leader's view of one member: a host on which ranks can be started while the link is up. */
export class RemoteRankHost implements RankHost {
  /**
   * Resolves with the digest of the tokens that the member has prepared; rejects with its error, or when its link ends.
   */
  readonly ready: Promise<string>;

  private readonly prepared = deferred<string>();
  private readonly ranks = new Map<number, RemoteRank>();
  /** Reason why the link ended; null while it is up. */
  private lost: string | null = null;

  /**
   * @param member name of the member's machine, and of its worker
   * @param onLeaving called when the member asks to leave
   */
  constructor(
    private readonly member: { host: string; worker_id: string },
    private readonly link: Link,
    private readonly onLeaving: () => void,
  ) {
    this.ready = this.prepared.promise;
    // Prevents an unhandled rejection when nothing awaits `ready`; the ends of the ranks report the failure as well.
    this.ready.catch(() => undefined);
    link.onMessage((message) => this.receive(asMemberMessage(message)));
    void link.ended.then((reason) => this.onLost(reason));
  }

  get host(): string {
    return this.member.host;
  }

  start(start: StartMessage, listener: RankListener): Rank {
    const { rank, world_size, nonce, load, base, failures_per_second } = start;
    const remote: RemoteRank = { end: deferred(), listener, step: null, hasEnded: false };
    this.ranks.set(rank, remote);
    this.send({ kind: 'start', rank, world_size, nonce, load, base, failures_per_second });
    if (this.lost !== null) this.settleLost(remote, this.lost);
    return {
      rank,
      ended: remote.end.promise,
      send: (message) => this.sendTo(rank, message),
      kill: async () => {
        if (!remote.hasEnded) this.send({ kind: 'kill', rank });
        await remote.end.promise;
      },
    };
  }

  /** Ends the world. A member whose link ends kills its remaining ranks. Idempotent. */
  close(): void {
    this.link.close('the world has ended');
  }

  private sendTo(rank: number, message: AgentMessage): void {
    if (message.kind !== 'start') this.send({ kind: 'message', rank, message: agentToWire(message) });
  }

  private send(message: LeaderMessage): void {
    this.link.send(message);
  }

  private receive(received: ReturnType<typeof asMemberMessage>): void {
    switch (received.kind) {
      case 'ready':
        this.prepared.resolve(received.tokens_digest);
        break;
      case 'refused':
        this.prepared.reject(fromRankError(received.error));
        break;
      case 'leaving':
        this.onLeaving();
        break;
      case 'message': {
        const remote = this.rankOf(received.rank);
        const message = rankFromWire(received.message);
        if ('step' in message) remote.step = message.step;
        if (!remote.hasEnded) remote.listener.onMessage(message);
        break;
      }
      case 'line': {
        const remote = this.rankOf(received.rank);
        // The sender has already cleaned the text; the receiver does not trust it.
        const message = plainText(received.line.message);
        if (!remote.hasEnded) remote.listener.onLine({ ...received.line, message });
        break;
      }
      case 'ended':
        this.settle(this.rankOf(received.rank), received.end);
        break;
    }
  }

  /** @throws ZerofleetError `link_protocol`, which ends the link */
  private rankOf(rank: number): RemoteRank {
    const remote = this.ranks.get(rank);
    if (!remote) throw new ZerofleetError('link_protocol', `rank ${rank} was not started there`);
    return remote;
  }

  private onLost(reason: string): void {
    this.lost = reason;
    const details = { worker_id: this.member.worker_id };
    this.prepared.reject(
      new ZerofleetError('node_lost', `the link to ${this.host} ended: ${reason}`, { details }),
    );
    for (const remote of this.ranks.values()) this.settleLost(remote, reason);
  }

  private settleLost(remote: RemoteRank, reason: string): void {
    const end: RankEnd = { kind: 'node_lost', message: reason, step: remote.step, output: [] };
    // Logs the line that the member's worker would have logged.
    if (!remote.hasEnded) remote.listener.onLine(workerLine(endText(end)));
    this.settle(remote, end);
  }

  private settle(remote: RemoteRank, end: RankEnd): void {
    remote.hasEnded = true;
    remote.end.resolve(end);
  }
}
