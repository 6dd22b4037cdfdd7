/** A session of a test fleet, whose calls are appended as the API does. */
import { setTimeout as delay } from 'node:timers/promises';
import { type CallResult, isFinal, type StoredCall } from '../../../../../contracts/index.js';
import { callText, readCallResult } from '../../../../../formats/calls/call-log.js';
import { callKey } from '../../../../../formats/checkpoint/layout.js';
import type { Fleet } from '../../../../testing/fleet.js';
import { SAVE } from '../../../../testing/session-calls.js';
import type { TestSpec } from '../../../../testing/start-message.js';

export class TestSession {
  private appended = 0;

  private constructor(
    private readonly fleet: Fleet,
    readonly id: string,
  ) {}

  static async create(fleet: Fleet, { train, ...spec }: TestSpec = {}): Promise<TestSession> {
    const id = await fleet.submit({ train: { session: {}, ...train }, ...spec });
    return new TestSession(fleet, id);
  }

  /** Appends calls without waiting for their results. Returns the number of the last one. */
  async append(...calls: StoredCall[]): Promise<number> {
    const { objects, store } = this.fleet;
    for (const call of calls) {
      this.appended += 1;
      const text = Buffer.from(callText(call));
      await objects.put(callKey(this.id, this.appended), text);
      await store.countCalls(this.id, {
        appended: this.appended,
        answered: 0,
        is_finished: call.type === 'finish',
        bytes: text.length,
      });
      const { state, reason } = (await store.getJob(this.id)) ?? {};
      if (state === 'paused' && reason === 'idle') await store.resumeJob(this.id);
    }
    return this.appended;
  }

  /** Returns the result of a call when it is counted. Throws when the job has ended without it. */
  async result(number: number): Promise<CallResult> {
    const { store, objects } = this.fleet;
    for (;;) {
      // A job that has ended counts no more results, so its state is read first.
      const job = await store.getJob(this.id);
      const counters = await store.getCalls(this.id);
      if ((counters?.answered ?? 0) >= number) return readCallResult(objects, this.id, number);
      if (job === null || isFinal(job.state))
        throw new Error(
          `call ${number} has no result, and the job is ${job?.state}: ${JSON.stringify(job?.failure)}`,
        );
      await delay(20);
    }
  }

  /** Appends calls one after the other, each after the result of the one before. Returns the results. */
  async run(...calls: StoredCall[]): Promise<CallResult[]> {
    const results: CallResult[] = [];
    for (const call of calls) results.push(await this.result(await this.append(call)));
    return results;
  }

  /** Saves. Returns the call that loads this state. */
  async save(): Promise<Extract<StoredCall, { type: 'load_state' }>> {
    const [saved] = await this.run(SAVE);
    const { data } = await this.fleet.store.listCheckpoints(this.id);
    const found = data.find(({ id }) => saved && 'checkpoint' in saved && saved.checkpoint === id);
    if (!found) throw new Error(`not saved: ${JSON.stringify(saved)}`);
    return { type: 'load_state', checkpoint: found.id, prefix: found.prefix, optimizer: true };
  }

  /** Returns the results of all calls. */
  async results(): Promise<CallResult[]> {
    return Promise.all(Array.from({ length: this.appended }, (_, i) => this.result(i + 1)));
  }
}
