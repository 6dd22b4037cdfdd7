import { setImmediate as otherWork } from 'node:timers/promises';
import { type Sample, type SampleDelta, type SampleReply, ZerofleetError } from '../../../contracts/index.js';
import { describeError } from '../../http/describe-error.js';
import { toProblem } from '../../http/problem.js';
import { sseMessage } from '../../http/sse.js';

/** Characters after which other requests are answered first. */
const TURN = 64 * 1024;

/** The texts of a sample as they grow. */
export class SampleStream {
  /** Characters and tokens of each choice that were passed on. */
  private readonly told = new Map<number, { text: number; logprobs: number }>();
  private waiting: SampleDelta[] = [];
  private wake: () => void = () => undefined;
  private start_now: () => void = () => undefined;
  private readonly started = new Promise<true>((resolve) => {
    this.start_now = () => resolve(true);
  });

  private readonly leaving = new AbortController();
  /** Aborted when nobody reads the messages any more. */
  readonly left = this.leaving.signal;

  constructor(private readonly request_id: string) {}

  start(): void {
    this.start_now();
  }

  add(deltas: readonly SampleDelta[]): void {
    this.start();
    for (const { index, text, logprobs } of deltas) {
      const told = this.toldOf(index);
      this.told.set(index, {
        text: told.text + text.length,
        logprobs: told.logprobs + logprobs.length,
      });
      this.waiting.push({ index, text, logprobs });
    }
    this.wake();
  }

  /** Resolves with true when texts may come, with false if the answer is there before: it may be an error. */
  begins(answer: Promise<SampleReply>): Promise<boolean> {
    return Promise.race([this.started, answer.then(({ ok }) => ok)]);
  }

  /**
   * Server-sent events until the end of the answer, which has no texts: the deltas told them. An error is an event, because the status
   * was sent.
   */
  async *messages(
    answer: Promise<SampleReply>,
    wholeOf: (reply: SampleReply) => Sample,
  ): AsyncGenerator<string> {
    try {
      yield* this.deltas(answer);
      const { choices, ...sample } = wholeOf(await answer);
      this.add(choices.flatMap((choice) => this.restOf(choice)));
      yield* this.taken();
      const ends = choices.map(({ index, finish_reason }) => ({ index, finish_reason }));
      yield sseMessage({ event: 'end', data: { ...sample, choices: ends } });
    } catch (error) {
      yield sseMessage({ event: 'error', data: toProblem(describeError(error), this.request_id) });
    } finally {
      this.leaving.abort(new ZerofleetError('sample_timeout', 'the client has left'));
    }
  }

  private async *deltas(answer: Promise<SampleReply>): AsyncGenerator<string> {
    let ended = false;
    const end = () => {
      ended = true;
      this.wake();
    };
    answer.then(end, end);
    while (!ended) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        if (ended || this.waiting.length > 0) resolve();
      });
      yield* this.taken();
    }
  }

  private async *taken(): AsyncGenerator<string> {
    let length = 0;
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      const message = sseMessage({ event: 'delta', data: next });
      yield message;
      length += message.length;
      if (length < TURN) continue;
      length = 0;
      await otherWork();
    }
  }

  /** Returns what no delta told of a choice. */
  private restOf({ index, text, logprobs }: SampleDelta): SampleDelta[] {
    const told = this.toldOf(index);
    const rest = { text: text.slice(told.text), logprobs: logprobs.slice(told.logprobs) };
    return rest.text === '' && rest.logprobs.length === 0 ? [] : [{ index, ...rest }];
  }

  private toldOf(index: number) {
    return this.told.get(index) ?? { text: 0, logprobs: 0 };
  }
}
