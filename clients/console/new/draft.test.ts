import t from 'tap';
import {
  type Begun,
  baseOf,
  dataPartOf,
  FIRST_DRAFT,
  forkOf,
  methodOf,
  nextName,
  objectiveOf,
  objectivesOf,
  parseDraft,
  valueAt,
  withBase,
  withCheckpoint,
  withDataset,
  withMethod,
  withValue,
} from './draft.js';

const dataset = (counts: object) =>
  ({
    id: 'ds_1',
    num_chats: 0,
    num_preferences: 0,
    num_labelled: 0,
    num_prompts: 0,
    ...counts,
  }) as Parameters<typeof withDataset>[1];

t.test('fields of a document', async (t) => {
  const draft = withValue({}, ['train', 'optimizer', 'lr'], 1e-3);
  t.strictSame(draft, { train: { optimizer: { lr: 1e-3 } } });
  t.equal(valueAt(draft, ['train', 'optimizer', 'lr']), 1e-3);
  t.equal(valueAt(draft, ['train', 'steps', 'none']), undefined);
  t.strictSame(withValue(draft, ['train', 'steps'], 5), { train: { optimizer: { lr: 1e-3 }, steps: 5 } });
  t.strictSame(withValue(draft, ['train', 'optimizer', 'lr'], undefined), {}, 'empty objects go, too');
  t.strictSame(withValue({ train: {} }, ['train'], {}), { train: {} }, 'one that is given stays');
});

t.test('items of a list', async (t) => {
  const draft = { integrations: [{ type: 'mlflow', run_name: 'a' }, { type: 'mlflow' }] };
  t.equal(valueAt(draft, ['integrations', '0', 'run_name']), 'a');
  t.equal(valueAt(draft, ['integrations', '2', 'run_name']), undefined);
  t.strictSame(withValue(draft, ['integrations', '1', 'run_name'], 'b').integrations, [
    { type: 'mlflow', run_name: 'a' },
    { type: 'mlflow', run_name: 'b' },
  ]);
  const added = withValue(draft, ['integrations', '2'], { type: 'mlflow' });
  t.equal((added.integrations as unknown[]).length, 3);
  const one = withValue(draft, ['integrations', '0'], undefined);
  t.strictSame(one, { integrations: [{ type: 'mlflow' }] });
  t.strictSame(withValue(one, ['integrations', '0'], undefined), {}, 'an empty list goes, too');
});

t.test('methods', async (t) => {
  t.equal(methodOf(FIRST_DRAFT), 'full');
  const ranked = withValue(withMethod(FIRST_DRAFT, 'lora'), ['train', 'adapter', 'rank'], 8);
  t.equal(methodOf(ranked), 'lora');
  const dora = withMethod(ranked, 'dora');
  t.strictSame(valueAt(dora, ['train', 'adapter']), { type: 'dora', rank: 8 });
  t.equal(methodOf(dora), 'dora');
  t.strictSame(withMethod(dora, 'full'), FIRST_DRAFT);
});

t.test('a dataset brings its objective', async (t) => {
  const pairs = dataset({ num_preferences: 3 });
  const draft = withDataset(FIRST_DRAFT, pairs);
  t.strictSame(valueAt(draft, ['data']), { dataset: 'ds_1' });
  for (const other of [{ uri: 's3://a/b' }, { mixture: [{ dataset: 'ds_2' }] }])
    t.strictSame(valueAt(withDataset({ ...FIRST_DRAFT, data: other }, pairs), ['data']), { dataset: 'ds_1' });
  t.equal(valueAt(draft, ['train', 'objective', 'type']), 'dpo');
  const kto = withValue(draft, ['train', 'objective', 'type'], 'kto');
  t.equal(valueAt(withDataset(kto, pairs), ['train', 'objective', 'type']), 'kto', 'what fits stays');
  t.equal(valueAt(withDataset(draft, dataset({ num_labelled: 1 })), ['train', 'objective', 'type']), 'kto');
  t.equal(valueAt(withDataset(draft, dataset({})), ['train', 'objective']), undefined);
  t.strictSame(objectivesOf(dataset({})), ['sft']);
  t.strictSame(objectivesOf(dataset({ num_chats: 1 })), ['sft', 'grpo'], 'chats may be answered anew');
  t.strictSame(objectivesOf(dataset({ num_chats: 1, num_prompts: 1 })), ['grpo']);
  const evaluated = { ...FIRST_DRAFT, data: { packing: 'fit', validation_fraction: 0.1, seed: 2 } };
  const sampled = withDataset(evaluated, dataset({ num_chats: 1, num_prompts: 1 }));
  t.strictSame(sampled.data, { seed: 2, dataset: 'ds_1' }, 'fields of texts go');
  t.equal(objectiveOf(sampled), 'grpo');
  t.equal(objectiveOf(withDataset(sampled, dataset({}))), 'sft');
  const templated = withValue(draft, ['data', 'chat_template'], 'x');
  t.equal(valueAt(withDataset(templated, dataset({ num_chats: 1 })), ['data', 'chat_template']), 'x');
  t.equal(valueAt(withDataset(templated, dataset({})), ['data', 'chat_template']), undefined);
  const fitted = withValue(draft, ['data', 'packing'], 'fit');
  t.equal(valueAt(withDataset(fitted, dataset({ num_chats: 1 })), ['data', 'packing']), 'fit');
  t.equal(valueAt(withDataset(fitted, dataset({})), ['data', 'packing']), undefined);
});

t.test('models', async (t) => {
  t.equal(baseOf(FIRST_DRAFT), 'llama-tiny');
  const draft = withBase(withValue(FIRST_DRAFT, ['data', 'tokenizer'], 'bytes'), 'mdl_1');
  t.strictSame(draft.model, { init_from: { model: 'mdl_1' } });
  t.equal(draft.data, undefined, 'the tokenizer was that of the other model');
  t.equal(baseOf(draft), 'mdl_1');
  t.equal(baseOf({ model: { init_from: 's3://b/k' } }), 's3://b/k');
  t.equal(baseOf({ model: { preset: 'gpt2', init_from: { checkpoint: 'ckpt_1' } } }), 'ckpt_1');
  t.equal(baseOf({}), '');
});

t.test('documents as JSON', async (t) => {
  t.strictSame(parseDraft('{"a": 1}'), { a: 1 });
  for (const text of ['[]', '1', 'null', '{']) t.throws(() => parseDraft(text), SyntaxError, text);
});

t.test('what decides the data', async (t) => {
  const dataPart = (path: string[], value: unknown) => dataPartOf(withValue(FIRST_DRAFT, path, value));
  t.equal(dataPart(['train', 'steps'], 5), dataPartOf(FIRST_DRAFT));
  t.not(dataPart(['train', 'sequence_length'], 5), dataPartOf(FIRST_DRAFT));
  t.not(dataPart(['data', 'dataset'], 'ds_1'), dataPartOf(FIRST_DRAFT));
  t.ok(dataPartOf({}));
});

t.test(
  'a run that goes on has the document as it was given, twice the length and another name',
  async (t) => {
    const run = { id: 'job_1', name: 'chats', spec: { model: { preset: 'llama-tiny' } } } as Begun;
    const given = {
      name: 'chats',
      model: { init_from: 'hf://a/b' },
      data: { uri: 's3://a/b' },
      train: { epochs: 3 },
    };
    const initFrom = { checkpoint: 'ckpt_1', restore: 'continue' };
    t.same(forkOf(given, run, { id: 'ckpt_1' }), {
      name: 'chats-2',
      model: { preset: 'llama-tiny', init_from: initFrom },
      data: given.data,
      train: { epochs: 6 },
    });
    const own = {
      ...run,
      name: '',
      spec: { model: { preset: null, config: { model_type: 'llama' } } },
    } as Begun;
    t.same(forkOf({ train: { steps: 5 } }, own, { id: 'ckpt_1' }), {
      model: { config: { model_type: 'llama' }, init_from: initFrom },
      train: { steps: 10 },
    });
    const quantized = { ...run, spec: { model: { preset: 'llama-tiny', quantization: 'nf4' } } } as Begun;
    t.match(forkOf(given, quantized, { id: 'ckpt_1' }).model, { quantization: 'nf4', init_from: initFrom });
    t.same(withCheckpoint({}, quantized, 'ckpt_1', 'weights').model, {
      preset: 'llama-tiny',
      init_from: { checkpoint: 'ckpt_1', restore: 'weights' },
    });
    t.same(['a', 'a-2', 'a-9', 'a-b', 'a-0'].map(nextName), ['a-2', 'a-3', 'a-10', 'a-b-2', 'a-0-2']);
  },
);

t.test('weights of a checkpoint, and models of the Hub', async (t) => {
  const run = { id: 'job_1', name: '', spec: { model: { preset: 'llama-tiny' } } } as Begun;
  const chosen = withCheckpoint({ data: { dataset: 'ds_1', tokenizer: 'mdl_1' } }, run, 'ckpt_1', 'weights');
  t.same(chosen, {
    data: { dataset: 'ds_1' },
    model: { preset: 'llama-tiny', init_from: { checkpoint: 'ckpt_1', restore: 'weights' } },
  });
  t.equal(baseOf(chosen), 'ckpt_1');
  const hub = withBase({}, 'hf://a/b');
  t.same(hub, { model: { init_from: 'hf://a/b' } });
  t.equal(baseOf(hub), 'hf://a/b');
});
