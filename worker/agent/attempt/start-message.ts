import { randomBytes } from 'node:crypto';
import { traceHeaders } from '../../../contracts/index.js';
import type { EvaluationFile, StartMessage, TrainingFile } from '../../../contracts/rank-protocol.js';
import { agentSilenceMs } from '../../shared/timing.js';
import { type GenerationContext, localRanks, threadsPerRank } from './context.js';
import type { BasePoint } from './load/base-point.js';
import type { LoadPoint } from './load/load-point.js';
import { rendezvousAddress } from './world-links.js';

/** Training input of the ranks of a generation. */
export interface RankInput {
  /** Source from which the ranks start; null: fresh parameters. */
  load: LoadPoint | null;
  /** Base of the job's adapters; null without. */
  base: BasePoint | null;
  training_files: TrainingFile[];
  evaluation_files: EvaluationFile[];
  /** Digest of all tokens. */
  tokens_digest: string;
  failures_per_second: number;
}

/** Returns a nonce of a generation, or of a repeated save. */
export function newNonce(): string {
  return randomBytes(4).toString('hex');
}

/** Returns the message that starts a rank. @param nonce of the generation */
export function startMessage(
  ctx: GenerationContext,
  { load, base, training_files, evaluation_files, tokens_digest, failures_per_second }: RankInput,
  rank: number,
  nonce: string,
): StartMessage {
  const { deps, job, lease, world_size } = ctx;
  const { timing } = deps;
  return {
    kind: 'start',
    job_id: job.id,
    execution: lease.execution,
    trace: traceHeaders(ctx.trace),
    nonce,
    rank,
    world_size,
    device: deps.gpus ? 'cuda' : 'cpu',
    threads: threadsPerRank(ctx),
    local_ranks: localRanks(ctx),
    spec: job.spec,
    training_files,
    evaluation_files,
    tokens_digest,
    object_store: deps.object_store,
    load: load?.source ?? null,
    base: base?.source ?? null,
    comm: { bind_address: rendezvousAddress(ctx), timeout_ms: timing.comm_timeout_ms },
    heartbeat_ms: timing.heartbeat_ms,
    agent_silence_ms: agentSilenceMs(timing),
    failures_per_second,
    save: timing.save,
  };
}
