import type { AgentMessage, RankError, RankMessage, StartMessage } from '../../contracts/rank-protocol.js';
import type { LogLine } from './log-line.js';

/** Why a rank ended. Each says something else about whose doing it was. */
export type RankCause =
  /** It said that it can't go on, and why. */
  | { kind: 'failed'; error: RankError }
  /** It exited by itself; 0 only when it was told to. */
  | { kind: 'exited'; code: number }
  /** Somebody else killed it (a person, the machine), or it crashed. */
  | { kind: 'signalled'; signal: NodeJS.Signals }
  /** Memory ran out and it was ended for that; `evidence` says from what this is known and how surely. */
  | { kind: 'out_of_memory'; signal: NodeJS.Signals; evidence: string }
  /** It lives, but said nothing for so long that it must hang; it was killed then. */
  | { kind: 'silent'; silent_ms: number }
  /** It lives and speaks, but all others gave up waiting for it in an exchange. */
  | { kind: 'stuck'; waiting: number }
  /** The operating system could not start it. */
  | { kind: 'not_started'; message: string }
  /** The agent on whose machine it ran is gone, or can't be reached any more; or its process can't be killed. */
  | { kind: 'node_lost'; message: string }
  /** An agent killed it, for another reason. */
  | { kind: 'killed' };

/** How a rank ended, with what is known of its last moments. */
export type RankEnd = RankCause & {
  /** Steps that it had done; null before it said so for the first time. */
  step: number | null;
  /** The last lines that it wrote to its standard output and error, oldest first. */
  output: string[];
};

/** One rank, wherever it runs. `ended` always resolves, exactly once, when nothing more comes from it. */
export interface Rank {
  readonly rank: number;
  readonly ended: Promise<RankEnd>;
  /** Sends when the rank is still there; a message to one that is gone is lost, its end will be told. */
  send(message: AgentMessage): void;
  /** Kills the rank and waits for its end. Idempotent. */
  kill(): Promise<void>;
}

/** What comes from one rank. Neither may throw or block. */
export interface RankListener {
  onMessage(message: RankMessage): void;
  /** A line of its log; all of them come before its end is told. */
  onLine(line: LogLine): void;
}

/** A place where ranks can be started: this machine, or another one through its agent. */
export interface RankHost {
  /** Name of the machine, for people. */
  readonly host: string;
  /** Starts a rank. It never throws: what goes wrong is the rank's end. */
  start(start: StartMessage, listener: RankListener): Rank;
}
