/** Documents of jobs from requests to create a fine-tuning job. */
import type { JobSpec } from '../../../contracts/index.js';
import { type Static, type TSchema, Type } from '../../../platform/schema.js';
import { notSupported } from '../errors.js';
import { LABELS, VALIDATION_FILE } from '../labels.js';
import type { BaseModel } from '../models.js';
import { nullable, parserOf } from '../pages.js';

const MAX_LABELS = 16;
const DEFAULT_EPOCHS = 3;
/** Rates of `learning_rate_multiplier` 1, usual ones for adapters of rank 16. */
const RATES = { supervised: 2e-4, dpo: 5e-5 };
const DEFAULT_BETA = 0.1;

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
          reinforcement: Type.Optional(Type.Unsafe<unknown>()),
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
      global_batch_size: batch_size ?? 'auto',
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
      ...(validation_file && {
        evaluation: { datasets: [{ name: VALIDATION_FILE, dataset: validation_file }] },
      }),
    },
  };
}

function methodOf({ method, hyperparameters, integrations }: CreateBody) {
  if (integrations && integrations.length > 0)
    throw notSupported('integrations', 'integrations are not supported; read metrics from the results file');
  const type = method?.type ?? 'supervised';
  if (type === 'reinforcement')
    throw notSupported('method', 'the method reinforcement is not supported; use supervised or dpo');
  const parameters = { ...hyperparameters, ...method?.[type]?.hyperparameters };
  return { type, ...parameters, beta: method?.dpo?.hyperparameters?.beta };
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
