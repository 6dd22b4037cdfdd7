/** Log-probabilities of answers. */
import type { AnswerToken, SampledToken } from '../../contracts/index.js';
import { lateList } from './pieces.js';

type LikelyToken = SampledToken['top'][number];

/** Returns tokens as the contract has them. Each is made when it is written. */
export function sampledTokens(tokens: readonly AnswerToken[]): SampledToken[] {
  return lateList(function* () {
    for (const { top, ...token } of tokens) yield { ...withBytes(token), top: top.map(withBytes) };
  });
}

function withBytes({ token, bytes, logprob }: AnswerToken['top'][number]): LikelyToken {
  return { token, bytes: bytes ?? [...Buffer.from(token)], logprob };
}

/** Counts the log-probabilities of tokens and of the most likely ones. */
export function numLogprobs(choices: readonly { logprobs: readonly AnswerToken[] }[]): number {
  let count = 0;
  for (const { logprobs } of choices) for (const { top } of logprobs) count += 1 + top.length;
  return count;
}
