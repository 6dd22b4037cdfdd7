import t from 'tap';
import type { OperationId, ResolvedJobSpec } from '../../contracts/index.js';
import { loadContract } from '../operations.js';
import { ContractReader, type Schema } from '../testing/contract-reader.js';
import type { OperationRoute } from './types.js';

const EXACT = { type: 'string_check', name: 'a', input: '', reference: '', operation: 'eq' } as const;

/** Bodies without any optional field that has a default. They must compile. */
const SMALLEST = {
  createJob: {
    model: { preset: 'llama-tiny', init_from: { model: 'mdl_01KAJX8W3Q5R7T9V1X3Z5B7D9F' } },
    data: { dataset: 'ds_01KAJX8W3Q5R7T9V1X3Z5B7D9F' },
    train: {
      steps: 200,
      optimizer: { param_groups: [{ match: '*' }] },
      lr_schedule: {},
      loss_scale: {},
      overrides: [{ step: 1, lr: null }],
    },
    zero: {},
    resources: { ranks: {} },
    checkpoint: {},
    limits: {},
    retry: {},
    export: {},
    notify: {},
  },
  estimateMemory: {
    spec: { model: { preset: 'llama-tiny' }, data: { uri: 's3://my-data/book.txt' }, train: { steps: 200 } },
  },
  previewData: {
    spec: { model: { preset: 'llama-tiny' }, data: { uri: 's3://my-data/book.txt' }, train: { steps: 200 } },
  },
  runGrader: { grader: EXACT, output_text: '1' },
  putCall: { type: 'sample', prompts: [[72]], max_tokens: 1 },
  sampleCheckpoint: { prompt: 'Once' },
  sampleModel: { prompt: 'Once' },
  exportCheckpoint: {},
  createDownloadUrls: {},
  createUpload: { name: 'book', bytes: 1 },
  createUploadUrls: {},
  createShare: {},
  createWebhook: { url: 'https://hooks.example.com/zerofleet' },
  rotateApiKey: {},
  rotateWebhookSecret: {},
  putProject: { quota: {} },
  createSweep: {
    spec: { model: { preset: 'llama-tiny' }, data: { uri: 's3://my-data/book.txt' }, train: { steps: 200 } },
    space: { 'train.optimizer.lr': { values: [0.001, 0.002] } },
  },
} satisfies { [Id in OperationId]?: OperationRoute<Id>['Body'] };

type OptionalKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];
type Equal<A, B> = [A, B] extends [B, A] ? true : false;

/**
 * Fields that a resolved document has only if other settings make them meaningful. The dataset replaces the object, and
 * steps replace epochs when they are known.
 */
interface Conditional {
  model: 'base' | 'quantization';
  data: 'dataset' | 'uri' | 'mixture' | 'format' | 'chat';
  train: 'evaluation' | 'ema' | 'early_stopping' | 'adapter' | 'objective' | 'session' | 'steps' | 'epochs';
  zero: 'lanes';
  checkpoint: 'every_steps' | 'every_seconds' | 'auto' | 'keep_every' | 'samples';
  limits: 'max_runtime' | 'max_wait' | 'max_cost';
}

type Sections = Omit<
  ResolvedJobSpec,
  'name' | 'project' | 'labels' | 'notes' | 'priority' | 'integrations' | 'sources'
>;
/** False for sections whose optional fields differ. */
const COMPLETE: {
  [S in keyof Sections]: Equal<
    OptionalKeys<Sections[S]>,
    S extends keyof Conditional ? Conditional[S] : never
  >;
} & { sections: Equal<OptionalKeys<ResolvedJobSpec>, 'sources'> } = {
  sections: true,
  model: true,
  data: true,
  train: true,
  zero: true,
  resources: true,
  checkpoint: true,
  limits: true,
  retry: true,
  export: true,
  notify: true,
};

const reader = new ContractReader(loadContract());

/** Fields of an object that have a default. */
function defaultsOf(schema: Schema): string[] {
  const { properties } = reader.fields(schema);
  return Object.keys(properties).filter((name) => {
    const field = properties[name] as Schema;
    return field.default !== undefined || reader.resolve(field).default !== undefined;
  });
}

t.test('a request may leave out every field with a default', async (t) => {
  const schemas = new Map(
    reader.operations.map(({ id, body }) => [id, body?.content?.['application/json']?.schema] as const),
  );
  const withDefaults = [...schemas].filter(
    ([, schema]) => schema && [...reader.within(schema)].some((part) => defaultsOf(part).length > 0),
  );
  t.same(Object.keys(SMALLEST).sort(), withDefaults.map(([id]) => id).sort());
  for (const [id, body] of Object.entries(SMALLEST)) {
    t.equal(reader.problems(schemas.get(id as OperationId) ?? {}, body), null, id);
  }
});

/** Answers of these have the document as it was given. */
const HAS_GIVEN = /Sweeps?$/;

/** The tokenizer of a model that a dry run does not copy is unknown. */
const UNKNOWN_YET = 'createJob 200 tokenizer';

t.test('answers and the type of a resolved document have every field with a default', async (t) => {
  const resolved = reader.operations.filter(({ id }) => !HAS_GIVEN.test(id));
  const absent = resolved.flatMap(({ id, answers }) =>
    answers.flatMap(([status, { content = {} }]) =>
      Object.values(content).flatMap(({ schema }) =>
        [...reader.within(schema ?? {})].flatMap((part) => {
          const { required } = reader.fields(part);
          return defaultsOf(part)
            .filter((name) => !required.has(name))
            .map((name) => `${id} ${status} ${name}`);
        }),
      ),
    ),
  );
  t.same(absent, [UNKNOWN_YET]);
  t.ok(Object.values(COMPLETE).every(Boolean));
});
