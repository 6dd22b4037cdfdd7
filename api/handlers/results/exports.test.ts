import t from 'tap';
import type { Checkpoint, CheckpointExport, ExportPayload, Page, Problem } from '../../../contracts/index.js';
import { putExportRecord } from '../../../formats/checkpoint/export-record.js';
import type { ExportProgress } from '../../services.js';
import { startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

t.test('exports of a checkpoint', async (t) => {
  const asked: [string, ExportPayload][] = [];
  let progress: ExportProgress = { state: 'queued' };
  const stack = await startTestStack({
    exports: {
      request: async (pool, payload) => {
        asked.push([pool, payload]);
        return progress;
      },
      progress: async (_pool, { prefix }) =>
        asked.some(([, payload]) => payload.prefix === prefix) ? progress : null,
    },
  });
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 7 });
  const firstCheckpoint = async (id: string) => {
    const page: Page<Checkpoint> = (await stack.request({ url: `/v1/jobs/${id}/checkpoints` })).json();
    return page.data[0] as Checkpoint;
  };
  const checkpoint = await firstCheckpoint(job.id);
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
  const post = (payload: object, id = checkpoint.id) =>
    stack.request({ method: 'POST', url: `/v1/checkpoints/${id}/export`, payload });
  const list = async () => {
    const reply = await stack.request({ url: `/v1/checkpoints/${checkpoint.id}/exports` });
    return reply.json<{ data: CheckpointExport[] }>().data;
  };
  const folder = (kind: string) => `jobs/${job.id}/exports/7-${checkpoint.id}-${kind}`;

  await t.test('is put into the queue of its pool', async (t) => {
    t.strictSame(await list(), []);
    const reply = await post({ format: 'deepspeed_universal' });
    t.equal(reply.statusCode, 202);
    t.match(reply.json(), {
      checkpoint_id: checkpoint.id,
      job_id: job.id,
      format: 'deepspeed_universal',
      dtype: 'fp32',
      state: 'queued',
      files: [],
    });
    const [pool, payload] = asked.at(-1) ?? [];
    t.equal(pool, 'default');
    t.strictSame(payload, {
      job_id: job.id,
      checkpoint: { id: checkpoint.id, prefix: checkpoint.prefix, step: checkpoint.step },
      format: 'deepspeed_universal',
      dtype: 'fp32',
      weights: 'trained',
      tensorboard: false,
      prefix: folder('deepspeed_universal-fp32'),
    });
    progress = { state: 'running' };
    t.match(await list(), [{ format: 'deepspeed_universal', state: 'running', error: null }]);
  });

  await t.test('defaults to the dtype of the job', async (t) => {
    t.match((await post({})).json(), { format: 'safetensors', dtype: 'bf16' });
    t.match((await post({ dtype: 'fp16' })).json(), { format: 'safetensors', dtype: 'fp16' });
  });

  await t.test('has the average of the weights only of a job that keeps one', async (t) => {
    t.match((await post({ weights: 'ema' })).json<Problem>(), {
      errors: [{ pointer: '/weights', code: 'weights_missing', suggestion: 'trained' }],
    });
    const train = { steps: 10, sequence_length: 16, ema: { decay: 0.5 } };
    const averaged = await stack.createJob({ train, export: { weights: 'ema' } });
    await claimAndTrain(stack.store, averaged.id, { steps: 7 });
    const last = await firstCheckpoint(averaged.id);
    await stack.objects.put(`${last.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const prefix = (kind: string) => `jobs/${averaged.id}/exports/7-${last.id}-${kind}`;
    const defaultPrefix = prefix('safetensors-bf16-ema');
    t.match((await post({}, last.id)).json(), { weights: 'ema', prefix: defaultPrefix });
    const trained = (await post({ weights: 'trained' }, last.id)).json();
    t.match(trained, { weights: 'trained', prefix: prefix('safetensors-bf16') });
    const universal = { format: 'deepspeed_universal' };
    t.match((await post(universal, last.id)).json(), { weights: 'trained' });
    t.match((await post({ ...universal, weights: 'ema' }, last.id)).json<Problem>(), {
      errors: [{ pointer: '/weights', code: 'field_without_effect' }],
    });
    const { data } = (await stack.request({ url: `/v1/checkpoints/${last.id}/exports` })).json();
    t.same(
      data.map(({ format, weights }: CheckpointExport) => [format, weights]),
      [
        ['deepspeed_universal', 'trained'],
        ['safetensors', 'trained'],
        ['safetensors', 'ema'],
      ],
    );
  });

  await t.test('has an event file if the request or the job says so', async (t) => {
    const stored = await stack.createJob({ export: { tensorboard: true } });
    await claimAndTrain(stack.store, stored.id, { steps: 7 });
    const last = await firstCheckpoint(stored.id);
    await stack.objects.put(`${last.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const prefix = (kind: string) => `jobs/${stored.id}/exports/7-${last.id}-${kind}`;
    t.match((await post({}, last.id)).json(), {
      tensorboard: true,
      prefix: prefix('safetensors-bf16-tensorboard'),
    });
    t.match((await post({ tensorboard: false }, last.id)).json(), {
      tensorboard: false,
      prefix: prefix('safetensors-bf16'),
    });
    t.match(asked.at(-2)?.[1], { checkpoint: { step: 7 }, tensorboard: true });
    const { data } = (await stack.request({ url: `/v1/checkpoints/${last.id}/exports` })).json();
    t.same(
      data.map(({ tensorboard }: CheckpointExport) => tensorboard),
      [false, true],
    );
  });

  await t.test('reports why it failed', async (t) => {
    progress = { state: 'failed', error: { code: 'shard_corrupt', message: 'bytes of chunk 3' } };
    t.match(await list(), [{ state: 'failed', error: progress.error }, {}, {}]);
  });

  await t.test('is described by its record once it is written', async (t) => {
    const count = asked.length;
    const record = {
      checkpoint_id: checkpoint.id,
      job_id: job.id,
      format: 'safetensors' as const,
      dtype: 'bf16' as const,
      weights: 'trained' as const,
      tensorboard: false,
      prefix: folder('safetensors-bf16'),
      state_digest: checkpoint.state_digest,
      files: [{ name: 'config.json', bytes: 3, sha256: 'a'.repeat(64) }],
    };
    await putExportRecord(stack.objects, { format_version: 1, ...record });
    await putExportRecord(stack.objects, { format_version: 1, ...record, files: [] });
    const written = { ...record, state: 'succeeded', error: null };
    t.strictSame((await post({})).json(), written, 'the first record stays');
    t.equal(asked.length, count, 'no worker is called again');
    t.match(await list(), [written, { format: 'deepspeed_universal' }, { dtype: 'fp16' }]);
    await stack.objects.put(`${record.prefix}/EXPORT.json`, Buffer.from('{}'));
    t.equal((await post({})).json<Problem>().code, 'export_failed');
  });

  await t.test('bad requests', async (t) => {
    const refused: [object, string][] = [
      [{ format: 'onnx' }, '/format'],
      [{ format: 'gguf_lora' }, '/format'],
      [{ format: 'safetensors', dtype: 'q8_0' }, '/dtype'],
      [{ dtype: 'int8' }, '/dtype'],
      [{ format: 'deepspeed_universal', dtype: 'bf16' }, '/dtype'],
    ];
    for (const [payload, pointer] of refused) {
      const reply = await post(payload);
      t.equal(reply.statusCode, 422);
      t.equal(reply.json<Problem>().errors[0]?.pointer, pointer);
    }
    const unknown = `ckpt_${'0'.repeat(26)}`;
    t.equal((await post({}, unknown)).json<Problem>().code, 'checkpoint_not_found');
    const reply = await stack.request({ url: `/v1/checkpoints/${unknown}/exports` });
    t.equal(reply.json<Problem>().code, 'checkpoint_not_found');
  });

  await t.test('of a removed checkpoint', async (t) => {
    await stack.objects.delete([`${checkpoint.prefix}/MANIFEST.json`]);
    t.equal((await post({ dtype: 'fp32' })).json<Problem>().code, 'checkpoint_not_found');
  });
});
