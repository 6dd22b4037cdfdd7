/** Worlds over several agents in one process, with real links and scripted ranks, without a job store. */
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import type { SealedWorld, WorldPlan } from '../../state/index.js';
import { type Assembly, assemble, type RankPlacement } from '../agent/link/assemble.js';
import { LinkServer } from '../agent/link/link-server.js';
import { type MemberJob, MemberWorld } from '../agent/link/member-world.js';
import { LocalRankHost } from '../agent/supervisor/local-rank-host.js';
import type { RankHost } from '../agent/supervisor/rank.js';
import { World, type WorldListener } from '../agent/supervisor/world.js';
import type { ChildProcessesOptions } from '../shared/child-processes.js';
import { testProcesses } from './child-processes.js';
import { startMessage, testSpec } from './start-message.js';

const SCRIPTED_RANK = fileURLToPath(new URL('scripted-rank.js', import.meta.url));
const silentLog = createLogger({ level: 'silent', name: 'test' });

export const ignoringListener: WorldListener = {
  onConnected: () => undefined,
  verifyLoad: async () => undefined,
  onRunning: () => undefined,
  onStepped: () => undefined,
  onCall: () => undefined,
  onShard: () => undefined,
  onShardFailed: () => undefined,
  onLine: () => undefined,
};

/** Digest of the tokens of every agent of such a world. */
export const TOKENS_DIGEST = `sha256:${'0'.repeat(64)}`;

/** Returns a member's data of a job with scripted ranks. */
export function scriptedJob(): MemberJob {
  const { trace, training_files, evaluation_files, object_store, threads, local_ranks, comm, save } =
    startMessage();
  const { device, heartbeat_ms, agent_silence_ms } = startMessage();
  return {
    trace,
    spec: testSpec(),
    training_files,
    evaluation_files,
    tokens_digest: TOKENS_DIGEST,
    object_store,
    device,
    threads,
    local_ranks,
    comm,
    heartbeat_ms,
    agent_silence_ms,
    save,
  };
}

export function scriptedHost(silenceMs = 20_000, changes: Partial<ChildProcessesOptions> = {}): RankHost {
  return new LocalRankHost({
    processes: testProcesses({ programs: { rank: SCRIPTED_RANK, task: '' }, ...changes }),
    silence_ms: silenceMs,
    session: () => null,
    gpus: null,
    log: silentLog,
  });
}

interface LinkedOptions {
  /** Script of each rank; see scripted-rank.ts. */
  scripts: string[];
  /** The first one is the leader's. */
  placements?: RankPlacement[];
  join_ms?: number;
  silence_ms?: number;
  /** Joins a member to the sealed world; by default each is an agent in this process. */
  enter?(world: SealedWorld, workerId: string): void;
}

interface Linked {
  server: LinkServer;
  assembly: Assembly;
  /** Members in this process. */
  members: MemberWorld[];
  world(listener?: WorldListener): World;
}

export const memberOf = (
  world: SealedWorld,
  workerId: string,
  options: Partial<ConstructorParameters<typeof MemberWorld>[0]> = {},
) =>
  new MemberWorld({
    world,
    worker_id: workerId,
    host: scriptedHost(),
    prepare: async () => scriptedJob(),
    ping_ms: 100,
    silence_ms: 5_000,
    log: silentLog,
    ...options,
  });

/** Joins a leader and its members. Rejects as `assemble` does. */
export async function linked(t: Test, options: LinkedOptions): Promise<Linked> {
  const {
    scripts,
    placements = defaultPlacements(scripts.length),
    join_ms = 5_000,
    silence_ms = 5_000,
  } = options;
  const server = await LinkServer.listen('127.0.0.1', silentLog);
  t.teardown(() => server.close());
  const members: MemberWorld[] = [];
  t.teardown(() => Promise.all(members.map((member) => member.end('the test is over'))));
  const enter =
    options.enter ??
    ((world: SealedWorld, workerId: string) => {
      members.push(memberOf(world, workerId));
    });
  const seal = async (plan: WorldPlan) => {
    const world = { ...plan, job_id: scripts.join(','), execution: '1-a' as const };
    for (const { worker_id } of plan.members) enter(world, worker_id);
  };
  const assembly = await assemble({
    placements,
    local: scriptedHost(),
    tokens_digest: TOKENS_DIGEST,
    server,
    address: '127.0.0.1',
    seal,
    close: async () => undefined,
    join_ms,
    ping_ms: 100,
    silence_ms,
    signal: new AbortController().signal,
    onLeaving: () => undefined,
  });
  const world = (listener = ignoringListener) => {
    const ranks = assembly.hosts.map((host, rank) => ({
      start: startMessage({ job_id: scripts.join(','), rank, world_size: scripts.length }),
      host,
    }));
    const running = new World({ ranks, listener });
    t.teardown(() => running.kill());
    return running;
  };
  return { server, assembly, members, world };
}

/** Gives the leader the first rank and each member one of the others. */
function defaultPlacements(ranks: number): RankPlacement[] {
  return Array.from({ length: ranks }, (_, rank) => ({
    worker_id: rank === 0 ? 'leader' : `member-${rank}`,
    slots: 1,
  }));
}
