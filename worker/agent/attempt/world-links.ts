/**
 * Connections between the agents of a world: this agent's server for worlds that it leads, and its membership in
 * others.
 */
import { epochOf } from '../../../contracts/execution.js';
import { traceHeaders, ZerofleetError } from '../../../contracts/index.js';
import { continueTrace } from '../../../platform/tracing.js';
import type { SealedWorld, WorldPlan } from '../../../state/index.js';
import { agentSilenceMs } from '../../shared/timing.js';
import type { JobSession } from '../credentials/job-session.js';
import { type Assembly, assemble } from '../link/assemble.js';
import { type MemberJob, MemberWorld } from '../link/member-world.js';
import { Members } from '../link/members.js';
import { LocalRankHost, prepareRanks } from '../supervisor/local-rank-host.js';
import {
  type AgentDeps,
  type GenerationContext,
  type TrainableJob,
  threadsOfRanks,
  withSteps,
} from './context.js';
import { type PreparedData, prepareTokensOf } from './data/prepare-data.js';

/** Address for the ranks of a world with one machine. */
const LOOPBACK = '127.0.0.1';

/** Returns the address at which the ranks of a generation connect. */
export function rendezvousAddress({ deps, placements }: GenerationContext): string {
  return placements.length > 1 ? deps.links.address : LOOPBACK;
}

/**
 * Joins the workers of a generation's placement.
 * @throws ZerofleetError errors of `assemble`; `stale_epoch` when the lease was lost
 */
export function assembleWorld(
  ctx: GenerationContext,
  tokensDigest: string,
  signal: AbortSignal,
): Promise<Assembly> {
  const { deps, lease, placements, stops } = ctx;
  const { timing } = deps;
  return assemble({
    placements,
    local: localHost(deps, () => ctx.session),
    tokens_digest: tokensDigest,
    server: deps.links.server,
    address: deps.links.address,
    seal: (plan: WorldPlan) => lease.call((id, execution) => deps.store.sealWorld(id, execution, plan)),
    close: (worldId) => deps.store.closeWorld(lease.jobId, worldId),
    join_ms: timing.join_ms,
    ping_ms: timing.heartbeat_ms,
    silence_ms: timing.silence_ms,
    signal,
    // The generation saves at its next step boundary and continues with another placement.
    onLeaving: () => stops.request('resize'),
  });
}

/** Watches for worlds that other workers lead and that this worker is a member of. */
export function watchWorlds(deps: AgentDeps, workerId: string): Members {
  const { store, timing, log } = deps;
  return new Members({
    store,
    worker_id: workerId,
    interval_ms: timing.lease_ms / 3,
    log,
    join: (world) => {
      let session: JobSession | null = null;
      let data: PreparedData | null = null;
      let endUnused = () => {};
      const member = new MemberWorld({
        world,
        worker_id: workerId,
        host: localHost(deps, () => session),
        prepare: async (signal) => {
          const job = await store.getJob(world.job_id);
          if (!job) throw new ZerofleetError('job_not_found', `there is no job ${world.job_id}`);
          const purpose = `${world.execution}-member`;
          session = (await deps.sessions?.open(job, { purpose, signal })) ?? null;
          // The leader has counted the samples before it sealed the world.
          const membership = { deps, world, worker_id: workerId, signal, job: withSteps(job), session };
          endUnused = prepareRanks(deps, session, sizeOf(membership).ranks);
          data = await prepareMember(membership);
          return memberJob(membership, data);
        },
        ping_ms: timing.heartbeat_ms,
        silence_ms: timing.silence_ms,
        log: log.child({ job_id: world.job_id, epoch: epochOf(world.execution) }),
      });
      void member.ended.then(() => {
        endUnused();
        return Promise.all([session?.close(), data?.use.end()]);
      });
      return member;
    },
  });
}

interface Membership {
  deps: AgentDeps;
  world: SealedWorld;
  worker_id: string;
  job: TrainableJob;
  session: JobSession | null;
  signal: AbortSignal;
}

/** Prepares the data in this machine's own cache. */
async function prepareMember(membership: Membership): Promise<PreparedData> {
  const { deps, job, session, signal } = membership;
  const { ranks, threads } = sizeOf(membership);
  return prepareTokensOf(deps, job, {
    num_threads: threads * ranks,
    signal,
    session,
    getDataset: (id) => deps.store.getDataset(id),
    onProgress: () => undefined,
  });
}

/** Returns the part of a rank's start message that does not come from the leader. */
async function memberJob(membership: Membership, tokens: PreparedData): Promise<MemberJob> {
  const { deps, job } = membership;
  const { store, timing, links } = deps;
  const { ranks, threads } = sizeOf(membership);
  return {
    trace: traceHeaders(continueTrace(await store.getTrace(job.id))),
    spec: job.spec,
    training_files: tokens.training_files,
    evaluation_files: tokens.evaluation_files,
    tokens_digest: tokens.tokens_digest,
    object_store: deps.object_store,
    device: deps.gpus ? 'cuda' : 'cpu',
    threads,
    local_ranks: ranks,
    comm: { bind_address: links.address, timeout_ms: timing.comm_timeout_ms },
    heartbeat_ms: timing.heartbeat_ms,
    agent_silence_ms: agentSilenceMs(timing),
    save: timing.save,
  };
}

/** Returns the number of ranks on this machine and the threads of each. */
function sizeOf({ deps, world, worker_id, job }: Membership): { ranks: number; threads: number } {
  const ranks = world.members.find((member) => member.worker_id === worker_id)?.ranks.length ?? 1;
  return { ranks, threads: threadsOfRanks(deps, ranks, job.spec) };
}

function localHost(
  { processes, timing, metrics, gpus, log }: AgentDeps,
  session: () => JobSession | null,
): LocalRankHost {
  const onStart = () => metrics.rankStarted();
  return new LocalRankHost({ processes, silence_ms: timing.silence_ms, onStart, session, gpus, log });
}
