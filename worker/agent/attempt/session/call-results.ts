import type { CallResult, Checkpoint } from '../../../../contracts/index.js';
import { type Deferred, deferred } from '../../../shared/deferred.js';
import { toRankError } from '../../../shared/errors.js';
import type { JobCalls } from './job-calls.js';

/** A call that all ranks have run. */
export interface RunCall {
  number: number;
  /** Steps after it. */
  step: number;
  /** UTF-8 of the JSON of its result; null: the checkpoint of the step. */
  result: Uint8Array | null;
  /** State digest after a change of the state, or null. */
  digest: string | null;
}

/** The newest save of a step. */
interface StepSave extends Deferred<CallResult> {
  /** Null while it is in progress. */
  result: CallResult | null;
}

/** Stores the results of a generation's calls, in their order. */
export class CallResults {
  private tail: Promise<void> = Promise.resolve();
  /** For each result that is not stored yet, the promise that it is. */
  private readonly open = new Map<number, Promise<void>>();
  /** By step. */
  private readonly saves = new Map<number, StepSave>();
  /** Rejects at the end: no save comes after it. */
  private readonly ended = deferred<never>();
  private isClosed = false;

  /** @param onFailed called with the first error before the end, after which no result is stored */
  constructor(
    private readonly calls: Pick<JobCalls, 'answer'>,
    private readonly onFailed: (error: unknown) => void,
  ) {
    this.ended.promise.catch(() => undefined);
  }

  add(call: RunCall): void {
    const before = this.tail;
    // A later save of the step is not the one of this call.
    const save = call.result === null ? this.saveOf(call.step).promise : null;
    const stored = before.then(() => this.store(call, save));
    this.tail = stored;
    this.open.set(call.number, stored);
    // The error of an earlier result is known.
    stored.catch((error: unknown) => before.then(() => this.failed(error)).catch(() => undefined));
    // No later call has the result of an earlier step.
    for (const [step, { result }] of this.saves)
      if (step < call.step && result !== null) this.saves.delete(step);
  }

  /** Resolves when the results up to this number are stored. Rejects when one could not be. */
  async until(number: number): Promise<void> {
    await this.open.get(number);
  }

  /**
   * Begins a save of a step, unless the step is saved or is being saved.
   * @param waits for the end of a save in progress; another one begins if it fails
   * @returns whether a save begins
   */
  async beginSave(step: number, waits: boolean): Promise<boolean> {
    const before = this.saves.get(step);
    if (before) {
      const result = waits ? await Promise.race([before.promise, this.ended.promise]) : before.result;
      if (result === null || 'checkpoint' in result) return false;
    }
    this.saves.set(step, newSave());
    return true;
  }

  saved({ id, step }: Checkpoint): void {
    this.endSave(step, { checkpoint: id, step });
  }

  notSaved(step: number, error: unknown): void {
    const { code, message } = toRankError(error);
    this.endSave(step, {
      error: { code: 'checkpoint_save_failed', message: `the state was not saved: ${code}: ${message}` },
    });
  }

  /** Gives up the results that wait for a save, and those behind them. */
  giveUp(): void {
    this.isClosed = true;
    this.ended.reject(new Error('the ranks have ended'));
  }

  /** Gives up what waits for a save. Resolves when the other results are stored. */
  async close(): Promise<void> {
    this.giveUp();
    await this.tail.catch(() => undefined);
  }

  /** An error after the end is none of the generation: the next one runs the call again. */
  private failed(error: unknown): void {
    if (!this.isClosed) this.onFailed(error);
  }

  private async store({ number, result, digest }: RunCall, save: Promise<CallResult> | null): Promise<void> {
    const saved = save && (await Promise.race([save, this.ended.promise]));
    const content = saved ? Buffer.from(JSON.stringify(saved)) : withDigest(result, digest);
    await this.calls.answer(number, content, digest);
    this.open.delete(number);
  }

  private endSave(step: number, result: CallResult): void {
    const save = this.saveOf(step);
    save.result = result;
    save.resolve(result);
  }

  private saveOf(step: number): StepSave {
    const known = this.saves.get(step) ?? newSave();
    this.saves.set(step, known);
    return known;
  }
}

function newSave(): StepSave {
  return { ...deferred<CallResult>(), result: null };
}

/** Results without a digest may have many megabytes, and pass as bytes. */
function withDigest(result: Uint8Array | null, digest: string | null): Buffer {
  const { buffer, byteOffset, byteLength } = result ?? new Uint8Array();
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  if (digest === null) return bytes;
  return Buffer.from(JSON.stringify({ ...JSON.parse(bytes.toString('utf8')), state_digest: digest }));
}
