import type { SampleChoice } from '../../contracts/index.js';

/** Tokens whose log-probabilities an answer reports. */
export function numReported({ choices }: { choices: readonly Pick<SampleChoice, 'logprobs'>[] }): number {
  return choices.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
}
