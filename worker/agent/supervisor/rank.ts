import type { AgentMessage, RankError, RankMessage, StartMessage } from '../../../contracts/rank-protocol.js';
import type { LogLine } from './log-line.js';

/** Causes of a rank's end. */
export type RankCause =
  /** It reported an error. */
  | { kind: 'failed'; error: RankError }
  /** It exited by itself; 0 only after `exit`. */
  | { kind: 'exited'; code: number }
  /** It crashed, or another process killed it. */
  | { kind: 'signalled'; signal: NodeJS.Signals }
  /** It was killed because memory ran out; `evidence` states source and certainty. */
  | { kind: 'out_of_memory'; signal: NodeJS.Signals; evidence: string }
  /** It sent nothing for too long and was killed. */
  | { kind: 'silent'; silent_ms: number }
  /** It responds, but all others timed out waiting for it in an exchange. */
  | { kind: 'stuck'; waiting: number }
  /** The operating system could not start it. */
  | { kind: 'not_started'; message: string }
  /** The agent on its machine is gone or unreachable, or its process cannot be killed. */
  | { kind: 'node_lost'; message: string }
  /** An agent killed it for another reason. */
  | { kind: 'killed' };

/** End of a rank, with its last known state. */
export type RankEnd = RankCause & {
  /** Steps done; null before the first report. */
  step: number | null;
  /** Last lines of its standard output and error, oldest first. */
  output: string[];
};

/** Rank on any machine. `ended` always resolves, exactly once, after everything else that comes from the rank. */
export interface Rank {
  readonly rank: number;
  readonly ended: Promise<RankEnd>;
  /** Sends a message. It is lost if the rank has ended. */
  send(message: AgentMessage): void;
  /** Kills the rank and waits for its end. Idempotent. */
  kill(): Promise<void>;
}

/** Receiver of a rank's messages and lines. Neither method may throw or block. */
export interface RankListener {
  onMessage(message: RankMessage): void;
  /** Receives a line of its log; all lines precede its end. */
  onLine(line: LogLine): void;
}

/** Machine that can start ranks: this one, or another one through its agent. */
export interface RankHost {
  /** Host name of the machine, for messages. */
  readonly host: string;
  /** Starts a rank. Never throws: an error becomes the rank's end. */
  start(start: StartMessage, listener: RankListener): Rank;
}
