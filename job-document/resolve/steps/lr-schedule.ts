import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { defaultsOf } from '../../common/defaults.js';
import { fieldError } from '../../common/field-error.js';

type LrSchedule = NonNullable<NonNullable<JobSpec['train']>['lr_schedule']>;
type ResolvedTrain = ResolvedJobSpec['train'];
type ResolvedLrSchedule = ResolvedTrain['lr_schedule'];

const AT = '/train/lr_schedule';

/** Returns the schedule without the defaults that depend on the number of steps. */
export function resolveLrSchedule({ decay_steps, ...rest }: LrSchedule = {}): ResolvedLrSchedule {
  const schedule = { ...defaultsOf('LrScheduleSpec'), ...rest };
  return schedule.type === 'wsd' && decay_steps !== undefined ? { ...schedule, decay_steps } : schedule;
}

/** Fills the defaults that depend on the number of steps. */
export function completeLrSchedule(schedule: ResolvedLrSchedule, steps: number): ResolvedLrSchedule {
  return schedule.type === 'wsd' ? { decay_steps: Math.ceil(steps / 10), ...schedule } : schedule;
}

/** @param given the schedule of the document, to find fields without effect */
export function checkLrSchedule(given: LrSchedule | undefined, train: ResolvedTrain): FieldError[] {
  const { optimizer, lr_schedule: schedule } = train;
  const errors: FieldError[] = [];
  if (given?.decay_steps !== undefined && schedule.type !== 'wsd') {
    errors.push(
      fieldError(
        `${AT}/decay_steps`,
        'field_without_effect',
        `decay_steps has no effect with the schedule ${schedule.type}`,
      ),
    );
  }
  if (schedule.min_lr > optimizer.lr) {
    errors.push(
      fieldError(
        `${AT}/min_lr`,
        'min_lr_above_lr',
        `min_lr ${schedule.min_lr} is greater than the peak rate ${optimizer.lr}`,
      ),
    );
  }
  if (schedule.warmup_start_lr > optimizer.lr) {
    errors.push(
      fieldError(
        `${AT}/warmup_start_lr`,
        'warmup_start_lr_above_lr',
        `warmup_start_lr ${schedule.warmup_start_lr} is greater than the peak rate ${optimizer.lr}`,
      ),
    );
  }
  return errors;
}

/** Checks that the phases fit into the steps. */
export function checkLengths({ lr_schedule, steps = Infinity }: ResolvedTrain): FieldError[] {
  const { warmup_steps, decay_steps = 0 } = lr_schedule;
  if (warmup_steps > steps) {
    return [
      fieldError(
        `${AT}/warmup_steps`,
        'warmup_longer_than_training',
        `warmup_steps ${warmup_steps} is greater than steps ${steps}`,
        String(steps),
      ),
    ];
  }
  if (warmup_steps + decay_steps > steps) {
    const left = steps - warmup_steps;
    return [
      fieldError(
        `${AT}/decay_steps`,
        'decay_longer_than_training',
        `decay_steps ${decay_steps} after warmup_steps ${warmup_steps} is greater than steps ${steps}`,
        left > 0 ? String(left) : undefined,
      ),
    ];
  }
  return [];
}
