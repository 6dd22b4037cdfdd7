import { LEAVES_PER_STEP, lengthOf, microBatchOf, type Training } from '../training.js';
import { runPython } from './python.js';

/** Measurements of another trainer. */
interface PeerReport {
  name: string;
  params: number;
  tokens_per_s: number;
  peak_rss_bytes: number;
  /** Before it created a model. */
  start_rss_bytes: number;
}

/**
 * The same training with PyTorch in one process with the threads of all ranks. `python` must have torch; rejects with
 * the end of its output if it fails.
 */
export async function runPytorch(
  python: string,
  training: Training,
  warmupSteps: number,
): Promise<PeerReport> {
  const { config, ranks, threads } = training;
  const steps = training.steps - warmupSteps;
  const options = {
    config,
    threads: ranks * threads,
    'micro-batch': microBatchOf(training),
    length: lengthOf(training),
    leaves: training.leaves ?? LEAVES_PER_STEP,
    'warmup-steps': warmupSteps,
    steps,
    layers: training.layers,
    adapter: training.adapter?.rank,
  };
  const checkpointing = training.activation_checkpointing ? ['--activation-checkpointing'] : [];
  return runPython(python, 'pytorch_train.py', options, ...checkpointing);
}
