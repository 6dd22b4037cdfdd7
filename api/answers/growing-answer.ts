import { type AnswerDelta, type GeneratedText, ZerofleetError } from '../../contracts/index.js';

/** An answer while a worker computes it. */
export class GrowingAnswer {
  private waiting: AnswerDelta[] = [];
  private wake: () => void = () => undefined;
  private readonly leaving = new AbortController();
  private readonly startEvent = event();
  private readonly textEvent = event();
  /** Resolved when a worker has begun, and when there is a first delta. */
  readonly started = this.startEvent.happened;
  readonly hasText = this.textEvent.happened;
  /** Aborted when nobody reads the deltas any more. */
  readonly left = this.leaving.signal;

  start(): void {
    this.startEvent.happen();
  }

  add(deltas: readonly AnswerDelta[]): void {
    this.start();
    this.textEvent.happen();
    this.waiting.push(...deltas);
    this.wake();
  }

  /** Ends the answer, because its client has left. */
  leave(): void {
    this.leaving.abort(new ZerofleetError('sample_timeout', 'the client has left'));
  }

  /**
   * Yields each delta once, until the answer has ended.
   * @returns the answer
   * @throws its error, after the deltas
   */
  async *deltas(answer: Promise<GeneratedText>): AsyncGenerator<AnswerDelta, GeneratedText> {
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
      this.wake();
    };
    answer.then(end, end);
    while (!hasEnded || this.waiting.length > 0) {
      const deltas = this.waiting;
      this.waiting = [];
      yield* deltas;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        if (hasEnded || this.waiting.length > 0) resolve();
      });
    }
    return answer;
  }
}

function event() {
  let happen: () => void = () => undefined;
  const happened = new Promise<void>((resolve) => {
    happen = resolve;
  });
  return { happen, happened };
}
