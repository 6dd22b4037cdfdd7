import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { defaultsOf } from '../../common/defaults.js';
import { fieldError } from '../../common/field-error.js';
import { architectureOf } from '../../model/families/families.js';
import { reinforcementOf, takesCalls } from '../../objective.js';
import { resolveLossScale } from './loss-scale.js';
import { resolveLrSchedule } from './lr-schedule.js';

type Train = NonNullable<JobSpec['train']>;

export function resolveSession(session: Train['session']): Pick<ResolvedJobSpec['train'], 'session'> {
  return session === undefined ? {} : { session: { ...defaultsOf('SessionSpec'), ...session } };
}

/** Fields that steps of calls do not read. */
const OF_SEQUENCES = {
  data: ['mixture', 'chat', 'packing', 'validation_fraction'],
  train: ['loss_scale', 'max_skipped_share', 'overrides', 'ema', 'early_stopping'],
} as const;

/** Fields that describe the data or a number of steps, which an objective has. */
const OF_DATA = {
  data: ['dataset', 'uri', 'format', 'seed'],
  train: ['steps', 'epochs', 'lr_schedule', 'objective', 'evaluation'],
} as const;

/** Programs name the states that they have saved. */
export const SESSION_KEEPS = { last: 100 };

/** The rates of a session are those of its calls. */
export const SESSION_SCHEDULE = resolveLrSchedule({ type: 'constant' });

/** @param given the document as sent, to find fields without effect */
export function checkCalls(given: JobSpec, resolved: ResolvedJobSpec): FieldError[] {
  const { train } = resolved;
  if (!takesCalls(train)) return [];
  const isSession = train.session !== undefined;
  const reason = isSession ? 'the steps of a session come from calls' : 'the objective grpo samples its data';
  // A fork has them from the resolved document of its session.
  const neutral: Record<string, unknown> = {
    ...defaultsOf('DataSpec'),
    ...defaultsOf('TrainSpec'),
    seed: defaultsOf('DataSpec').seed,
    packing: isSession ? 'split' : 'whole',
    lr_schedule: SESSION_SCHEDULE,
    loss_scale: resolveLossScale({}, train.precision),
  };
  const sections: [string, object | undefined, readonly string[]][] = [
    ['', given, ['deepspeed_config']],
    ['/data', given.data, [...OF_SEQUENCES.data, ...(isSession ? OF_DATA.data : [])]],
    ['/train', given.train, [...OF_SEQUENCES.train, ...(isSession ? OF_DATA.train : [])]],
  ];
  const useless = sections.flatMap(([at, section = {}, names]) =>
    Object.entries(section)
      .filter(
        ([name, value]) => names.includes(name) && JSON.stringify(value) !== JSON.stringify(neutral[name]),
      )
      .map(([name]) => {
        const message = `${reason}, so ${name} has no effect; omit it`;
        return fieldError(`${at}/${name}`, 'field_without_effect', message);
      }),
  );
  return [...useless, ...checkValues(resolved, isSession ? 'a session' : 'the objective grpo')];
}

/** Checks values that passes and updates of calls do not support. @param who has the calls, in messages */
function checkValues({ train, zero, model }: ResolvedJobSpec, who: string): FieldError[] {
  const { optimizer, precision, adapter } = train;
  const { embedding_dropout, attention_dropout, residual_dropout } = architectureOf(model.config);
  const rules: [boolean, string, string, string | undefined][] = [
    [optimizer.type !== 'adamw', '/train/optimizer/type', `${who} updates with adamw`, 'adamw'],
    [precision === 'fp16', '/train/precision', `${who} trains in bf16 or fp32`, 'bf16'],
    [
      reinforcementOf(train) !== null && restoreOf(model) === 'continue',
      '/model/init_from/restore',
      `${who} begins at step 0`,
      'weights',
    ],
    [zero.stage !== 2, '/zero/stage', `${who} shards with stage 2`, '2'],
    [
      adapter !== undefined && adapter.dropout > 0,
      '/train/adapter/dropout',
      `${who} has no dropout: a pass must not depend on those before it`,
      '0',
    ],
    [
      embedding_dropout + attention_dropout + residual_dropout > 0,
      '/model/config',
      `${who} has no dropout: set the dropout fields of the model to 0`,
      undefined,
    ],
    ...optimizer.param_groups.map((group, i): [boolean, string, string, string | undefined] => [
      group.lr !== null && group.frozen !== true,
      `/train/optimizer/param_groups/${i}/lr`,
      `with ${who} all groups have the learning rate of the step; omit it`,
      undefined,
    ]),
  ];
  return rules.flatMap(([broken, at, message, suggestion]) =>
    broken ? [fieldError(at, 'session_unsupported', message, suggestion)] : [],
  );
}

function restoreOf({ init_from }: ResolvedJobSpec['model']): string | undefined {
  return init_from !== null && 'checkpoint' in init_from ? init_from.restore : undefined;
}
