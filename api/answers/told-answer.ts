import { isDeepStrictEqual } from 'node:util';
import {
  type AnswerEnd,
  type PlacedDelta,
  type SampleChoice,
  type SampleDelta,
  ZerofleetError,
} from '../../contracts/index.js';

type Told = Pick<SampleChoice, 'text' | 'logprobs'>;

/** The texts of an answer, put together from what workers tell. */
export class ToldAnswer {
  /** Log-probabilities that were taken. */
  num_logprobs = 0;
  private readonly told = new Map<number, Told>();

  /**
   * Takes deltas of a worker. One that takes over begins anew with the same texts.
   * @returns what is new
   * @throws ZerofleetError `rank_lost` for other texts: they come from a worker with other numerics
   */
  take(deltas: readonly PlacedDelta[]): SampleDelta[] {
    return deltas.flatMap((delta) => this.freshOf(delta) ?? []);
  }

  /** Forgets all texts: they are told anew. */
  clear(): void {
    this.told.clear();
    this.num_logprobs = 0;
  }

  /** Returns the choices with their texts. */
  whole(choices: AnswerEnd['choices']): SampleChoice[] {
    return choices.map(({ index, finish_reason }) => {
      const { text, logprobs } = this.told.get(index) ?? { text: '', logprobs: [] };
      return { index, text, finish_reason, logprobs };
    });
  }

  private freshOf({ index, text, text_at, logprobs, logprobs_at }: PlacedDelta): SampleDelta | null {
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
    this.num_logprobs += numLogprobs([fresh]);
    this.told.set(index, told);
    return fresh;
  }
}

/** Counts the log-probabilities of tokens and of the most likely ones. */
export function numLogprobs(choices: readonly Pick<SampleChoice, 'logprobs'>[]): number {
  let count = 0;
  for (const { logprobs } of choices) for (const { top } of logprobs) count += 1 + top.length;
  return count;
}

/** True if one of the texts begins with the other. */
function startsAlike(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}
