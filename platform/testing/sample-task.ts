import type { SampleTask } from '../../contracts/index.js';

/** A request for a sample as workers get it. */
export const SAMPLE_TASK: SampleTask = {
  prompt: 'to',
  tools: [],
  tool_choice: 'auto',
  response_format: { type: 'text' },
  max_tokens: 4,
  temperature: 0,
  top_k: 0,
  top_p: 1,
  seed: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: {},
  stop: [],
  n: 1,
  logprobs: null,
  weights: 'trained',
};
