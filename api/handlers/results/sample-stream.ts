import { isDeepStrictEqual } from 'node:util';
import {
  type PlacedDelta,
  type Sample,
  type SampleDelta,
  type SampledToken,
  type SampleReply,
  ZerofleetError,
} from '../../../contracts/index.js';
import { describeError } from '../../http/describe-error.js';
import { toProblem } from '../../http/problem.js';
import { sseMessage } from '../../http/sse.js';

/** What was passed on of an answer. */
interface Told {
  text: string;
  logprobs: SampledToken[];
}

/**
 * The texts of a sample as they grow. A worker that takes over begins anew with the same texts: what is known is not told again. One with
 * other numerics may write other texts, which ends the stream with an error.
 */
export class SampleStream {
  private readonly told = new Map<number, Told>();
  private waiting: SampleDelta[] = [];
  private broken: unknown = null;
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
    try {
      for (const delta of deltas) {
        const fresh = this.take(delta);
        if (fresh !== null) this.waiting.push(fresh);
      }
    } catch (error) {
      this.broken = error;
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
        if (ended || this.broken !== null || this.waiting.length > 0) resolve();
      });
      if (this.broken !== null) throw this.broken;
      for (const data of this.waiting.splice(0)) yield sseMessage({ event: 'delta', data });
    }
  }

  /** Returns the part of a delta that was not taken before, or null. @throws ZerofleetError `rank_lost` if it contradicts what was */
  private take({ index, text, text_at, logprobs, logprobs_at }: PlacedDelta): SampleDelta | null {
    const told: Told = this.told.get(index) ?? { text: '', logprobs: [] };
    const known_text = told.text.slice(text_at);
    const known_logprobs = told.logprobs.slice(logprobs_at);
    const isSame =
      startsAlike(text, known_text) &&
      known_logprobs.every((known, at) => at >= logprobs.length || isDeepStrictEqual(known, logprobs[at]));
    if (!isSame)
      throw new ZerofleetError(
        'rank_lost',
        'the worker that answered was lost, and the one that took over has other numerics and another text: send the request again',
      );
    const fresh = {
      index,
      text: text.slice(known_text.length),
      logprobs: logprobs.slice(known_logprobs.length),
    };
    if (fresh.text === '' && fresh.logprobs.length === 0) return null;
    told.text += fresh.text;
    told.logprobs.push(...fresh.logprobs);
    this.told.set(index, told);
    return fresh;
  }
}

/** True if one of the texts begins with the other. */
function startsAlike(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}
