import type { PreferenceMetrics, TrustRatios } from '../../contracts/index.js';

/** Result of an optimizer step. `seconds` are wall time by phase and may overlap. */
export interface StepResult {
  /** Steps done so far, this one included. */
  step: number;
  /**
   * Mean over the targets, or the units of a preference objective, of the global batch, before the update, without
   * `aux_loss`. In a session the sum over its passes.
   */
  loss: number;
  /** Null without a preference objective. */
  preference: PreferenceMetrics | null;
  /** The routers' load balancing loss times its factor, mean over micro-batches; null where there is none. */
  aux_loss: number | null;
  /** Global L2 norm before clipping. */
  grad_norm: number;
  lr: number;
  /** Factor that the loss of this step was multiplied by; `loss` and `grad_norm` are without it. */
  loss_scale: number;
  /** LAMB's, one entry per group of parameters; empty for other optimizers and in skipped steps. */
  trust_ratios: TrustRatios[];
  /** Targets in this step. */
  tokens: number;
  /** False when a gradient was not finite and the update was skipped. */
  finite: boolean;
  skipped_steps: number;
  /** OR of the flags that all ranks passed to this step. */
  stop: number;
  seconds: {
    total: number;
    /** Reading of sequences. */
    data: number;
    forward: number;
    backward: number;
    /** Seconds that the step waited for gradients and statistics. */
    exchange: number;
    /**
     * Seconds that exchanges of gradients and their additions took, on the device where it runs them in its order; the
     * excess over `exchange` was hidden behind backward.
     */
    exchange_busy: number;
    optimizer: number;
    gather: number;
  };
  /** Bytes that this rank has sent to others: gradients to their owners, parameters and statistics to all. */
  sent: { reduced: number; gathered: number; routed: number };
}

/** The loss of an evaluation file, the same bits on every rank and for every number of ranks. */
export interface EvalResult {
  /** Mean over all targets that count, in nats per token, or over the units of a preference objective. */
  loss: number;
  /** Number of evaluated targets. */
  tokens: number;
  sequences: number;
  /** Null without a preference objective. */
  preference: PreferenceMetrics | null;
}
