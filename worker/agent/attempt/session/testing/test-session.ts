/** A session of a test fleet, whose calls are appended as the API does. */
import { setTimeout as delay } from 'node:timers/promises';
import type { CallResult, StoredCall } from '../../../../../contracts/index.js';
import { callText, readCallResult } from '../../../../../formats/calls/call-log.js';
import { callKey } from '../../../../../formats/checkpoint/layout.js';
import type { Fleet } from '../../../../testing/fleet.js';
import type { TestSpec } from '../../../../testing/start-message.js';

export const PASS = {
  type: 'forward_backward',
  loss: { type: 'cross_entropy' },
  rows: [{ tokens: [1, 2, 3], targets: [2, 3, -100] }],
} satisfies StoredCall;

export const UPDATE = {
  type: 'optim_step',
  lr: 0.5,
  betas: [0.9, 0.95],
  eps: 1e-8,
  weight_decay: 0,
  gradient_clipping: 1,
} satisfies StoredCall;

export const SAVE = { type: 'save_state' } satisfies StoredCall;
export const FINISH = { type: 'finish' } satisfies StoredCall;

export const updates = (count: number): StoredCall[] =>
  Array.from({ length: count }, () => [PASS, UPDATE]).flat();

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
        is_finished: call.type === 'finish',
        bytes: text.length,
      });
    }
    return this.appended;
  }

  /** Returns the result of a call when it is counted. Throws when the job fails before. */
  async result(number: number): Promise<CallResult> {
    for (;;) {
      const counters = await this.fleet.store.getCalls(this.id);
      if ((counters?.answered ?? 0) >= number) return readCallResult(this.fleet.objects, this.id, number);
      const job = await this.fleet.store.getJob(this.id);
      if (job?.state === 'failed') throw new Error(JSON.stringify(job.failure));
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
