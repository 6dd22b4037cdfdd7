import t from 'tap';
import type { Job, JobSpec, Model, SamplePayload } from '../../../contracts/index.js';
import { testModel } from '../../../formats/testing/models.js';
import { testSpec } from '../../../state/testing/jobs.js';
import type { ServedBase } from '../../tasks/protocol.js';
import { goneError, placementOf } from './placement.js';

const DATASET = `ds_${'0'.repeat(26)}`;
const LORA = {
  type: 'lora',
  rank: 4,
  alpha: 8,
  rank_stabilized: false,
  dropout: 0,
  modules_to_save: [] as string[],
  init: 'kaiming_uniform',
  target_modules: ['q_proj'],
} as const;

type Spec = Job['spec'];

/** A store with one job and two uploaded models, of which `lora` is an adapter over `base`. */
function storeOf(change: (spec: Spec) => Spec = (spec) => spec, adapter: Partial<typeof LORA> = {}) {
  const spec = change(testSpec(DATASET));
  const base = { ...testModel('base'), config: spec.model.config as Model['config'] };
  const models: Record<string, Model> = {
    base,
    lora: {
      ...base,
      id: 'lora',
      base: 'base',
      dtypes: ['fp32'],
      adapter: { ...LORA, ...adapter } as Model['adapter'] & object,
    },
  };
  return {
    getJob: async (id: string) => (id === 'job' ? ({ id, spec } as Job) : null),
    getModel: async (id: string) => models[id] ?? null,
  };
}

const model = (modelId: string) => ({ source: { model_id: modelId }, request: {} }) as SamplePayload;
const checkpoint = (id: string, weights = 'trained', jobId = 'job') =>
  ({
    source: { job_id: jobId, checkpoint: { id, prefix: `at/${id}` } },
    request: { weights },
  }) as SamplePayload;

const under = (
  base: NonNullable<Spec['model']['base']>,
  adapter: object = LORA,
  more: JobSpec['train'] = {},
) =>
  ((spec: Spec) => ({
    ...spec,
    model: { ...spec.model, base },
    train: { ...spec.train, ...more, adapter },
  })) as (spec: Spec) => Spec;

t.test('adapters over one model share its process, each as a variant', async (t) => {
  const store = storeOf(under({ model: 'base' }, LORA, { precision: 'fp32' }));
  const [first, second] = await Promise.all([
    placementOf(store, checkpoint('ckpt_1')),
    placementOf(store, checkpoint('ckpt_2')),
  ]);
  t.equal(first.process_key, second.process_key);
  t.not(first.variant_key, second.variant_key);
  t.match(first, {
    is_adapter: true,
    weights: { base: { model: 'base' }, precision: 'fp32' },
    owner: { id: 'job' },
  });
  t.strictSame(
    first.process_owner,
    { id: 'base' },
    'the session of the process reads the base and nothing else',
  );
  t.match(first.source, { checkpoint: 'at/ckpt_1', weights: 'trained' });
  const [alone, lora] = await Promise.all([
    placementOf(store, model('base')),
    placementOf(store, model('lora')),
  ]);
  t.equal(alone.process_key, lora.process_key);
  t.match(alone, { is_adapter: false, adapter_bytes: 0, variant_key: 'base', owner: { id: 'base' } });
  const { hidden_size, num_attention_heads, head_dim, num_hidden_layers } = (first.weights as ServedBase)
    .architecture;
  // In fp32, 4 rows of the inputs and 4 columns of the outputs of each q_proj.
  const numel = 4 * (hidden_size + num_attention_heads * head_dim);
  t.equal(first.adapter_bytes, 4 * numel * num_hidden_layers);
  t.match(lora, {
    is_adapter: true,
    variant_key: 'lora',
    owner: { id: 'lora', base: 'base' },
    process_owner: { id: 'base' },
  });
});

t.test('the precision and the quantization of the base are those of the training', async (t) => {
  const key = async (more: JobSpec['train'], quantization?: 'nf4') => {
    const change = (spec: Spec) => {
      const changed = under({ model: 'base' }, LORA, more)(spec);
      return quantization ? { ...changed, model: { ...changed.model, quantization } } : changed;
    };
    return (await placementOf(storeOf(change), checkpoint('ckpt_1'))).process_key;
  };
  const keys = await Promise.all([
    key({ precision: 'bf16' }),
    key({ precision: 'fp16' }),
    key({ precision: 'bf16' }, 'nf4'),
  ]);
  t.equal(new Set(keys).size, 3);
});

t.test('a checkpoint is the base of adapters that began with it', async (t) => {
  const base = await placementOf(storeOf(), checkpoint('ckpt_1'));
  t.match(base, {
    is_adapter: false,
    weights: { base: { prefix: 'at/ckpt_1' } },
    process_owner: { id: 'job' },
  });
  const change = under({ checkpoint: 'ckpt_1', job: 'other', prefix: 'at/ckpt_1' });
  t.equal((await placementOf(storeOf(change), checkpoint('ckpt_9'))).process_key, base.process_key);
  const average = await placementOf(storeOf(), checkpoint('ckpt_1', 'ema'));
  t.match(average, { is_adapter: false, weights: { checkpoint: 'at/ckpt_1', weights: 'ema' } });
  t.not(average.process_key, base.process_key);
});

t.test('an adapter that changes more than products has its own process', async (t) => {
  const alone = async (change: (spec: Spec) => Spec, adapter: object = {}) => {
    const ofJob = await placementOf(storeOf(change), checkpoint('ckpt_1'));
    t.match(ofJob, {
      is_adapter: false,
      process_key: 'ckpt_1 trained',
      weights: { checkpoint: 'at/ckpt_1' },
    });
    return placementOf(storeOf(undefined, adapter), model('lora'));
  };
  t.match(await alone(under({ model: 'base' }, { ...LORA, type: 'dora' }), { type: 'dora' }), {
    is_adapter: false,
    process_key: 'lora',
    weights: { model: { id: 'lora' } },
    process_owner: { id: 'lora', base: 'base' },
  });
  await alone(under({ model: 'base' }, { ...LORA, modules_to_save: ['lm_head'] }));
  await alone(under({ seed: 1 }));
});

t.test('what is gone', async (t) => {
  await t.rejects(placementOf(storeOf(), model('none')), { code: 'model_not_found' });
  await t.rejects(placementOf(storeOf(), checkpoint('ckpt_1', 'trained', 'none')), {
    code: 'checkpoint_not_found',
  });
});

t.test('a source that was deleted meanwhile', async (t) => {
  const none = { getModel: async () => null, findCheckpoint: async () => null };
  const checkpoint = { job_id: 'job_1', checkpoint: { id: 'ckpt_1', prefix: 'p' } };
  t.match(await goneError(none, { model_id: 'mdl_1' }), { code: 'model_not_found' });
  t.match(await goneError(none, checkpoint), { code: 'checkpoint_not_found' });
  const removed = { ...none, findCheckpoint: async () => ({ job_id: 'job_1', checkpoint: null }) };
  t.match(await goneError(removed, checkpoint), { code: 'checkpoint_not_found' });
  const store = { ...none, getModel: async () => testModel('mdl_1') };
  t.equal(await goneError(store, { model_id: 'mdl_1' }), null, 'the source exists');
});
