import { isDeepStrictEqual } from 'node:util';
import type { Zerofleet } from '../../clients/typescript/index.js';
import { type Call, type CallResult, isFinal, type Job } from '../../contracts/index.js';
import { smallSession, textPass, textRows, UPDATE } from '../support/sessions.js';
import type { Random } from './random.js';
import { retryUntilAnswered } from './retrying-client.js';
import { SESSION_VARIANT, type Workload } from './workload.js';

const UPDATES = 40;
/** Calls without a result at once. */
const AHEAD = 12;
/** Shorter than the limit of a retried request. */
const WAIT_SECONDS = 5;
const MAX_RANKS = 4;
/** Maximum kills between two checkpoints. */
const MAX_ERRORS = 1000;
/** Maximum characters of results that differ. */
const MESSAGE = 2000;

/** Passes of different lengths, samples and updates. */
const SCRIPT: readonly Call[] = Array.from({ length: UPDATES }, (_, update): Call[] => [
  textPass(3 * update, 1 + (update % 5)),
  ...(update % 4 === 1 ? [textPass(100 + update, 2)] : []),
  ...(update % 5 === 2 ? [sampleOf(update)] : []),
  UPDATE,
]).flat();

function sampleOf(update: number): Call {
  const prompts = textRows(update, 2).map(({ tokens }) => tokens);
  return { type: 'sample', prompts, n: 2, max_tokens: 8, seed: 1000 * update };
}

/** Sessions that run while faults are injected. Every result must be that of the session without faults. */
export class Sessions {
  readonly counts = { sessions: 0, calls: 0 };
  /** Descriptions of violated guarantees. */
  readonly wrong: string[] = [];
  private expected: CallResult[] = [];

  private constructor(
    private readonly client: Zerofleet,
    private readonly workload: Workload,
    private readonly random: Random,
  ) {}

  /** Runs the calls once, without faults, on one rank. */
  static async prepare(client: Zerofleet, workload: Workload, random: Random): Promise<Sessions> {
    const sessions = new Sessions(client, workload, random);
    const { results, job } = await sessions.session('reference-session', 1);
    sessions.expected = results;
    workload.addReference(job);
    return sessions;
  }

  /** Runs one session after another until `signal`; resolves when the last one has ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const name = `session-${this.counts.sessions}`;
      this.counts.sessions++;
      try {
        this.compare(name, (await this.session(name, this.random.between(1, MAX_RANKS))).results);
      } catch (error) {
        this.wrong.push(`${name}: ${error}`);
      }
    }
  }

  private compare(name: string, results: readonly CallResult[]): void {
    this.counts.calls += results.length;
    const index = results.findIndex((result, i) => !isDeepStrictEqual(result, this.expected[i]));
    if (index < 0) return;
    const [result, expected] = [results[index], this.expected[index]];
    this.wrong.push(
      `call ${index + 1} of ${name}: ${JSON.stringify({ result, expected }).slice(0, MESSAGE)}`,
    );
  }

  private async session(name: string, ranks: number): Promise<{ results: CallResult[]; job: Job }> {
    const spec = { ...smallSession(name, ranks), retry: { max_errors: MAX_ERRORS } };
    const submitted = await this.workload.submit(name, spec, SESSION_VARIANT);
    const { id } = submitted;
    const results: CallResult[] = [];
    let number = 0;
    for (const call of SCRIPT) {
      await this.append(id, ++number, call);
      if (number - results.length >= AHEAD) results.push(await this.result(id, results.length + 1));
    }
    while (results.length < number) results.push(await this.result(id, results.length + 1));
    // A checkpoint that the store has refused is an error of its call.
    for (let saved = false; !saved; saved = !('error' in (await this.result(id, number))))
      await this.append(id, ++number, { type: 'finish' });
    submitted.job = await retryUntilAnswered(() =>
      this.client.jobs.until(id, ({ state }) => isFinal(state) || state === 'paused'),
    );
    return { results, job: submitted.job };
  }

  private append(id: string, number: number, call: Call): Promise<unknown> {
    return retryUntilAnswered(() => this.client.calls.put(id, number, call));
  }

  /** @throws Error if the session has ended without the result */
  private async result(id: string, number: number): Promise<CallResult> {
    for (;;) {
      const { state, failure } = await retryUntilAnswered(() => this.client.jobs.get(id));
      const waitSeconds = isFinal(state) ? 0 : WAIT_SECONDS;
      const { result } = await retryUntilAnswered(() =>
        this.client.calls.answer(id, number, { waitSeconds }),
      );
      if (result) return result;
      if (isFinal(state)) throw new Error(`${state} without a result of call ${number}: ${failure?.message}`);
    }
  }
}
