import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Zerofleet } from '../../clients/typescript/index.js';
import type { Random } from './random.js';

/** Questions, which differ in their seed. */
const QUESTIONS = 6;
const LANES = 2;
const MAX_TOKENS = 300;
const PROMPT = 'to be or not';
const RETRY_MS = 150;
/** Time after the last fault within which every question must be answered. */
const LAST_ANSWER_MS = 120_000;

/** Answers that stream while faults are injected. Each one must be whole and equal to the answer without faults. */
export class Answers {
  readonly counts = { answers: 0, broken_streams: 0 };
  /** Descriptions of violated guarantees. */
  readonly wrong: string[] = [];
  private readonly expected: string[] = [];

  private constructor(
    private readonly client: Zerofleet,
    private readonly checkpoint: string,
    private readonly random: Random,
  ) {}

  /** Asks every question once, without faults. */
  static async prepare(client: Zerofleet, checkpoint: string, random: Random): Promise<Answers> {
    const answers = new Answers(client, checkpoint, random);
    for (let seed = 0; seed < QUESTIONS; seed++) {
      const { choices } = await client.samples.create(checkpoint, answers.question(seed));
      answers.expected.push(choices[0]?.text ?? '');
    }
    return answers;
  }

  /** Asks until `signal`. A broken stream is asked for again, as a client would. */
  async run(signal: AbortSignal): Promise<void> {
    const lane = async () => {
      while (!signal.aborted) await this.answerOf(this.random.between(0, QUESTIONS - 1), signal);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  private async answerOf(seed: number, end: AbortSignal): Promise<void> {
    for (let lastTry = Number.POSITIVE_INFINITY; ; await sleep(RETRY_MS)) {
      if (await this.ask(seed)) return;
      if (end.aborted) lastTry = Math.min(lastTry, Date.now() + LAST_ANSWER_MS);
      if (Date.now() < lastTry) continue;
      this.wrong.push(`question ${seed} was not answered after the last fault`);
      return;
    }
  }

  /** Streams one answer. @returns false if the stream broke */
  private async ask(seed: number): Promise<boolean> {
    const expected = this.expected[seed] ?? '';
    let text = '';
    try {
      const stream = this.client.samples.stream(this.checkpoint, this.question(seed));
      let next = await stream.next();
      for (; !next.done; next = await stream.next()) text += next.value.text;
      const whole = next.value.choices[0]?.text;
      if (text !== expected || whole !== expected)
        this.wrong.push(`question ${seed}: ${JSON.stringify({ expected, streamed: text, answered: whole })}`);
      this.counts.answers++;
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429)
        this.wrong.push(`question ${seed}: ${error.message}`);
      if (!expected.startsWith(text))
        this.wrong.push(`question ${seed} began with ${JSON.stringify(text)}, not with its answer`);
      this.counts.broken_streams++;
      return error instanceof ApiError && error.status < 500 && error.status !== 429;
    }
  }

  private question(seed: number) {
    return { prompt: PROMPT, max_tokens: MAX_TOKENS, temperature: 0.8, seed };
  }
}
