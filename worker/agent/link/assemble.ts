import { randomBytes } from 'node:crypto';
import { ZerofleetError } from '../../../contracts/index.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import type { WorldMember, WorldPlan, WorldRendezvous } from '../../../state/index.js';
import { requireSameTokens } from '../../shared/same-tokens.js';
import type { RankHost } from '../supervisor/rank.js';
import type { LinkServer } from './link-server.js';
import { RemoteRankHost } from './remote-rank-host.js';

/** Ranks of one job at one worker. */
export interface RankPlacement {
  worker_id: string;
  slots: number;
}

interface AssembleOptions {
  /** Placements of the world, the leader's own first. */
  placements: readonly RankPlacement[];
  local: RankHost;
  /** Digest of the tokens that this worker has prepared; all members must have prepared the same. */
  tokens_digest: string;
  server: LinkServer;
  /** Address of this worker at which members reach it. */
  address: string;
  /** Seals the world; retried while the job store is unavailable. */
  seal(plan: WorldPlan): Promise<void>;
  close: (worldId: string) => ReturnType<WorldRendezvous['closeWorld']>;
  /** Timeout from the seal until a member must have connected. */
  join_ms: number;
  ping_ms: number;
  silence_ms: number;
  /** Aborts the assembly. */
  signal: AbortSignal;
  /** Called when a member asks to leave. */
  onLeaving(): void;
}

/** Rank hosts of a world. */
export interface Assembly {
  /** Host of each rank, in order of rank. */
  hosts: readonly RankHost[];
  /** Closes the links; members kill their remaining ranks. Idempotent. */
  close(): Promise<void>;
}

/** Assigns consecutive ranks to each placement in turn. The results do not depend on the assignment. */
function ranksOf(placements: readonly RankPlacement[]): WorldMember[] {
  let next = 0;
  return placements.map(({ worker_id, slots }) => ({
    worker_id,
    ranks: Array.from({ length: slots }, () => next++),
  }));
}

/**
 * Assembles the workers of a world: resolves when each member has joined and prepared the data.
 * @throws ZerofleetError `node_lost` when a member does not join or its link ends; `tokens_mismatch`; the error of a
 *   member's preparation;
 * errors of `seal`; the signal's reason
 */
export async function assemble(options: AssembleOptions): Promise<Assembly> {
  const { placements, local, address, server, signal } = options;
  const [own, ...members] = ranksOf(placements);
  if (!own) throw new ZerofleetError('internal_error', 'a world without placements');
  if (members.length === 0) return { hosts: own.ranks.map(() => local), close: async () => undefined };
  const plan: WorldPlan = {
    world_id: randomBytes(16).toString('hex'),
    token: randomBytes(32).toString('hex'),
    leader: { worker_id: own.worker_id, address, port: server.port },
    members,
  };
  const remotes = new Map<string, RemoteRankHost>();
  const givenUp = new AbortController();
  const close = async () => {
    givenUp.abort();
    for (const remote of remotes.values()) remote.close();
    // A failure is harmless: the world also ends with the next world or the lease.
    await options.close(plan.world_id).catch(() => undefined);
  };
  const onAbort = () => givenUp.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    const coming = members.map((member) => comeIn(options, plan, member, givenUp.signal));
    const [hosts] = await Promise.all([Promise.all(coming), options.seal(plan)]);
    return { hosts: inOrder([own, ...members], [local, ...hosts]), close };
  } catch (error) {
    await close();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }

  async function comeIn(
    { join_ms, ping_ms, silence_ms, tokens_digest, onLeaving }: AssembleOptions,
    { world_id, token, leader: { worker_id: ownId } }: WorldPlan,
    { worker_id }: WorldMember,
    aborted: AbortSignal,
  ): Promise<RankHost> {
    const arrived = new AbortController();
    const late = new AbortController();
    void waitOrAbort(join_ms, AbortSignal.any([aborted, arrived.signal])).then(() => late.abort());
    const admitted = await server.expect({ world_id, worker_id, token }, late.signal);
    arrived.abort();
    if (!admitted)
      throw new ZerofleetError('node_lost', `worker ${worker_id} did not join within ${join_ms} ms`, {
        details: { worker_id },
      });
    admitted.link.trust();
    admitted.link.watch({ ping_ms, silence_ms });
    const remote = new RemoteRankHost({ host: admitted.host, worker_id }, admitted.link, onLeaving);
    remotes.set(worker_id, remote);
    if (aborted.aborted) remote.close();
    requireSameTokens(
      { owner: `worker ${worker_id}`, digest: await remote.ready },
      { owner: `worker ${ownId}, which leads the job,`, digest: tokens_digest },
    );
    return remote;
  }
}

function inOrder(members: WorldMember[], hosts: RankHost[]): RankHost[] {
  return members.flatMap(({ ranks }, i) => ranks.map(() => hosts[i] as RankHost));
}
