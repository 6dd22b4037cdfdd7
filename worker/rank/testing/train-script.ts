import type { ResolvedJobSpec } from '../../../contracts/index.js';
import type { EarlyStoppingState, RankMessage } from '../../../contracts/rank-protocol.js';
import { NOT_EVALUATED } from '../../../job-document/index.js';
import type { RankTrainer, StepResult } from '../../shared/native/adapter.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import type { SaveNote, SnapshotWriter } from '../snapshot-writer.js';
import { trainLoop } from '../train-loop.js';

/** Run of the training loop, with everything that happens to it. */
export interface Script {
  steps: number;
  every_steps?: number;
  /** Other fields of `checkpoint`. */
  checkpoint?: Partial<ResolvedJobSpec['checkpoint']>;
  /** Save requests, by the step before which they arrive. */
  requests?: Record<number, number>;
  rank?: number;
  first_step?: number;
  /** Flags of the agent, by the step from which they apply. */
  agent_flags?: Record<number, number>;
  /** Flags of other ranks, by step. */
  others?: Record<number, number>;
  /** Steps before which all snapshot buffers of this rank are in use. */
  busy?: number[];
  /** Steps with non-finite gradients; at the last one the core fails. */
  skipped?: number[];
  /** Steps with non-finite gradients that the core goes on after. */
  passed_over?: number[];
  /** Losses of steps; 1 by default. */
  step_losses?: Record<number, number>;
  /** Steps without targets. */
  empty?: number[];
  max_skipped_share?: number | null;
  /** Steps between evaluations; without it there is nothing to evaluate on. */
  evaluate_every?: number;
  /** Losses by step, by the name of each evaluation; the validation data alone by default. */
  losses?: Record<string, Record<number, number>>;
  /** Settings of early stopping; null without it. */
  stopping?: { metric?: string; patience: number; min_delta?: number } | null;
  /** State of early stopping at the first step. */
  early_stopping?: EarlyStoppingState;
  failures_per_second?: number;
}

/** Durations of a step. */
const SECONDS: StepResult['seconds'] = {
  data: 0,
  total: 1,
  forward: 0.123456789,
  backward: 0.8,
  exchange: 0,
  exchange_busy: 0,
  optimizer: 0,
  gather: 0,
};

/** Runs the training loop of one rank with a scripted core. Returns what it did. */
export async function runScript({
  steps,
  every_steps,
  rank = 0,
  first_step = 0,
  checkpoint = {},
  requests = {},
  agent_flags = {},
  others = {},
  busy = [],
  skipped = [],
  passed_over = [],
  step_losses = {},
  empty = [],
  max_skipped_share = 0.5,
  evaluate_every,
  losses = { validation: {} },
  stopping = null,
  early_stopping = NOT_EVALUATED,
  failures_per_second = 1,
}: Script) {
  const passed: number[] = [];
  const saved: string[] = [];
  const evaluated: number[] = [];
  const answered: string[] = [];
  const recorded: Record<number, Record<string, number>> = {};
  const states: Record<number, EarlyStoppingState | null> = {};
  const sent: RankMessage[] = [];
  let step = first_step;
  let flags = 0;
  let request = 0;
  const trainer = {
    async step(mine: number): Promise<StepResult> {
      step++;
      passed.push(mine);
      const stop = mine | (others[step] ?? 0);
      if (step === skipped.at(-1)) throw Object.assign(new Error('no further step'), { code: 'diverged' });
      const isSkipped = skipped.includes(step) || passed_over.includes(step);
      const skippedSteps = passed_over.filter((one) => one <= step).length;
      const update = { finite: !isSkipped, skipped_steps: skippedSteps, loss_scale: 64 / step };
      return {
        step,
        loss: step_losses[step] ?? 1,
        aux_loss: null,
        preference: null,
        grad_norm: 1,
        lr: 1,
        trust_ratios: [],
        tokens: empty.includes(step) ? 0 : 1,
        ...update,
        stop,
        seconds: SECONDS,
        sent: { reduced: 0, gathered: 0, routed: 0 },
      };
    },
    async evaluate(file: number) {
      if (file === 0) evaluated.push(step);
      return {
        loss: Object.values(losses)[file]?.[step] ?? 2 / step,
        tokens: 7,
        sequences: 3,
        preference: null,
      };
    },
  } as RankTrainer;
  const spec = testSpec({ steps });
  spec.checkpoint = {
    keep: { last: 3, best: 0 },
    on_busy: 'skip',
    ...(every_steps ? { every_steps } : {}),
    ...checkpoint,
  };
  spec.train.max_skipped_share = max_skipped_share;
  if (evaluate_every !== undefined) spec.train.evaluation = { every_steps: evaluate_every, datasets: [] };
  if (stopping) spec.train.early_stopping = { metric: 'eval_loss', min_delta: 0, ...stopping };
  const evaluationFiles = Object.keys(losses).map((name) => ({ name, paths: [`/${name}`] }));
  const start = startMessage({ rank, spec, evaluation_files: evaluationFiles, failures_per_second });
  const writer = {
    get busy() {
      return busy.includes(step + 1);
    },
    async save(_: RankTrainer, policy: unknown, { save_request, eval_losses, early_stopping }: SaveNote) {
      saved.push(`${step} ${policy === start.save.final ? 'final' : 'periodic'}`);
      if (save_request > 0) answered.push(`${save_request} at ${step}`);
      if (Object.keys(eval_losses).length > 0) recorded[step] = eval_losses;
      states[step] = early_stopping;
      return 0;
    },
  } as SnapshotWriter;
  start.save.final = { ...start.save.final };
  const end = await trainLoop({
    trainer,
    writer,
    start,
    first_step,
    early_stopping: stopping && early_stopping,
    flags: () => {
      flags = agent_flags[step + 1] ?? flags;
      return flags;
    },
    saveRequest: () => {
      request = requests[step + 1] ?? request;
      return request;
    },
    // A step takes a second.
    now: () => step,
    send: async (message) => void sent.push(message),
    onStep: () => undefined,
  });
  return { end, passed, saved, sent, evaluated, answered, recorded, states };
}
