import type { FieldError, JobPatch, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { overridesBefore } from '../overrides.js';
import { checkRanks } from './resources.js';
import { checkOverrides } from './steps/loss-scale.js';

/** Limit of the contract for a whole document. */
const MAX_LABELS = 64;

interface PatchedSpec {
  spec: ResolvedJobSpec;
  /** Ranks that the job should run on from now on. */
  requested_ranks: number;
  /** Names of the parts that differ. */
  changed: string[];
  errors: FieldError[];
}

/** State of the job when its document is changed. */
interface PatchedAt {
  /** Ranks requested so far; kept as far as the new range allows. */
  requested_ranks: number;
  steps_done: number;
}

/**
 * Applies a merge patch (RFC 7396) to the document of a job. A patch may only change parts without influence
 * on the arithmetic of completed steps.
 */
export function patchSpec(
  before: ResolvedJobSpec,
  patch: JobPatch,
  { requested_ranks, steps_done }: PatchedAt,
): PatchedSpec {
  const ranks = { ...before.resources.ranks, ...patch.resources?.ranks };
  const spec: ResolvedJobSpec = {
    ...before,
    name: patch.name ?? before.name,
    priority: patch.priority ?? before.priority,
    labels: merged(before.labels, patch.labels),
    notes: patch.notes ?? before.notes,
    train: { ...before.train, overrides: patch.train?.overrides ?? before.train.overrides },
    resources: { ...before.resources, ranks },
    limits: merged(before.limits, patch.limits),
  };
  const wanted = patch.resources?.ranks.preferred ?? requested_ranks;
  const errors = [
    ...checkLabels(spec),
    ...checkRanks(spec),
    ...checkLaneCount(spec),
    ...checkOverrides(spec.train),
    ...checkPast(before, spec, steps_done),
  ];
  return {
    spec,
    requested_ranks: Math.min(Math.max(wanted, ranks.min), ranks.max),
    changed: (['name', 'priority', 'labels', 'notes', 'train', 'resources', 'limits'] as const).filter(
      (part) => JSON.stringify(spec[part]) !== JSON.stringify(before[part]),
    ),
    errors,
  };
}

/** Checks that the overrides of completed steps are unchanged. */
function checkPast(before: ResolvedJobSpec, spec: ResolvedJobSpec, stepsDone: number): FieldError[] {
  const [old, now] = [before, spec].map(({ train }) => overridesBefore(train.overrides, stepsDone));
  if (JSON.stringify(old) === JSON.stringify(now)) return [];
  return [
    fieldError(
      '/train/overrides',
      'override_step_completed',
      `${stepsDone} steps are completed: keep the entries below step ${stepsDone} as they are (${JSON.stringify(old)}), and add ` +
        `others from step ${stepsDone} on`,
    ),
  ];
}

/** Members of the patch replace those of the target; null removes one. */
function merged<T extends object>(target: T, patch: object = {}): T {
  const members = Object.entries({ ...target, ...patch }).filter(([, value]) => value !== null);
  return Object.fromEntries(members) as T;
}

function checkLabels({ labels }: ResolvedJobSpec): FieldError[] {
  const count = Object.keys(labels).length;
  if (count <= MAX_LABELS) return [];
  return [
    fieldError('/labels', 'wrong_length', `the job would have ${count} labels; the maximum is ${MAX_LABELS}`),
  ];
}

/** Checks the ranks against the lanes, which are part of the arithmetic and cannot change. */
function checkLaneCount({ zero, resources }: ResolvedJobSpec): FieldError[] {
  const { lanes } = zero;
  if (zero.stage !== 1 || lanes === undefined || resources.ranks.max <= lanes) return [];
  return [
    fieldError(
      '/resources/ranks/max',
      'lanes_out_of_range',
      `the job has ${lanes} lanes (zero.lanes), which limit the number of its ranks`,
      String(lanes),
    ),
  ];
}
