import { hostname } from 'node:os';
import { traceHeaders } from '../../contracts/index.js';
import type { StartMessage } from '../../contracts/rank-protocol.js';
import type { Logger } from '../../platform/logging.js';
import { continueTrace, traceFields } from '../../platform/tracing.js';
import type { JobSession } from '../credentials/job-session.js';
import { workerLine } from './log-line.js';
import type { Rank, RankHost, RankListener } from './rank.js';
import { endText } from './rank-end.js';
import { RankProcess } from './rank-process.js';

export interface LocalRankHostOptions {
  /** Absolute path of the rank's main module. */
  program: string;
  /** Silence after which a rank counts as hanging. */
  silence_ms: number;
  /** Whose credentials the ranks get, asked when one starts; null: they have those of this process. */
  session(): JobSession | null;
  /** Called with the start of each rank; what it returns is called at its end. */
  onStart?(): () => void;
  log: Logger;
}

/** Ranks as child processes of this agent. */
export class LocalRankHost implements RankHost {
  readonly host = hostname();

  constructor(private readonly options: LocalRankHostOptions) {}

  start(start: StartMessage, listener: RankListener): Rank {
    const { rank: number, job_id, epoch, heartbeat_ms, agent_silence_ms } = start;
    const trace = continueTrace(start.trace);
    const pulse = { heartbeat_ms, agent_silence_ms };
    const { onMessage, onLine } = listener;
    const log = this.options.log.child({ job_id, epoch, ...traceFields(trace) });
    const session = this.options.session();
    const own = { ...pulse, rank: number, trace, log, confined: session !== null };
    const rank = new RankProcess({ ...this.options, ...own, onMessage, onLine });
    if (rank.pid !== undefined) onLine(workerLine(`started on ${this.host}, process ${rank.pid}`));
    // Before anybody else hears of the end, so that this line comes before it, too.
    void rank.ended.then((end) => onLine(workerLine(endText(end))));
    const onEnd = this.options.onStart?.();
    if (onEnd) void rank.ended.then(onEnd);
    if (session) void rank.ended.then(session.watch((credentials) => rank.give(credentials)));
    rank.send({ ...start, trace: traceHeaders(trace) });
    return rank;
  }
}
