import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../platform/process/root.js';
import { LEAVES_PER_STEP, lengthOf, microBatchOf, type Training } from '../training.js';

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
  const script = join(projectRoot(), 'bench', 'peers', 'pytorch_train.py');
  const options = {
    config,
    threads: ranks * threads,
    'micro-batch': microBatchOf(training),
    length: lengthOf(training),
    leaves: training.leaves ?? LEAVES_PER_STEP,
    'warmup-steps': warmupSteps,
    steps,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const checkpointing = training.activation_checkpointing ? ['--activation-checkpointing'] : [];
  const layers = training.layers === undefined ? [] : ['--layers', String(training.layers)];
  const adapter = training.adapter === undefined ? [] : ['--adapter', String(training.adapter.rank)];
  const { stdout } = await promisify(execFile)(python, [
    script,
    ...args,
    ...checkpointing,
    ...layers,
    ...adapter,
  ]);
  return JSON.parse(stdout) as PeerReport;
}
