import {
  type Evaluation,
  type RankMessage,
  STEP_FLAGS,
  type StartMessage,
} from '../../contracts/rank-protocol.js';
import type { RankTrainer, StepResult } from '../native/adapter.js';
import { SkippedRun } from './skipped-run.js';
import type { SnapshotWriter } from './snapshot-writer.js';

export interface TrainLoopOptions {
  trainer: RankTrainer;
  writer: SnapshotWriter;
  start: StartMessage;
  /** Steps done already. */
  first_step: number;
  /** Bits that the agent wants passed on now. */
  flags(): number;
  send(message: RankMessage): Promise<void>;
  onStep(step: number): void;
}

export interface TrainLoopEnd {
  step: number;
  /** The agreed bits that stopped the training; 0 when the last step was done. */
  flags: number;
}

/**
 * Steps until the end of training or until the ranks agree to stop. Every decision is taken from what is equal on all
 * ranks: the step number and the OR-ed flags; so all of them save the same steps and stop after the same one.
 */
export async function trainLoop(options: TrainLoopOptions): Promise<TrainLoopEnd> {
  const { trainer, writer, start } = options;
  const total = start.spec.train.steps;
  let step = options.first_step;
  let checkpointAsked = 0;
  const skips = new SkippedRun();
  while (step < total) {
    const asked = options.flags();
    // A request to save counts once: it ends with the step that carried it.
    const fresh = asked & STEP_FLAGS.checkpoint & ~checkpointAsked;
    checkpointAsked = asked & STEP_FLAGS.checkpoint;
    const busy = writer.busy ? STEP_FLAGS.snapshots_busy : 0;
    const result = await trainer.step((asked & ~STEP_FLAGS.checkpoint) | fresh | busy).catch((error) => {
      throw skips.explain(error, step);
    });
    skips.after(result);
    step = result.step;
    options.onStep(step);
    if (step === options.first_step + 1) await options.send({ kind: 'memory', parts: trainer.memory() });
    const stop = result.stop & (STEP_FLAGS.pause | STEP_FLAGS.cancel);
    const evaluated = isEvaluated(step, start) && !(stop & STEP_FLAGS.cancel);
    const evaluation = evaluated ? await evaluate(trainer) : null;
    if (start.rank === 0) await options.send(steppedMessage(result, evaluation, start));

    if (stop & STEP_FLAGS.cancel) return { step, flags: stop };
    if (stop || step === total) {
      await writer.save(trainer, start.save.final);
      return { step, flags: stop };
    }
    if (isPeriodicSave(result, start)) await writer.save(trainer, start.save.periodic);
  }
  return { step, flags: 0 };
}

function isPeriodicSave(result: StepResult, start: StartMessage): boolean {
  if (result.stop & STEP_FLAGS.snapshots_busy) return false;
  return result.step % start.spec.checkpoint.every_steps === 0 || (result.stop & STEP_FLAGS.checkpoint) !== 0;
}

/** A function of the step alone, so that a job that is interrupted is evaluated after the same steps. */
function isEvaluated(step: number, { validation_file, spec }: StartMessage): boolean {
  const { eval_every_steps, steps } = spec.train;
  if (validation_file === null || eval_every_steps === undefined) return false;
  return step % eval_every_steps === 0 || step === steps;
}

async function evaluate(trainer: RankTrainer): Promise<Evaluation> {
  const started = performance.now();
  const { loss, tokens, sequences } = await trainer.evaluate();
  return { loss, tokens, sequences, seconds: (performance.now() - started) / 1000 };
}

function steppedMessage(
  result: StepResult,
  evaluation: Evaluation | null,
  { spec: { train } }: StartMessage,
): RankMessage {
  const { step, loss, grad_norm, lr, finite, skipped_steps, loss_scale, seconds } = result;
  return {
    kind: 'stepped',
    step,
    loss,
    grad_norm,
    lr,
    tokens: train.global_batch_size * train.sequence_length,
    finite,
    skipped_steps,
    loss_scale,
    seconds: seconds.total,
    evaluation,
  };
}
