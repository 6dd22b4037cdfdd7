import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { importDeepspeed } from './import.js';

const STEPS = { train: { steps: 100 } };

/**
 * Returns the errors of a configuration: pointer below /deepspeed_config (or the whole), code, suggestion.
 */
function errorsOf(config: Record<string, unknown>, own: Partial<JobSpec> = STEPS): string[] {
  const spec: JobSpec = {
    model: { preset: 'llama-tiny' },
    data: { dataset: `ds_${'0'.repeat(26)}` },
    deepspeed_config: config,
    ...own,
  };
  return resolveSpec(spec, null)
    .errors.map(({ pointer, code, suggestion }) =>
      [pointer.replace(/^\/deepspeed_config\//, ''), code.replace(/^deepspeed_/, ''), suggestion]
        .filter(Boolean)
        .join(' '),
    )
    .sort();
}

const REFUSED: [string, Record<string, unknown>, string][] = [
  ['stage 3', { zero_optimization: { stage: 3 } }, 'zero_optimization/stage key_unsupported'],
  [
    'NVMe',
    { zero_optimization: { stage: 2, offload_optimizer: { device: 'nvme', nvme_path: '/nvme' } } },
    'zero_optimization/offload_optimizer/device key_unsupported cpu',
  ],
  ['1-bit Adam', { optimizer: { type: 'OneBitAdam' } }, 'optimizer/type key_unsupported'],
  ['Muon', { optimizer: { type: 'Muon' } }, 'optimizer/type key_unsupported'],
  ['an unknown optimizer', { optimizer: { type: 'AdamX' } }, 'optimizer/type unknown_value Adam'],
  ['an optimizer without a type', { optimizer: { params: { lr: 1 } } }, 'optimizer/type missing_field'],
  ['a cycle', { scheduler: { type: 'OneCycle', params: {} } }, 'scheduler/type key_unsupported'],
  ['a range test', { scheduler: { type: 'LRRangeTest' } }, 'scheduler/type key_unsupported'],
  ['an unknown scheduler', { scheduler: { type: 'WarmUpLR' } }, 'scheduler/type unknown_value WarmupLR'],
  [
    'AMSGrad',
    { optimizer: { type: 'Adam', params: { amsgrad: true } } },
    'optimizer/params/amsgrad key_unsupported',
  ],
  [
    'clipping inside of the optimizer',
    { optimizer: { type: 'Adam', params: { max_grad_norm: 1 } } },
    'optimizer/params/max_grad_norm key_unsupported',
  ],
  [
    'a parameter of another optimizer',
    { optimizer: { type: 'Adam', params: { momentum: 0.9 } } },
    'optimizer/params/momentum key_unknown',
  ],
  ['Apex', { amp: { enabled: true, opt_level: 'O1' } }, 'amp key_unsupported'],
  ['autocast', { torch_autocast: { enabled: true, dtype: 'bfloat16' } }, 'torch_autocast key_unsupported'],
  ['elasticity', { elasticity: { enabled: true, max_train_batch_size: 2000 } }, 'elasticity key_unsupported'],
  [
    'activations in host memory',
    { activation_checkpointing: { cpu_checkpointing: true } },
    'activation_checkpointing/cpu_checkpointing key_unsupported',
  ],
  ['delayed updates', { zero_optimization: { zenflow: {} } }, 'zero_optimization/zenflow key_unsupported'],
  ['a tuner, which ends the training', { autotuning: { enabled: true } }, 'autotuning key_unsupported'],
  [
    'compression',
    { compression_training: { weight_quantization: {} } },
    'compression_training key_unsupported',
  ],
  ['sums of gradients', { gradient_allreduce_op: 'sum' }, 'gradient_allreduce_op key_unsupported'],
  [
    'tensor parallelism',
    { tensor_parallel: { autotp_size: 4 } },
    'tensor_parallel/autotp_size key_unsupported',
  ],
  [
    'bf16 masters',
    { bf16: { enabled: true, bf16_master_weights_and_grads: true } },
    'bf16/bf16_master_weights_and_grads key_unsupported',
  ],
  ['fp16 and bf16', { fp16: { enabled: true }, bf16: { enabled: true } }, 'bf16/enabled conflict'],
  [
    'prescaling with a factor',
    { prescale_gradients: true, gradient_predivide_factor: 2 },
    'gradient_predivide_factor key_unsupported',
  ],
  [
    'a misspelled key',
    { zero_optimisation: { stage: 2 } },
    'zero_optimisation key_unknown zero_optimization',
  ],
  [
    'a misspelled inner key',
    { fp16: { enabled: true, hysteresys: 2 } },
    'fp16/hysteresys key_unknown hysteresis',
  ],
  [
    'a misspelled switch',
    { torch_autocast: { enabeld: true } },
    'torch_autocast key_unsupported,torch_autocast/enabeld key_unknown enabled',
  ],
  ['a comment inside of a section', { fp16: { _comment: 'x' } }, 'fp16/_comment key_unknown'],
  ['a wrong type', { gradient_clipping: '1.0' }, 'gradient_clipping wrong_type'],
  ['a section that is not an object', { fp16: true }, 'fp16 wrong_type'],
  ['an empty batch', { train_batch_size: 0 }, 'train_batch_size out_of_range'],
  ['a negative scale', { fp16: { enabled: true, loss_scale: -1 } }, 'fp16/loss_scale out_of_range'],
  ['an unknown format', { communication_data_type: 'fp8' }, 'communication_data_type unknown_value fp32'],
];

for (const [name, config, wanted] of REFUSED) {
  t.test(`refused: ${name}`, async (t) => {
    t.equal(errorsOf(config).join(), wanted);
  });
}

t.test('an error has a reason and a remedy', async (t) => {
  const { errors } = resolveSpec(
    {
      model: { preset: 'llama-tiny' },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      deepspeed_config: { zero_optimization: { stage: 3 } },
      ...STEPS,
    },
    null,
  );
  t.match(errors[0]?.message, /sharded parameters are not supported.*use 2/);
});

t.test('all errors at once', async (t) => {
  const config = {
    foo: 1,
    zero_optimization: { stage: 3, sub_group_size: 1e9 },
    optimizer: { type: 'Muon' },
  };
  t.equal(errorsOf(config).length, 3);
});

t.test('a disabled section has no effect', async (t) => {
  const config = {
    amp: { enabled: false },
    flops_profiler: {
      enabled: false,
      profile_step: 1,
      module_depth: -1,
      top_modules: 1,
      detailed: true,
      output_file: null,
    },
    autotuning: { enabled: false, fast: true },
    aio: {},
    curriculum_learning: { enabled: false },
    sparse_attention: null,
    wall_clock_breakdown: false,
    zero_optimization: { stage: 2, offload_param: { device: 'none' }, offload_optimizer: { device: 'none' } },
    tensor_parallel: { autotp_size: 0 },
    activation_checkpointing: {
      partition_activations: false,
      cpu_checkpointing: false,
      number_checkpoints: false,
    },
  };
  t.same(errorsOf(config), []);
});

t.test('conflicting values in two places', async (t) => {
  const adam = { optimizer: { type: 'AdamW', params: { lr: 0.01 } } };
  const own = (train: JobSpec['train'], zero?: JobSpec['zero']) => ({
    train: { steps: 100, ...train },
    ...(zero && { zero }),
  });
  t.same(errorsOf(adam, own({ optimizer: { lr: 0.02 } })), ['optimizer/params/lr conflict']);
  t.same(errorsOf(adam, own({ optimizer: { lr: 0.01 } })), [], 'equal values are no conflict');
  t.same(errorsOf(adam, own({ optimizer: { type: 'lamb' } })), ['optimizer/type conflict']);
  t.same(errorsOf({ bf16: { enabled: true } }, own({ precision: 'fp16' })), ['bf16/enabled conflict']);
  t.same(errorsOf({ bf16: { enabled: false } }, own({ precision: 'bf16' })), ['bf16/enabled conflict']);
  t.same(errorsOf({ zero_optimization: { stage: 1 } }, own({}, { stage: 2 })), [
    'zero_optimization/stage conflict',
  ]);
  t.same(errorsOf({ train_batch_size: 32 }, own({ global_batch_size: 16 })), ['train_batch_size conflict']);
  const decay = {
    scheduler: { type: 'WarmupDecayLR', params: { total_num_steps: 200, warmup_num_steps: 10 } },
  };
  t.same(errorsOf(decay, own({})), ['scheduler/params/total_num_steps conflict']);
});

t.test("errors of the document's own rules point at the key that a value came from", async (t) => {
  const decay = {
    scheduler: { type: 'WarmupDecayLR', params: { total_num_steps: 200, warmup_num_steps: 300 } },
  };
  t.same(errorsOf(decay, {}), ['scheduler/params/warmup_num_steps warmup_longer_than_training 200']);
  const masters = { fp16: { enabled: true, fp16_master_weights_and_grads: true } };
  t.same(errorsOf(masters), ['fp16/fp16_master_weights_and_grads fp16_master_unsupported fp32']);
  t.same(errorsOf({}, { train: { optimizer: { momentum: 0.9 }, steps: 1 } }), [
    '/train/optimizer/momentum field_without_effect',
  ]);
});

t.test('the number of steps is required', async (t) => {
  t.same(errorsOf({}, {}), ['/train/steps missing_field']);
  t.same(
    errorsOf(
      { scheduler: { type: 'WarmupDecayLR', params: { total_num_steps: 'auto', warmup_num_steps: 2 } } },
      {},
    ),
    ['/train/steps missing_field'],
  );
});

t.test('the rate of the scheduler, including its default, overrides that of the optimizer', async (t) => {
  const rate = (params: object) => {
    const document: JobSpec = {
      model: { preset: 'llama-tiny' },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      deepspeed_config: {
        optimizer: { type: 'Adam', params: { lr: 0.5 } },
        scheduler: { type: 'WarmupLR', params: { warmup_num_steps: 1, ...params } },
      },
      ...STEPS,
    };
    const { spec } = resolveSpec(document, null);
    const { warnings } = importDeepspeed(document);
    t.equal(spec.train.lr_schedule.warmup_steps, 2);
    const about = warnings.filter(({ pointer }) => pointer === '/deepspeed_config/optimizer/params/lr');
    return { lr: spec.train.optimizer.lr, why: about.map(({ message }) => message) };
  };
  t.match(rate({ warmup_max_lr: 0.25 }), { lr: 0.25, why: [/warmup_max_lr is 0.25/] });
  t.match(rate({}), { lr: 0.001, why: [/warmup_max_lr is 0.001 by default: set warmup_max_lr/] });
  t.strictSame(rate({ warmup_max_lr: 0.5 }), { lr: 0.5, why: [] });
  t.strictSame(rate({ warmup_max_lr: 'auto' }), { lr: 0.5, why: [] });
});
