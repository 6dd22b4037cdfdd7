import type { CallResult, Checkpoint } from '../../../../contracts/index.js';
import { type Deferred, deferred } from '../../../shared/deferred.js';
import { toRankError } from '../../../shared/errors.js';
import type { JobCalls } from './job-calls.js';

/** A call that all ranks have run. */
export interface RunCall {
  number: number;
  /** Steps after it. */
  step: number;
  /** JSON of its result; null: the checkpoint of the step. */
  result: string | null;
  /** State digest after a change of the state, or null. */
  digest: string | null;
}

/** Stores the results of a generation's calls, in their order. */
export class CallResults {
  private tail: Promise<void> = Promise.resolve();
  /** For each result that is not stored yet, the promise that it is. */
  private readonly open = new Map<number, Promise<void>>();
  private readonly saves = new Map<number, Deferred<CallResult>>();
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
    const stored = before.then(() => this.store(call));
    this.tail = stored;
    this.open.set(call.number, stored);
    // The error of an earlier result is known.
    stored.catch((error: unknown) => before.then(() => this.failed(error)).catch(() => undefined));
  }

  /** Resolves when the results up to this number are stored. Rejects when one could not be. */
  async until(number: number): Promise<void> {
    await this.open.get(number);
  }

  saved({ id, step }: Checkpoint): void {
    this.saveOf(step).resolve({ checkpoint: id, step });
  }

  notSaved(step: number, error: unknown): void {
    const { code, message } = toRankError(error);
    this.saveOf(step).resolve({
      error: { code: 'checkpoint_save_failed', message: `the state was not saved: ${code}: ${message}` },
    });
  }

  /** Gives up results that wait for a save. Resolves when the others are stored. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.ended.reject(new Error('the ranks have ended'));
    await this.tail.catch(() => undefined);
  }

  /** An error after the end is none of the generation: the next one runs the call again. */
  private failed(error: unknown): void {
    if (!this.isClosed) this.onFailed(error);
  }

  private async store({ number, step, result, digest }: RunCall): Promise<void> {
    await this.calls.answer(number, Buffer.from(await this.textOf({ step, result, digest })), digest);
    this.open.delete(number);
  }

  private async textOf({ step, result, digest }: Omit<RunCall, 'number'>): Promise<string> {
    if (result === null)
      return JSON.stringify(await Promise.race([this.saveOf(step).promise, this.ended.promise]));
    return digest === null ? result : JSON.stringify({ ...JSON.parse(result), state_digest: digest });
  }

  private saveOf(step: number): Deferred<CallResult> {
    const known = this.saves.get(step) ?? deferred<CallResult>();
    this.saves.set(step, known);
    return known;
  }
}
