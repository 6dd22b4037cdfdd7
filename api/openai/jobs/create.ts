/** Documents of jobs from requests to create a fine-tuning job. */
import type { Grader, JobSpec } from '../../../contracts/index.js';
import { type Static, type TSchema, Type } from '../../../platform/schema.js';
import { notSupported } from '../errors.js';
import { LABELS, VALIDATION_FILE } from '../labels.js';
import type { BaseModel } from '../models.js';
import { nullable, parserOf } from '../pages.js';

const MAX_LABELS = 16;
const DEFAULT_EPOCHS = 3;
/** Rates of `learning_rate_multiplier` 1, usual ones for adapters of rank 16. */
const RATES = { supervised: 2e-4, dpo: 5e-5, reinforcement: 5e-5 };
const DEFAULT_BETA = 0.1;
/** Samples of a prompt with `compute_multiplier` 1. */
export const DEFAULT_GROUP = 8;

const strict = { additionalProperties: false };
const auto = <T extends TSchema>(schema: T) => nullable(Type.Union([Type.Literal('auto'), schema]));
const Hyperparameters = {
  n_epochs: auto(Type.Integer({ minimum: 1, maximum: 1000 })),
  batch_size: auto(Type.Integer({ minimum: 1, maximum: 256 })),
  learning_rate_multiplier: auto(Type.Number({ exclusiveMinimum: 0, maximum: 1000 })),
};
const Supervised = Type.Object(Hyperparameters, strict);
const Dpo = Type.Object(
  { ...Hyperparameters, beta: auto(Type.Number({ exclusiveMinimum: 0, maximum: 2 })) },
  strict,
);

const Reinforcement = Type.Object(
  {
    ...Hyperparameters,
    /** Has no equivalent: a model that reasons decides itself how long. */
    reasoning_effort: nullable(Type.Literal('default')),
    /** Samples of a prompt, relative to the default. */
    compute_multiplier: auto(Type.Number({ exclusiveMinimum: 0, maximum: 64 })),
    eval_interval: auto(Type.Integer({ minimum: 1 })),
    eval_samples: auto(Type.Integer({ minimum: 1 })),
  },
  strict,
);

const Body = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 255 }),
    training_file: Type.String({ minLength: 1, maxLength: 100 }),
    validation_file: nullable(Type.String({ minLength: 1, maxLength: 100 })),
    hyperparameters: Type.Optional(Supervised),
    method: Type.Optional(
      Type.Object(
        {
          type: Type.Union([Type.Literal('supervised'), Type.Literal('dpo'), Type.Literal('reinforcement')]),
          supervised: Type.Optional(Type.Object({ hyperparameters: Type.Optional(Supervised) }, strict)),
          dpo: Type.Optional(Type.Object({ hyperparameters: Type.Optional(Dpo) }, strict)),
          reinforcement: Type.Optional(
            Type.Object(
              { grader: Type.Unsafe<Grader>(), hyperparameters: Type.Optional(Reinforcement) },
              strict,
            ),
          ),
        },
        strict,
      ),
    ),
    seed: nullable(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
    suffix: nullable(Type.String({ minLength: 1, maxLength: 64 })),
    metadata: nullable(Type.Record(Type.String(), Type.String({ maxLength: 255 }))),
    integrations: nullable(Type.Array(Type.Unsafe<unknown>())),
  },
  strict,
);
export type CreateBody = Static<typeof Body>;

export const parseCreate = parserOf(Body);

/** Returns the document of a job. @throws Refusal for what has no equivalent */
export function specOf(body: CreateBody, base: BaseModel): JobSpec {
  const { type, n_epochs, batch_size, learning_rate_multiplier, beta } = methodOf(body);
  const multiplier = numberOr(learning_rate_multiplier, 1);
  const epochs = numberOr(n_epochs, DEFAULT_EPOCHS);
  const { validation_file, seed, suffix } = body;
  const { eval_interval } = body.method?.reinforcement?.hyperparameters ?? {};
  return {
    name: suffix ?? 'fine-tuning',
    labels: {
      ...metadataOf(body),
      [LABELS.model]: body.model,
      ...(suffix && { [LABELS.suffix]: suffix }),
      [LABELS.epochs]: String(epochs),
      [LABELS.multiplier]: String(multiplier),
    },
    model: base.model,
    data: { dataset: body.training_file },
    train: {
      epochs,
      ...(type === 'reinforcement' ? {} : { global_batch_size: batch_size ?? 'auto' }),
      sequence_length: base.sequence_length,
      optimizer: { lr: RATES[type] * multiplier },
      ...(base.hasAdapter ? {} : { adapter: {} }),
      ...(typeof seed === 'number' && { seed }),
      ...(type === 'dpo' && {
        objective: {
          type,
          beta: numberOr(beta, DEFAULT_BETA),
          // The model that is fine-tuned, which may have an adapter already.
          ...(base.hasAdapter && { reference: 'initial' as const }),
        },
      }),
      ...(type === 'reinforcement' && { objective: reinforcementOf(body) }),
      ...(validation_file && {
        evaluation: {
          datasets: [{ name: VALIDATION_FILE, dataset: validation_file }],
          ...(typeof eval_interval === 'number' && { every_steps: eval_interval }),
        },
      }),
    },
  };
}

function methodOf({ method, hyperparameters, integrations }: CreateBody) {
  if (integrations && integrations.length > 0)
    throw notSupported('integrations', 'integrations are not supported; read metrics from the results file');
  const type = method?.type ?? 'supervised';
  const parameters = { ...hyperparameters, ...method?.[type]?.hyperparameters };
  return { type, ...parameters, beta: method?.dpo?.hyperparameters?.beta };
}

/** Returns the objective of the method `reinforcement`. */
function reinforcementOf({ method, validation_file }: CreateBody) {
  const { grader, hyperparameters = {} } = method?.reinforcement ?? {};
  const { batch_size, compute_multiplier, eval_interval, eval_samples } = hyperparameters;
  if (grader === undefined)
    throw notSupported('method.reinforcement', 'the method reinforcement needs method.reinforcement.grader');
  const refuse = (name: string, message: string) =>
    notSupported(`method.reinforcement.hyperparameters.${name}`, message);
  if (typeof eval_interval === 'number' && !validation_file)
    throw refuse('eval_interval', 'eval_interval needs a validation_file');
  if (numberOr(eval_samples, 1) !== 1)
    throw refuse(
      'eval_samples',
      'an evaluation takes the most likely answer of each prompt: leave eval_samples out',
    );
  return {
    type: 'grpo' as const,
    grader,
    ...(typeof batch_size === 'number' && { prompts_per_step: batch_size }),
    group_size: Math.max(2, Math.round(DEFAULT_GROUP * numberOr(compute_multiplier, 1))),
  };
}

function metadataOf({ metadata }: CreateBody): Record<string, string> {
  const found = metadata ?? {};
  if (Object.keys(found).length > MAX_LABELS)
    throw notSupported('metadata', `metadata may have at most ${MAX_LABELS} pairs`);
  const reserved = Object.keys(found).find((name) => name.startsWith('openai/'));
  if (reserved !== undefined) throw notSupported('metadata', `${reserved}: names with openai/ are taken`);
  return found;
}

function numberOr(value: number | 'auto' | null | undefined, other: number): number {
  return typeof value === 'number' ? value : other;
}
