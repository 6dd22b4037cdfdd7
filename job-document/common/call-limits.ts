/** Samples of a call, and their tokens together. */
export const MAX_SAMPLES = 1024;
export const MAX_SAMPLED_TOKENS = 2 ** 20;
