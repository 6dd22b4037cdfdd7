import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { trainedArchitecture } from '../model/adapters.js';
import { paramKinds } from '../model/params.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';

const MIXTRAL = {
  model_type: 'mixtral' as const,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_local_experts: 3,
  vocab_size: 300,
};

function resolve(
  adapter: NonNullable<JobSpec['train']>['adapter'],
  model: JobSpec['model'] = { config: MIXTRAL, quantization: 'nf4' },
) {
  return resolveSpec({ ...SMALLEST, model, train: { steps: 10, sequence_length: 16, adapter } }, DATASET);
}

t.test('the matrices of the layers are quantized, but for the router', async (t) => {
  const { spec, errors } = resolve({ modules_to_save: ['norm'], target_modules: ['q_proj'] });
  t.same(errors, []);
  t.equal(spec.model.quantization, 'nf4');
  const quantized = paramKinds(trainedArchitecture(spec)).filter(({ quantization }) => quantization !== null);
  t.same(
    quantized.map(({ name }) => name.replace(/.*\.(\w+)\.weight/, '$1')),
    ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'w1', 'w2', 'w3'],
  );
});

t.test('a document without the field has none', async (t) => {
  const { spec, errors } = resolve({}, { config: MIXTRAL });
  t.same(errors, []);
  t.notOk('quantization' in spec.model);
  t.ok(paramKinds(trainedArchitecture(spec)).every(({ quantization }) => quantization === null));
});

t.test('what is trained is not quantized', async (t) => {
  t.match(resolve(undefined).errors, [{ pointer: '/model/quantization', code: 'adapter_missing' }]);
  t.match(resolve({ target_modules: ['q_proj'], modules_to_save: ['lm_head', 'v_proj'] }).errors, [
    {
      pointer: '/train/adapter/modules_to_save',
      code: 'adapter_module_quantized',
      message: /layers\.\{\}\.self_attn\.v_proj is quantized/,
    },
  ]);
  t.same(resolve({ target_modules: ['q_proj'], modules_to_save: ['lm_head', 'gate'] }).errors, []);
  t.match(resolve({ type: 'dora' }).errors, [
    { pointer: '/train/adapter/type', code: 'adapter_dora_quantized', suggestion: 'lora' },
  ]);
});
