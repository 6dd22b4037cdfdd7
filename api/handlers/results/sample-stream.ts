import {
  type PlacedDelta,
  type Sample,
  type SampleDelta,
  type SampleReply,
  ZerofleetError,
} from '../../../contracts/index.js';
import { describeError } from '../../http/describe-error.js';
import { toProblem } from '../../http/problem.js';
import { sseMessage } from '../../http/sse.js';

/** What was passed on of an answer. */
interface Told {
  text: number;
  logprobs: number;
}

/** The texts of a sample as they grow. A worker that takes over begins anew with the same texts: what is known is not told again. */
export class SampleStream {
  private readonly told = new Map<number, Told>();
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

  add(deltas: readonly PlacedDelta[]): void {
    this.start();
    for (const delta of deltas) {
      const fresh = this.take(delta);
      if (fresh !== null) this.waiting.push(fresh);
    }
    this.wake();
  }

  /** Resolves with true when texts may come, with false if the answer is there before: it may be an error. */
  begins(answer: Promise<SampleReply>): Promise<boolean> {
    return Promise.race([this.started, answer.then(({ ok }) => ok)]);
  }

  /** Server-sent events until the end of the answer. An error is an event, because the status was sent. */
  async *messages(
    answer: Promise<SampleReply>,
    wholeOf: (reply: SampleReply) => Sample,
  ): AsyncGenerator<string> {
    try {
      yield* this.deltas(answer);
      const sample = wholeOf(await answer);
      for (const { finish_reason: _, ...choice } of sample.choices) {
        const rest = this.take({ ...choice, text_at: 0, logprobs_at: 0 });
        if (rest !== null) yield sseMessage({ event: 'delta', data: rest });
      }
      yield sseMessage({ event: 'end', data: sample });
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
      for (const data of this.waiting.splice(0)) yield sseMessage({ event: 'delta', data });
    }
  }

  /** Returns the part of a delta that was not taken before, or null. */
  private take({ index, text, text_at, logprobs, logprobs_at }: PlacedDelta): SampleDelta | null {
    const told = this.told.get(index) ?? { text: 0, logprobs: 0 };
    const fresh = {
      index,
      text: text.slice(Math.max(0, told.text - text_at)),
      logprobs: logprobs.slice(Math.max(0, told.logprobs - logprobs_at)),
    };
    if (fresh.text === '' && fresh.logprobs.length === 0) return null;
    this.told.set(index, {
      text: told.text + fresh.text.length,
      logprobs: told.logprobs + fresh.logprobs.length,
    });
    return fresh;
  }
}
