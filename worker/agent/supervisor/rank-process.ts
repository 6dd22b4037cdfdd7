import type { ChildProcess } from 'node:child_process';
import type {
  AgentMessage,
  LocalMessage,
  RankError,
  RankMessage,
  SessionCredentials,
} from '../../../contracts/rank-protocol.js';
import type { Logger } from '../../../platform/logging/logging.js';
import { childEnv } from '../../shared/child-env.js';
import type { ChildProcesses } from '../../shared/child-processes.js';
import { deferred } from '../../shared/deferred.js';
import { isDeviceCode } from '../../shared/gpu-faults.js';
import { CHILD_START_MS, SilenceWatch } from '../../shared/silence-watch.js';
import { Heartbeat } from './heartbeat.js';
import type { LogLine } from './log-line.js';
import { oomEvidence, readOomKills } from './oom-kills.js';
import type { Rank, RankCause, RankEnd } from './rank.js';
import { RankOutput } from './rank-output.js';

interface RankProcessOptions {
  rank: number;
  processes: Pick<ChildProcesses, 'start' | 'kill'>;
  /**
   * True if it starts with the AWS credentials of this process; otherwise `setCredentials` gives it its own, if it
   * needs any.
   */
  aws: boolean;
  /** UUID of its GPU; null: the CPU. */
  gpu: string | null;
  /** Time without a message after which the rank counts as hanging. */
  silence_ms: number;
  /** Interval of this agent's heartbeats to the rank. */
  heartbeat_ms: number;
  /** Time without a message of this agent after which the rank ends itself. */
  agent_silence_ms: number;
  log: Logger;
  onMessage(message: RankMessage): void;
  onLine(line: LogLine): void;
}

/** Output of V8 before it aborts a process with a full JavaScript heap. */
const HEAP_FULL = 'heap out of memory';

/** Rank as a child process. `ended` resolves after the process ended, or when it cannot be killed. */
export class RankProcess implements Rank {
  readonly rank: number;
  readonly ended: Promise<RankEnd>;
  /** Resolves when the process ended. */
  readonly closed: Promise<void>;

  private readonly child: ChildProcess;
  private readonly silence: SilenceWatch;
  private readonly heartbeat: Heartbeat;
  private readonly output: RankOutput;
  private readonly end = deferred<RankEnd>();
  private readonly processEnd = deferred<void>();
  /** The first event explains the end; the exit that follows is its consequence. */
  private reason: RankCause | null = null;
  private step: number | null = null;
  private readonly oomKills = readOomKills();
  private settled = false;

  constructor(private readonly options: RankProcessOptions) {
    this.rank = options.rank;
    this.ended = this.end.promise;
    this.closed = this.processEnd.promise;
    this.child = options.processes.start('rank', childEnv(options.aws, options.gpu));
    this.silence = new SilenceWatch(options.silence_ms, CHILD_START_MS, (silentMs) =>
      this.stop({ kind: 'silent', silent_ms: silentMs }),
    );
    this.heartbeat = new Heartbeat(options.heartbeat_ms, () => this.post({ kind: 'alive' }));
    this.child.on('message', (message) => this.receive(message as RankMessage));
    this.child.on('error', (error) => this.onError(error));
    // `close` follows the last line of output; `exit` may precede it.
    this.child.on('close', (code, signal) => this.onClose(code, signal));
    this.output = new RankOutput((line) => this.reportLine(line));
    this.output.read(this.child.stdout, 'stdout');
    this.output.read(this.child.stderr, 'stderr');
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  send(message: AgentMessage): void {
    this.post(message);
  }

  /** Replaces the rank's credentials for the object store. */
  setCredentials(credentials: SessionCredentials): void {
    this.post({ kind: 'credentials', credentials });
  }

  async kill(): Promise<void> {
    this.stop({ kind: 'killed' });
    await this.ended;
  }

  private post(message: AgentMessage | LocalMessage): void {
    if (this.child.connected) this.child.send(message, () => undefined);
  }

  private receive(message: RankMessage): void {
    this.silence.heard();
    if ('step' in message) this.step = message.step;
    if (message.kind === 'failed') this.reason ??= { kind: 'failed', error: this.withGpu(message.error) };
    this.options.onMessage(message);
  }

  /** Adds the GPU to device errors, to identify it. */
  private withGpu({ code, message }: RankError): RankError {
    const { gpu } = this.options;
    return { code, message: gpu !== null && isDeviceCode(code) ? `${message} (${gpu})` : message };
  }

  private stop(reason: RankCause): void {
    if (this.settled) return;
    this.reason ??= reason;
    // A rank holds no state worth saving. An unkillable one is lost with its machine.
    this.options.processes.kill(this.child, `rank ${this.rank}`, (message) =>
      this.settle({ kind: 'node_lost', message }),
    );
  }

  private onError(error: Error): void {
    if (this.child.pid === undefined) {
      this.reason ??= { kind: 'not_started', message: error.message };
      this.settle(this.reason);
      this.processEnd.resolve();
    } else {
      this.options.log.warn({ rank: this.rank, err: error }, 'channel to rank');
    }
  }

  private onClose(code: number | null, signal: NodeJS.Signals | null): void {
    this.settle(this.reason ?? (signal ? this.explain(signal) : { kind: 'exited', code: code ?? 0 }));
    this.processEnd.resolve();
  }

  /** Explains a signal that this agent did not send. */
  private explain(signal: NodeJS.Signals): RankCause {
    if (this.output.tail.some((line) => line.includes(HEAP_FULL))) {
      return { kind: 'out_of_memory', signal, evidence: 'certain: its JavaScript heap was full' };
    }
    const { longestGapMs: silentMs } = this.heartbeat;
    if (signal === 'SIGKILL' && silentMs >= this.options.agent_silence_ms) {
      return { kind: 'node_lost', message: `its agent was stopped for ${silentMs} ms` };
    }
    const evidence = signal === 'SIGKILL' ? oomEvidence(this.oomKills, readOomKills()) : null;
    return evidence === null ? { kind: 'signalled', signal } : { kind: 'out_of_memory', signal, evidence };
  }

  private settle(cause: RankCause): void {
    if (this.settled) return;
    this.settled = true;
    this.silence.close();
    this.heartbeat.close();
    this.output.close();
    this.end.resolve({ ...cause, step: this.step, output: this.output.tail });
  }

  private reportLine(line: LogLine): void {
    const { stream, message } = line;
    this.options.log.info({ rank: this.rank, stream, line: message }, 'rank output');
    this.options.onLine(line);
  }
}
