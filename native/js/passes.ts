import type { StepResult } from './step-result.js';

/** Rows of a pass, one behind the other. Arrays other than `lengths` have an element per token. */
export interface PassRows {
  /** Tokens of each row, 1 to sequence_length. */
  lengths: Int32Array;
  tokens: Int32Array;
  /** The token that each position predicts; -100: none. */
  targets: Int32Array;
  /** Factors of `cross_entropy`, and of a penalty; absent: 1. */
  weights?: Float32Array;
  /** Log-probabilities of the targets under the model that drew them (`dpo`: under the reference). */
  log_probs?: Float32Array;
  advantages?: Float32Array;
}

/**
 * The loss of a pass: a sum over its targets, or over pairs in `dpo`, where row 2i is chosen and row 2i + 1 rejected.
 * The formulas are in native/model/objective/pass_loss.h.
 */
export type PassLoss =
  | { type: 'cross_entropy' }
  | { type: 'importance_sampling'; beta: number }
  | { type: 'ppo' | 'cispo'; clip_low: number; clip_high: number; beta: number }
  | { type: 'dpo'; beta: number };

/** Result of a pass, the same bits on every rank and for every number of ranks. */
export interface PassResult {
  loss: number;
  num_targets: number;
  /** Of the targets, as the tokens lie in the rows; NaN where a position has none. */
  log_probs: Float32Array;
  /**
   * Policy losses: `ratio_mean`, with clipping `clipped_share`, and with a penalty `kl`, over targets. `dpo`:
   * `accuracy`, `margin`, `reward_chosen`, `reward_rejected`, over pairs.
   */
  metrics: Record<string, number>;
}

/** Settings of one update. */
export interface OptimStep {
  lr: number;
  betas: [number, number];
  eps: number;
  /** Of the parameters that the document's `optimizer.weight_decay` applies to. */
  weight_decay: number;
  /** Largest norm of the sum of the gradients; 0: no clipping. */
  gradient_clipping: number;
}

/** A prompt, and how it continues. The fields are those of SequenceOptions. */
export interface SampleRequest {
  prompt: Int32Array;
  max_tokens: number;
  temperature: number;
  top_p: number;
  top_k: number;
  seed: number;
  /** The answer ends with the first of these that is drawn. */
  stop_tokens: Int32Array;
}

export interface SampledAnswer {
  /** With the stop token, if one ended the answer. */
  tokens: Int32Array;
  /** Of the tokens, under the model: before temperature and other restrictions. */
  log_probs: Float32Array;
  finish: 'end' | 'length';
}

/** Calls of a training session; see Trainer. */
export interface SessionCalls {
  forward(loss: PassLoss, rows: PassRows): Promise<PassResult>;
  forwardBackward(loss: PassLoss, rows: PassRows): Promise<PassResult>;
  optimStep(update: OptimStep): Promise<StepResult>;
  sample(requests: SampleRequest[]): Promise<SampledAnswer[]>;
}
