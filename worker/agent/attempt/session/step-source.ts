import type {
  AgentMessage,
  CallMessage,
  LoadedMessage,
  RankError,
} from '../../../../contracts/rank-protocol.js';
import type { CompleteSave } from '../../checkpoint/save-collector.js';

/** Sends a message to every rank, in one order for all. */
export type Tell = (message: AgentMessage) => void;

/** Source of the steps of a generation's ranks. None of the methods that return nothing may throw or block. */
export interface StepSource {
  /** All ranks run, after this step. */
  begin(step: number): void;
  /** Passes on what the ranks are to do: STEP_FLAGS, and the newest save request. */
  control(flags: number, saveRequest: number): void;
  onCall(rank: number, message: CallMessage): void;
  /** Returns whether the error that ended the ranks is that of a call, which the next ranks refuse. */
  refuses(error: RankError): boolean;
  /** Returns metrics of a step that the ranks do not know; null without any. */
  metricsOf(step: number): Record<string, number> | null;
  /** Verifies what the ranks have loaded since they run; a rejection kills them. */
  verifyLoad(messages: readonly LoadedMessage[]): Promise<void>;
  /** Resolves when a complete save may become a checkpoint, to figures of evaluations that the ranks do not know. */
  beforeCommit(save: CompleteSave): Promise<Readonly<Record<string, number>>>;
  /** A save is the newest checkpoint now. */
  saved(save: CompleteSave): void;
  notSaved(step: number, error: unknown): void;
  /** Ends it after the ranks have ended and their saves are settled. */
  close(): Promise<void>;
}

/** The ranks read their steps from their data, and pass the flags to them. */
export class DataSteps implements StepSource {
  constructor(private readonly tell: Tell) {}

  control(flags: number, saveRequest: number): void {
    this.tell({ kind: 'flags', flags, save_request: saveRequest });
  }

  begin(): void {}
  onCall(): void {}
  refuses(): boolean {
    return false;
  }
  metricsOf(): null {
    return null;
  }
  async verifyLoad(): Promise<void> {}
  async beforeCommit() {
    return {};
  }
  saved(): void {}
  notSaved(): void {}
  async close(): Promise<void> {}
}
