import t from 'tap';
import type { Job, JobSpec, Problem } from '../../../contracts/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const CONFIG = {
  train_micro_batch_size_per_gpu: 2,
  gradient_accumulation_steps: 4,
  optimizer: { type: 'AdamW', params: { lr: 3e-4, betas: [0.9, 0.999] } },
  scheduler: {
    type: 'WarmupDecayLR',
    params: { warmup_max_lr: 3e-4, warmup_num_steps: 5, total_num_steps: 40, warmup_type: 'linear' },
  },
  bf16: { enabled: true },
  zero_optimization: { stage: 2, reduce_bucket_size: 5e6 },
};

t.test('a job from a DeepSpeed configuration', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const dataset = await stack.upload('some text to train on, long enough for a sequence. '.repeat(10));
  const create = (deepspeedConfig: unknown, changes: Partial<JobSpec> = {}) => {
    const { train: _, ...spec } = smallSpec(dataset.id);
    const payload = { ...spec, deepspeed_config: deepspeedConfig, ...changes };
    return stack.request({ method: 'POST', url: '/v1/jobs', payload });
  };
  const errors = async (config: unknown, changes?: Partial<JobSpec>) =>
    (await create(config, changes))
      .json<Problem>()
      .errors.map(({ pointer, code }) => `${pointer} ${code}`)
      .sort();

  t.test('it is translated, and is not part of the resolved document', async (t) => {
    const reply = await create(CONFIG);
    t.equal(reply.statusCode, 201, reply.body);
    const { spec } = reply.json<Job>();
    t.notOk('deepspeed_config' in spec);
    t.match(spec, {
      train: {
        steps: 40,
        global_batch_size: 16,
        micro_batch_size: 2,
        optimizer: { lr: 3e-4, weight_decay: 0 },
        lr_schedule: { type: 'linear', warmup_steps: 5 },
        gradient_clipping: 0,
      },
      zero: { stage: 2, bucket_bytes: 10_000_000 },
    });
  });

  t.test('keys without effect are listed in the answer, also for a repeated request', async (t) => {
    const quiet = (await create(CONFIG)).json<Job>();
    t.notOk('warnings' in quiet);
    const commsConfig = { comms_logger: { enabled: true } };
    const monitorConfig = { wandb: { enabled: true }, tensorboard: { enabled: true } };
    const { train: _, ...spec } = smallSpec(dataset.id);
    const payload = {
      ...spec,
      deepspeed_config: { ...CONFIG, comms_config: commsConfig, monitor_config: monitorConfig },
    };
    const headers = { 'idempotency-key': 'k1' };
    const send = async (url: string) =>
      (await stack.request({ method: 'POST', url, headers, payload })).json();
    const job = await send('/v1/jobs');
    t.match(job.warnings, [
      {
        pointer: '/deepspeed_config/comms_config',
        code: 'field_without_effect',
        message: /^comms_config has/,
      },
      { pointer: '/deepspeed_config/monitor_config', code: 'field_without_effect' },
    ]);
    t.strictSame(await send('/v1/jobs'), job);
    t.strictSame((await send('/v1/jobs?dry_run=true')).warnings, job.warnings);
    const later = await stack.request({ method: 'GET', url: `/v1/jobs/${job.id}` });
    t.notOk('warnings' in later.json());
  });

  t.test('a value out of the range of its field is reported at its key', async (t) => {
    const params = { lr: 30, betas: [0.9, 1.5], eps: 0 };
    const { scheduler: _, ...constant } = CONFIG;
    t.same(await errors({ ...constant, optimizer: { type: 'AdamW', params } }, { train: { steps: 40 } }), [
      '/deepspeed_config/optimizer/params/betas out_of_range',
      '/deepspeed_config/optimizer/params/eps out_of_range',
      '/deepspeed_config/optimizer/params/lr out_of_range',
    ]);
  });

  t.test('errors of the configuration and of other fields are reported together', async (t) => {
    const data = { dataset: `ds_${'0'.repeat(26)}` };
    t.same(await errors({ ...CONFIG, amp: { enabled: true } }, { data }), [
      '/data/dataset dataset_not_found',
      '/deepspeed_config/amp deepspeed_key_unsupported',
    ]);
    t.same(await errors('ds_config.json'), ['/deepspeed_config wrong_type']);
  });

  t.test('the number of steps is required', async (t) => {
    t.same(await errors({ ...CONFIG, scheduler: null }), ['/train/steps missing_field']);
  });
});
