import { hostname } from 'node:os';
import { epochOf } from '../../../contracts/execution.js';
import { traceHeaders } from '../../../contracts/index.js';
import type { StartMessage } from '../../../contracts/rank-protocol.js';
import type { Logger } from '../../../platform/logging/logging.js';
import { continueTrace, traceFields } from '../../../platform/tracing.js';
import { childEnv, needsCredentials } from '../../shared/child-env.js';
import type { ChildProcesses } from '../../shared/child-processes.js';
import type { JobSession } from '../credentials/job-session.js';
import { workerLine } from './log-line.js';
import type { Rank, RankEnd, RankHost, RankListener } from './rank.js';
import { endText, gpuFaultOf } from './rank-end.js';
import { RankProcess } from './rank-process.js';

/** Source of GPUs, one for each rank. */
interface RankGpus {
  take(): { uuid: string; name: string } | null;
  /** Releases a GPU. @param fault the GPU's fault that failed the rank, or null */
  release(uuid: string, fault: string | null): void;
}

interface LocalRankHostOptions {
  processes: ChildProcesses;
  /** Time without a message after which a rank counts as hanging. */
  silence_ms: number;
  /** Returns the session for a rank that starts; null: the rank uses the credentials of this process. */
  session(): JobSession | null;
  /** Called at the start of each rank; its result is called at the rank's end. */
  onStart?(): () => void;
  /** Null: ranks compute on the CPU. */
  gpus: RankGpus | null;
  log: Logger;
}

/**
 * Starts the processes of ranks while their data is prepared. Those on GPUs start with their world, which knows the
 * free GPUs.
 * @returns function that ends the processes that no rank has taken
 */
export function prepareRanks(
  {
    processes,
    gpus,
    object_store,
  }: Pick<LocalRankHostOptions, 'processes' | 'gpus'> & Pick<StartMessage, 'object_store'>,
  session: JobSession | null,
  count: number,
): () => void {
  if (gpus) return () => undefined;
  return processes.prepare('rank', childEnv(needsCredentials(object_store, session), null), count);
}

/** Runs ranks as child processes of this agent. */
export class LocalRankHost implements RankHost {
  readonly host = hostname();

  constructor(private readonly options: LocalRankHostOptions) {}

  start(start: StartMessage, listener: RankListener): Rank {
    const { gpus } = this.options;
    if (!gpus) return this.startOn(null, start, listener);
    const gpu = gpus.take();
    if (!gpu) return withoutGpu(start.rank, this.host, listener);
    const rank = this.startOn(gpu, start, listener);
    // An unkillable rank keeps its GPU until its process ends.
    void rank.closed.then(async () => gpus.release(gpu.uuid, gpuFaultOf(await rank.ended)));
    return rank;
  }

  private startOn(gpu: { uuid: string; name: string } | null, start: StartMessage, listener: RankListener) {
    const { rank: number, job_id, execution, heartbeat_ms, agent_silence_ms } = start;
    const trace = continueTrace(start.trace);
    const heartbeat = { heartbeat_ms, agent_silence_ms };
    const { onMessage, onLine } = listener;
    const log = this.options.log.child({ job_id, epoch: epochOf(execution), ...traceFields(trace) });
    const session = this.options.session();
    const own = {
      ...heartbeat,
      rank: number,
      log,
      aws: needsCredentials(start.object_store, session),
      gpu: gpu?.uuid ?? null,
    };
    const rank = new RankProcess({ ...this.options, ...own, onMessage, onLine });
    const where = gpu ? `, ${gpu.name} ${gpu.uuid}` : '';
    if (rank.pid !== undefined) onLine(workerLine(`started on ${this.host}, process ${rank.pid}${where}`));
    // Registered before any other listener, so that this line comes first.
    void rank.ended.then((end) => onLine(workerLine(endText(end))));
    const onEnd = this.options.onStart?.();
    if (onEnd) void rank.ended.then(onEnd);
    if (session) void rank.ended.then(session.watch((credentials) => rank.setCredentials(credentials)));
    rank.send({ ...start, trace: traceHeaders(trace) });
    return rank;
  }
}

/**
 * Handles a GPU that became unhealthy after its slot was allocated: the job returns to its queue for another placement.
 */
function withoutGpu(rank: number, host: string, { onLine }: RankListener): Rank {
  const message = `no healthy GPU is free on ${host}`;
  const end: RankEnd = {
    kind: 'failed',
    error: { code: 'device_unavailable', message },
    step: null,
    output: [],
  };
  onLine(workerLine(endText(end)));
  return { rank, ended: Promise.resolve(end), send: () => undefined, kill: async () => undefined };
}
