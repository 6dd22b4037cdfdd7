/** Results of a session's calls that the fake core computes: functions of the call alone. */

import type { PassResult, PassRows, SampledAnswer, SampleRequest } from '../shared/native/adapter.js';

/** Every target has the log-probability -1. */
export function fakePass({ targets }: PassRows): PassResult {
  const logProbs = Float32Array.from(targets, (target) => (target < 0 ? Number.NaN : -1));
  const numTargets = targets.filter((target) => target >= 0).length;
  return { loss: numTargets, num_targets: numTargets, log_probs: logProbs, metrics: {} };
}

/** The prompt from its beginning, over and over. */
export function fakeAnswer({ prompt, max_tokens }: SampleRequest): SampledAnswer {
  const tokens = Int32Array.from({ length: max_tokens }, (_, i) => prompt[i % prompt.length] ?? 0);
  return { tokens, log_probs: new Float32Array(max_tokens).fill(-1), finish: 'length' };
}
