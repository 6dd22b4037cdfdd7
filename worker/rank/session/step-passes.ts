import type { RankMessage } from '../../../contracts/rank-protocol.js';
import type { PassResult, PassRows, StepResult } from '../../shared/native/adapter.js';
import { roundedSeconds } from '../step-seconds.js';

/** Passes of one step. */
export class StepPasses {
  tokens = 0;
  private loss = 0;
  private targets = 0;
  /** Sums of the metrics over targets. */
  private readonly sums = new Map<string, number>();
  /** Duration of the passes, and of the update. */
  seconds = 0;

  add({ loss, num_targets, metrics }: PassResult, { tokens }: PassRows, seconds: number): void {
    this.loss += loss;
    this.targets += num_targets;
    for (const [name, mean] of Object.entries(metrics))
      this.sums.set(name, (this.sums.get(name) ?? 0) + mean * num_targets);
    this.tokens += tokens.length;
    this.seconds += seconds;
  }

  /** Returns rank 0's message of the step. Its loss is the mean over the targets. */
  stepped(result: StepResult, totalTokens: number): RankMessage {
    const { step, grad_norm, lr, finite, skipped_steps, seconds } = result;
    return {
      kind: 'stepped',
      step,
      loss: this.loss / this.targets,
      aux_loss: result.aux_loss,
      preference: null,
      passes: Object.fromEntries([...this.sums].map(([name, sum]) => [name, sum / this.targets])),
      grad_norm,
      lr,
      trust_ratios: [],
      tokens: this.tokens,
      total_tokens: totalTokens,
      padding: 0,
      finite,
      skipped_steps,
      loss_scale: 1,
      seconds: roundedSeconds({ ...seconds, total: this.seconds }),
      evaluations: [],
      early_stopping: null,
    };
  }
}
