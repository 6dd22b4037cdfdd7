/** An answer as it grows. */

import type { Sample, SampleChoice, SampleDelta, SampledToken } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/errors.js';
import { pause } from '../../typescript/pause.js';

export interface Answer {
  phase: 'waiting' | 'loading' | 'writing' | 'done' | 'stopped' | 'failed';
  text: string;
  /** Empty without log-probabilities. */
  tokens: readonly SampledToken[];
  /** Time to the first text; null before it. */
  first_ms: number | null;
  /** Of the whole answer; null before its end. */
  end: { tokens: number; tokens_per_s: number | null; finish_reason: SampleChoice['finish_reason'] } | null;
  /** Why it failed. */
  error?: unknown;
}

export const WAITING: Answer = { phase: 'waiting', text: '', tokens: [], first_ms: null, end: null };

/** Wait before a model that is loading is asked again, unless the server tells another. */
const LOADING_S = 2;

/**
 * Yields an answer as it grows, at last done, stopped or failed. A model that is loading is asked again when the server
 * says.
 * @param ask requests the answer anew
 * @param signal stops it
 * @param now clock in milliseconds
 */
export async function* growing(
  ask: (signal: AbortSignal) => AsyncGenerator<SampleDelta, Sample>,
  signal: AbortSignal,
  now: () => number = () => performance.now(),
): AsyncGenerator<Answer, void> {
  let answer = WAITING;
  yield answer;
  for (;;) {
    const askedAt = now();
    try {
      const deltas = ask(signal);
      for (;;) {
        const { value, done } = await deltas.next();
        answer = done ? ended(answer, value, now() - askedAt) : grown(answer, value, now() - askedAt);
        yield answer;
        if (done) return;
      }
    } catch (error) {
      if (signal.aborted) return yield { ...answer, phase: 'stopped' };
      const waitS = loadingSeconds(error);
      if (waitS === null) return yield { ...answer, phase: 'failed', error };
      answer = { ...WAITING, phase: 'loading' };
      yield answer;
      await pause(waitS * 1000, signal).catch(() => undefined);
      if (signal.aborted) return yield { ...answer, phase: 'stopped' };
    }
  }
}

function grown(answer: Answer, { text, logprobs }: SampleDelta, atMs: number): Answer {
  return {
    ...answer,
    phase: 'writing',
    text: answer.text + text,
    tokens: [...answer.tokens, ...logprobs],
    first_ms: answer.first_ms ?? atMs,
  };
}

function ended(answer: Answer, { choices: [choice], usage }: Sample, atMs: number): Answer {
  if (choice === undefined) throw new Error('a sample without an answer');
  const { text, logprobs, finish_reason } = choice;
  const firstMs = answer.first_ms ?? atMs;
  const tokens = usage.completion_tokens;
  // The first token's time is that of reading the prompt.
  const tokensPerS = tokens > 1 && atMs > firstMs ? ((tokens - 1) * 1000) / (atMs - firstMs) : null;
  return {
    phase: 'done',
    text,
    tokens: logprobs,
    first_ms: firstMs,
    end: { tokens, tokens_per_s: tokensPerS, finish_reason },
  };
}

/** Seconds until a model that is loading is asked again; null for other errors. */
function loadingSeconds(error: unknown): number | null {
  if (!(error instanceof ApiError && error.code === 'model_loading')) return null;
  return error.retryAfterS ?? LOADING_S;
}
