import { isDeepStrictEqual } from 'node:util';
import {
  type AnswerChoice,
  type AnswerDelta,
  type AnswerEnd,
  type PositionedDelta,
  ZerofleetError,
} from '../../contracts/index.js';
import { numLogprobs } from './logprobs.js';

type Received = Omit<AnswerDelta, 'index'>;

/** An answer, put together from the deltas of its workers. */
export class ReceivedAnswer {
  /** Log-probabilities that were received. */
  numLogprobs = 0;
  private readonly choices = new Map<number, Received>();

  /**
   * Takes deltas of a worker. One that takes over begins anew with the same texts.
   * @returns what is new
   * @throws ZerofleetError `rank_lost` for other texts: they come from a worker with other numerics
   */
  take(deltas: readonly PositionedDelta[]): AnswerDelta[] {
    return deltas.flatMap((delta) => this.newPart(delta) ?? []);
  }

  /** Forgets all texts: the next worker sends them again. */
  clear(): void {
    this.choices.clear();
    this.numLogprobs = 0;
  }

  /** Returns the choices with their texts. */
  whole(choices: AnswerEnd['choices']): AnswerChoice[] {
    return choices.map(({ index, finish_reason }) => {
      return { text: '', logprobs: [], ...this.choices.get(index), index, finish_reason };
    });
  }

  private newPart({ text, text_at, logprobs, logprobs_at, ...common }: PositionedDelta): AnswerDelta | null {
    const received: Received = this.choices.get(common.index) ?? { ...common, text: '', logprobs: [] };
    const knownText = received.text.slice(text_at);
    const knownLogprobs = received.logprobs.slice(logprobs_at);
    const isSame =
      startsAlike(text, knownText) &&
      knownLogprobs.every((known, at) => at >= logprobs.length || isDeepStrictEqual(known, logprobs[at]));
    if (!isSame)
      throw new ZerofleetError(
        'rank_lost',
        'the worker that answered was lost, and the one that took over has other numerics and another text: send the request again',
      );
    const added = {
      ...common,
      text: text.slice(knownText.length),
      logprobs: logprobs.slice(knownLogprobs.length),
    };
    if (added.text === '' && added.logprobs.length === 0) return null;
    received.text += added.text;
    received.logprobs.push(...added.logprobs);
    this.numLogprobs += numLogprobs([added]);
    this.choices.set(common.index, received);
    return added;
  }
}

/** True if one of the texts begins with the other. */
function startsAlike(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}
