import { type ChildProcess, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { AgentMessage, RankError, RankMessage } from '../../contracts/rank-protocol.js';
import type { Logger } from '../../platform/logging.js';
import { childEnv } from '../child-env.js';
import { deferred } from '../deferred.js';
import { SilenceWatch } from './silence-watch.js';

/** How a rank ended. Each says something else about whose doing it was. */
export type RankEnd =
  /** It said that it can't go on, and why. */
  | { kind: 'failed'; error: RankError; step: number }
  /** It exited by itself; 0 only when it was told to. */
  | { kind: 'exited'; code: number; output: string }
  /** Somebody else killed it (the kernel's OOM killer, a person), or it crashed. */
  | { kind: 'signalled'; signal: NodeJS.Signals; output: string }
  /** It lives, but said nothing for so long that it must hang; it was killed then. */
  | { kind: 'silent'; silent_ms: number }
  /** The operating system could not start it. */
  | { kind: 'not_started'; message: string }
  /** This agent killed it, for another reason. */
  | { kind: 'killed' };

export interface RankProcessOptions {
  rank: number;
  /** Absolute path of the rank's main module. */
  program: string;
  /** Silence after which the rank counts as hanging. */
  silence_ms: number;
  log: Logger;
  onMessage(message: RankMessage): void;
}

/** Until a rank's first word: loading the program and the core takes long when many ranks start at once. */
const START_MS = 60_000;
/** Lines of a rank's output that are kept to explain its death. */
const KEPT_LINES = 20;

/** One rank as a child process. `ended` always resolves, exactly once, after the process is gone. */
export class RankProcess {
  readonly rank: number;
  readonly ended: Promise<RankEnd>;

  private readonly child: ChildProcess;
  private readonly silence: SilenceWatch;
  private readonly output: string[] = [];
  private readonly end = deferred<RankEnd>();
  /** What happened first explains the end; the exit that follows is only its consequence. */
  private reason: RankEnd | null = null;
  private gone = false;

  constructor(private readonly options: RankProcessOptions) {
    this.rank = options.rank;
    this.ended = this.end.promise;
    this.child = fork(options.program, [], {
      env: childEnv(),
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Inspector flags and test loaders of this process are none of a rank's business.
      execArgv: [],
    });
    this.silence = new SilenceWatch(options.silence_ms, START_MS, (silent_ms) =>
      this.stop({ kind: 'silent', silent_ms }),
    );
    this.child.on('message', (message) => this.receive(message as RankMessage));
    this.child.on('error', (error) => this.onError(error));
    // `close` comes after the last line of output, `exit` may come before it.
    this.child.on('close', (code, signal) => this.onClose(code, signal));
    for (const stream of [this.child.stdout, this.child.stderr]) this.keepLines(stream);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Sends when the rank is still there; a message to a dead rank is lost, its end will be told. */
  send(message: AgentMessage): void {
    if (this.child.connected) this.child.send(message, () => undefined);
  }

  /** Kills the rank and waits until it is gone. Idempotent. */
  async kill(): Promise<void> {
    this.stop({ kind: 'killed' });
    await this.ended;
  }

  private receive(message: RankMessage): void {
    this.silence.heard();
    if (message.kind === 'failed')
      this.reason ??= { kind: 'failed', error: message.error, step: message.step };
    this.options.onMessage(message);
  }

  private stop(reason: RankEnd): void {
    if (this.gone) return;
    this.reason ??= reason;
    // Not SIGTERM: a hanging or stopped process would not handle it, and nothing of value dies with a rank.
    this.child.kill('SIGKILL');
  }

  private onError(error: Error): void {
    if (this.child.pid === undefined) {
      this.reason ??= { kind: 'not_started', message: error.message };
      this.settle(this.reason);
    } else {
      this.options.log.warn({ rank: this.rank, err: error }, 'channel to rank');
    }
  }

  private onClose(code: number | null, signal: NodeJS.Signals | null): void {
    const output = this.output.join('\n');
    this.settle(
      this.reason ??
        (signal ? { kind: 'signalled', signal, output } : { kind: 'exited', code: code ?? 0, output }),
    );
  }

  private settle(end: RankEnd): void {
    this.gone = true;
    this.silence.close();
    this.end.resolve(end);
  }

  private keepLines(stream: Readable | null): void {
    if (!stream) return;
    createInterface({ input: stream }).on('line', (line) => {
      this.output.push(line);
      if (this.output.length > KEPT_LINES) this.output.shift();
      this.options.log.info({ rank: this.rank, line }, 'rank output');
    });
  }
}
