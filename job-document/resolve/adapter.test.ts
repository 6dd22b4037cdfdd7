import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { trainedArchitecture } from '../model/adapters.js';
import { countOf } from '../model/params.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';
import { splitParams } from './param-groups.js';

type Train = NonNullable<JobSpec['train']>;

const SIZES = {
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 300,
};
const MIXTRAL = { ...SIZES, model_type: 'mixtral' as const, num_local_experts: 3 };

const resolve = (adapter: Train['adapter'], changes: Partial<JobSpec> = {}) =>
  resolveSpec({ ...SMALLEST, train: { steps: 10, sequence_length: 16, adapter }, ...changes }, DATASET);

t.test('the defaults are adapters of rank 16 over all matrices of the layers', async (t) => {
  const { spec, errors } = resolve({});
  t.same(errors, []);
  t.same(spec.train.adapter, {
    type: 'lora',
    rank: 16,
    alpha: 32,
    rank_stabilized: false,
    dropout: 0,
    target_modules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
    modules_to_save: [],
    init: 'kaiming_uniform',
  });
  t.equal(resolve({ rank: 3 }).spec.train.adapter?.alpha, 6);
  t.equal(resolve({ alpha: 3 }).spec.train.adapter?.alpha, 3);
  t.equal(resolve(undefined).spec.train.adapter, undefined);
  t.same(
    resolve({ target_modules: 'all-linear' }, { model: { config: MIXTRAL } }).spec.train.adapter
      ?.target_modules,
    ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate', 'w1', 'w2', 'w3'],
  );
});

t.test('the scale is alpha / rank, or rank-stabilized', async (t) => {
  const scale = (adapter: Train['adapter']) => trainedArchitecture(resolve(adapter).spec).adapter?.scale;
  t.equal(scale({ rank: 16, alpha: 8 }), 0.5);
  t.equal(scale({ rank: 16, alpha: 8, rank_stabilized: true }), 2);
});

t.test('the base is frozen, but for what is trained whole', async (t) => {
  const { spec, errors } = resolve({ target_modules: ['q_proj'], modules_to_save: ['lm_head', 'norm'] });
  t.same(errors, []);
  const trained = splitParams(spec).filter(({ kind, numFrozen }) => numFrozen < countOf(kind));
  t.same(
    trained.map(({ kind }) => kind.name),
    [
      'model.norm.weight',
      'lm_head.weight',
      'model.layers.{}.self_attn.q_proj.lora_A.weight',
      'model.layers.{}.self_attn.q_proj.lora_B.weight',
    ],
  );
  const dora = splitParams(resolve({ type: 'dora', target_modules: ['q_proj'] }).spec).map(
    ({ kind }) => kind,
  );
  t.match(dora.at(-1), {
    name: 'model.layers.{}.self_attn.q_proj.lora_magnitude_vector.weight',
    decays: false,
    frozen: false,
  });
  t.equal(dora.length, 3 + splitParams(resolve(undefined).spec).length);
  const all = resolve(
    {},
    {
      train: {
        steps: 10,
        sequence_length: 16,
        adapter: {},
        optimizer: { param_groups: [{ match: '*.lora_?.*', frozen: true }] },
      },
    },
  );
  t.match(all.errors, [{ code: 'all_parameters_frozen' }]);
});

t.test('what cannot be is refused by name', async (t) => {
  const refused: [adapter: Train['adapter'], error: object, changes?: Partial<JobSpec>][] = [
    [
      { target_modules: ['q_proj', 'c_atn'] },
      {
        pointer: '/train/adapter/target_modules/1',
        code: 'adapter_module_unknown',
        message:
          /c_atn is no module of the model; it has q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj/,
      },
    ],
    [
      { target_modules: ['q_proj'] },
      { code: 'adapter_module_unknown', message: /it has qkv_proj, o_proj, gate_up_proj, down_proj/ },
      { model: { config: { ...SIZES, model_type: 'phi3' } } },
    ],
    [{ target_modules: ['qproj'] }, { pointer: '/train/adapter/target_modules/0', suggestion: 'q_proj' }],
    [
      { modules_to_save: ['lm_heads'] },
      { pointer: '/train/adapter/modules_to_save/0', code: 'adapter_module_unknown', suggestion: 'lm_head' },
    ],
    [
      { modules_to_save: ['self_attn.q_proj'] },
      { pointer: '/train/adapter/modules_to_save', code: 'adapter_module_twice', message: /q_proj/ },
    ],
    [
      { dropout: 0.1 },
      { pointer: '/train/adapter/dropout', code: 'adapter_dropout_over_experts', suggestion: '0' },
      { model: { config: MIXTRAL } },
    ],
    [
      { type: 'dora', dropout: 0.1 },
      { pointer: '/train/adapter/dropout', code: 'adapter_dropout_with_dora', suggestion: '0' },
    ],
  ];
  for (const [adapter, error, changes] of refused) t.match(resolve(adapter, changes).errors, [error]);
  const attention = { dropout: 0.1, target_modules: ['q_proj', 'gate'] };
  t.same(resolve(attention, { model: { config: MIXTRAL } }).errors, []);
});
