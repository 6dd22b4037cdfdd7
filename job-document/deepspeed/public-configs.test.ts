/**
 * DeepSpeed documents of public repositories: accepted, or refused for a correct reason. Each was compared
 * with the file of its `source`, key by key.
 */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { resolveSpec } from '../resolve-spec.js';
import { document } from '../testing/deepspeed.js';
import { published, SOURCE } from '../testing/published.js';
import { importDeepspeed } from './import.js';

const AT = '/deepspeed_config/';

/** Returns a job with a configuration, and with the steps of the configuration or its warm-up. */
function job(config: Record<string, unknown>) {
  const isSaid = JSON.stringify(config).match(/"total_num_steps":\d/) !== null;
  return document(config, isSaid ? {} : { train: { steps: 2000 } });
}

function errorsOf(config: Record<string, unknown>): string[] {
  const { errors } = resolveSpec(job(config), null);
  return errors.map(({ pointer, code }) => `${pointer.slice(AT.length)} ${code}`);
}

const TABLE = published(readFileSync('job-document/testing/public-deepspeed.json', 'utf8'));

for (const [name, { source, config, errors }] of Object.entries(TABLE))
  t.test(name, async (t) => {
    t.match(source, SOURCE);
    t.strictSame(errorsOf(config), errors);
  });

t.test('the table has documents of several projects', async (t) => {
  t.ok(Object.keys(TABLE).length >= 20);
  t.ok(new Set(Object.values(TABLE).map(({ source }) => source.split('@')[0])).size >= 5);
});

const WITHOUT_EFFECT = {
  _comment: 'for two GPUs',
  comms_config: { comms_logger: { enabled: true } },
  monitor_config: { csv_monitor: {} },
  tensorboard: { enabled: true, output_path: 'runs' },
  wall_clock_breakdown: true,
  flops_profiler: { enabled: true, profile_step: 5 },
  sparse_gradients: true,
  disable_allgather: true,
  nebula: { enabled: true, persistent_storage_path: 'x' },
  hybrid_engine: { enabled: true },
  compile: { disable: false, backend: 'inductor' },
  aio: { block_size: 1_048_576 },
  activation_checkpointing: { partition_activations: true },
  zero_optimization: {
    offload_param: { device: 'cpu' },
    zero_quantized_gradients: true,
    mics_shard_size: 8,
    sub_group_size: 1e9,
  },
};

t.test('keys without effect are accepted with a warning and the same result', async (t) => {
  const config = { train_batch_size: 2, ...WITHOUT_EFFECT };
  const { zero_optimization, activation_checkpointing, ...rest } = WITHOUT_EFFECT;
  const { spec, errors, warnings } = importDeepspeed(job(config));
  t.strictSame(errors, []);
  t.strictSame(spec, importDeepspeed(job({ train_batch_size: 2 })).spec);
  t.strictSame(
    warnings.map(({ pointer, code }) => `${pointer.slice(AT.length)} ${code}`),
    [
      ...Object.keys(rest),
      'activation_checkpointing/partition_activations',
      ...Object.keys(zero_optimization).map((name) => `zero_optimization/${name}`),
    ].map((name) => `${name} field_without_effect`),
  );
});

t.test('disabled keys have no warning', async (t) => {
  const config = {
    train_batch_size: 2,
    wall_clock_breakdown: false,
    tensorboard: { enabled: false, output_path: 'runs' },
    compile: false,
    zero_optimization: { stage: 2, zero_quantized_weights: false },
    aio: {},
  };
  const { errors, warnings } = importDeepspeed(job(config));
  t.strictSame([errors, warnings], [[], []]);
});
