/**
 * Number of steps of a document, and everything that depends on it: the same at submission and when a worker has
 * counted the samples.
 */
import type {
  Checkpoint,
  FieldError,
  JobSpec,
  ResolvedJobSpec,
  TrainableJobSpec,
} from '../../../contracts/index.js';
import { fieldError } from '../../common/field-error.js';
import { reinforcementOf } from '../../objective.js';
import { checkPatience } from '../evaluation/early-stopping.js';
import { checkOverrides } from './loss-scale.js';
import { checkLengths, completeLrSchedule } from './lr-schedule.js';

type Train = NonNullable<JobSpec['train']>;

const AT = '/train/epochs';
/** Maximum of `train.steps` in the schema. */
const MAX_STEPS = 100_000_000;

export interface StepSources {
  /** Number of training samples: sequences, or units of preferences; null if they are not counted yet. */
  samples: number | null;
  /** Checkpoint at whose step the job begins; null: it begins at step 0. */
  continues: Pick<Checkpoint, 'id' | 'step'> | null;
}

/** Returns whether the document has its number of steps, or takes them from calls. Nothing trains without. */
export function isTrainable(spec: ResolvedJobSpec): spec is TrainableJobSpec {
  return (spec.train.steps ?? spec.train.session) !== undefined;
}

export function checkEpochs({ steps, epochs }: Pick<Train, 'steps' | 'epochs'>): FieldError[] {
  if (steps === undefined || epochs === undefined) return [];
  return [fieldError(AT, 'exactly_one_of', 'set steps or epochs, not both')];
}

/**
 * Replaces the epochs of a document by the fewest steps that read every training sample so often, and fills the
 * defaults that depend on steps. Without `samples` epochs stay, and rules about steps hold so far.
 */
export function resolveSteps(
  spec: ResolvedJobSpec,
  { samples, continues }: StepSources,
): { spec: ResolvedJobSpec; errors: FieldError[] } {
  const { epochs, ...train } = spec.train;
  const { prompts_per_step: batch = train.global_batch_size, num_iterations: repeats = 1 } =
    reinforcementOf(train) ?? {};
  if (train.steps !== undefined) return complete(spec, { ...train, steps: train.steps }, continues);
  if (epochs === undefined || samples === null) return { spec, errors: checkSteps(spec.train, continues) };
  const steps = repeats * Math.max(1, Math.ceil((epochs * samples) / batch));
  if (steps <= MAX_STEPS) return complete(spec, { ...train, steps }, continues);
  const message = `${epochs} epochs are ${steps} steps; the maximum is ${MAX_STEPS}`;
  const suggestion = Math.floor((MAX_STEPS * batch) / (repeats * samples));
  return { spec, errors: [fieldError(AT, 'out_of_range', message, String(suggestion))] };
}

function complete(
  spec: ResolvedJobSpec,
  given: ResolvedJobSpec['train'] & { steps: number },
  continues: StepSources['continues'],
): { spec: TrainableJobSpec; errors: FieldError[] } {
  const train = { ...given, lr_schedule: completeLrSchedule(given.lr_schedule, given.steps) };
  return { spec: { ...spec, train }, errors: checkSteps(train, continues) };
}

/** Checks the rules between the number of steps and other fields. */
function checkSteps(train: ResolvedJobSpec['train'], continues: StepSources['continues']): FieldError[] {
  return [
    ...checkLengths(train),
    ...checkOverrides(train),
    ...checkPatience(train),
    ...checkBeyond(train, continues),
  ];
}

function checkBeyond(
  { steps = Infinity }: ResolvedJobSpec['train'],
  continues: StepSources['continues'],
): FieldError[] {
  if (continues === null || steps > continues.step) return [];
  const message = `the job has ${steps} steps, and checkpoint ${continues.id} is at step ${continues.step}`;
  return [fieldError('/train/steps', 'steps_not_beyond_checkpoint', message, String(continues.step + 1))];
}
