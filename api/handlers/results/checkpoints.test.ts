import t from 'tap';
import type { Checkpoint, CheckpointVerdict, Job, Problem } from '../../../contracts/index.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { startTestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

const UNKNOWN = `ckpt_${'0'.repeat(26)}`;

t.test('checkpoints', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store, objects } = stack;
  const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object) =>
    stack.request({ method, url: `/v1/${url}`, ...(payload && { payload }) });

  /** A running job with checkpoints at these steps. */
  async function running(...steps: number[]) {
    const job = await stack.createJob();
    const execution = await claimAndTrain(store, job.id, { steps: steps[0] ?? 1 });
    for (const step of steps.slice(1))
      await store.commitCheckpoint(job.id, execution, checkpointOf(job.id, step));
    const checkpoints = (await store.listCheckpoints(job.id)).data;
    return { job, execution, checkpoints: checkpoints.reverse() };
  }

  t.test('a checkpoint is read, pinned and unpinned', async (t) => {
    const { job, execution, checkpoints } = await running(1, 2);
    const [first] = checkpoints as [Checkpoint];
    t.same((await call('GET', `checkpoints/${first.id}`)).json(), first);
    t.same((await call('PATCH', `checkpoints/${first.id}`, { pinned: true })).json(), {
      ...first,
      pinned: true,
    });
    t.equal((await call('DELETE', `checkpoints/${first.id}`)).json<Problem>().code, 'checkpoint_pinned');
    t.ok(await stack.objects.head(`${first.prefix}/PINNED`), 'which survives a loss of Redis');
    await t.rejects(store.removeCheckpoint(job.id, execution, first.id), { code: 'checkpoint_pinned' });
    t.same((await call('PATCH', `checkpoints/${first.id}`, { pinned: false })).json(), first);
    t.equal(await stack.objects.head(`${first.prefix}/PINNED`), null);
    t.equal((await call('PATCH', `checkpoints/${first.id}`, {})).statusCode, 422);
  });

  t.test('a checkpoint is deleted with its objects, unless a job resumes from it', async (t) => {
    const { job, checkpoints } = await running(1, 2);
    const [first, newest] = checkpoints as [Checkpoint, Checkpoint];
    await putTestCheckpoint(objects, first.prefix, { numels: [10], ranks: 2 });
    t.equal((await call('DELETE', `checkpoints/${newest.id}`)).json<Problem>().code, 'checkpoint_in_use');
    t.equal((await call('DELETE', `checkpoints/${first.id}`)).statusCode, 204);
    const left: string[] = [];
    for await (const { key } of objects.list(first.prefix)) left.push(key);
    t.same(left, []);
    t.same(
      (await store.listCheckpoints(job.id)).data.map(({ step }) => step),
      [2],
    );
    const gone = await call('GET', `checkpoints/${first.id}`);
    t.match(gone.json(), { status: 404, code: 'checkpoint_not_found', detail: /was removed/ });
    t.equal((await call('DELETE', `checkpoints/${first.id}`)).statusCode, 404);
  });

  t.test('unknown checkpoints', async (t) => {
    for (const [method, url, body] of [
      ['GET', `checkpoints/${UNKNOWN}`, undefined],
      ['PATCH', `checkpoints/${UNKNOWN}`, { pinned: true }],
      ['DELETE', `checkpoints/${UNKNOWN}`, undefined],
      ['POST', `checkpoints/${UNKNOWN}/verify`, undefined],
    ] as const)
      t.equal(
        (await call(method, url, body)).json<Problem>().code,
        'checkpoint_not_found',
        `${method} ${url}`,
      );
  });

  t.test('verify reports each damaged object', async (t) => {
    const { checkpoints } = await running(1);
    const [{ id, prefix }] = checkpoints as [Checkpoint];
    const verify = async () => (await call('POST', `checkpoints/${id}/verify`)).json<CheckpointVerdict>();
    t.match(await verify(), {
      valid: false,
      problems: [{ object: 'MANIFEST.json', code: 'object_not_found' }],
    });
    await putTestCheckpoint(objects, prefix, { numels: [10], ranks: 2 });
    t.match(await verify(), {
      valid: false,
      problems: [{ object: 'MANIFEST.json', code: 'manifest_invalid', message: /ckpt_test/ }],
    });
  });

  t.test('verify reads every byte', async (t) => {
    const { job, execution } = await running(1);
    const prefix = `jobs/${job.id}/checkpoints/000000010-1-a-v`;
    const id = 'ckpt_01KAJXAF2N4Q6S8V0X2Z4B6D8F';
    await putTestCheckpoint(objects, prefix, { numels: [10], ranks: 2 }, id);
    await store.commitCheckpoint(job.id, execution, { ...checkpointOf(job.id, 10), id, prefix });
    const verify = async () => (await call('POST', `checkpoints/${id}/verify`)).json<CheckpointVerdict>();
    t.match(await verify(), { checkpoint_id: id, valid: true, problems: [], bytes: 248 });
    const key = `${prefix}/shard-1.safetensors`;
    const bytes = await objects.get(key);
    const whole = 248 - bytes.length;
    bytes[70]! ^= 1;
    await objects.put(key, bytes);
    t.match(await verify(), {
      valid: false,
      bytes: whole,
      problems: [{ object: 'shard-1.safetensors', code: 'shard_corrupt', message: /chunk 0/ }],
    });
  });

  t.test('a checkpoint on demand', async (t) => {
    const { job, execution } = await running(1);
    const asked = await call('POST', `jobs/${job.id}/checkpoint`);
    t.equal(asked.statusCode, 202);
    t.equal(asked.json<Job>().state, 'running');
    const open = async () => (await store.renewLease(job.id, execution, 10_000)).save_request;
    const first = await open();
    await call('POST', `jobs/${job.id}/checkpoint`);
    const second = await open();
    t.ok(second > first);
    await store.commitCheckpoint(job.id, execution, checkpointOf(job.id, 2), { save_request: first });
    t.equal(await open(), second, 'the second is open');
    await store.commitCheckpoint(job.id, execution, checkpointOf(job.id, 3), { save_request: second });
    t.equal(await open(), 0);
    const events = await store.readStream(job.id, null, 1000, ['event']);
    t.equal(events.filter((entry) => 'type' in entry && entry.type === 'checkpoint.requested').length, 2);
    const idle = await stack.createJob();
    t.equal((await call('POST', `jobs/${idle.id}/checkpoint`)).json<Problem>().code, 'invalid_state');
  });

  t.test('a fork', async (t) => {
    const { job, checkpoints } = await running(3, 5);
    const [first, newest] = checkpoints as [Checkpoint, Checkpoint];
    for (const { prefix } of checkpoints) await objects.put(`${prefix}/MANIFEST.json`, Buffer.from('{}'));
    const fork = (payload: object) => call('POST', `jobs/${job.id}/fork`, payload);

    const same = await fork({});
    t.equal(same.statusCode, 201, same.body);
    const { id, spec } = same.json<Job>();
    t.not(id, job.id);
    t.same(spec, {
      ...job.spec,
      model: {
        ...job.spec.model,
        init_from: { checkpoint: newest.id, job: job.id, prefix: newest.prefix, restore: 'continue' },
      },
    });

    const steps = (job.spec.train.steps ?? 0) + 10;
    const changed = await fork({
      from_checkpoint: first.id,
      overrides: { name: 'longer', train: { steps }, checkpoint: { every_steps: null, every_seconds: 60 } },
    });
    t.match(changed.json<Job>(), {
      name: 'longer',
      spec: { train: { steps, seed: job.spec.train.seed }, checkpoint: { every_seconds: 60 } },
    });
    t.equal(
      changed.json<Job>().spec.model.init_from && 'checkpoint' in changed.json<Job>().spec.model.init_from!,
      true,
    );

    const errors = async (payload: object) =>
      (await fork(payload))
        .json<Problem>()
        .errors?.map(({ pointer, code }) => `${pointer} ${code}`)
        .join();
    t.equal(await errors({ overrides: { train: { steps: 5 } } }), '/train/steps steps_not_beyond_checkpoint');
    t.equal(await errors({ overrides: { train: { epochs: 2 } } }), '/train/epochs exactly_one_of');
    t.match(await errors({ overrides: { train: { optimizer: { type: 'sgd' } } } }), /optimizer/);
    t.equal(await errors({ overrides: { train: { stepz: 5 } } }), '/train/stepz unknown_field');
    t.equal((await fork({ from_checkpoint: UNKNOWN })).json<Problem>().code, 'checkpoint_not_found');
    const other = await running(1);
    t.match((await fork({ from_checkpoint: other.checkpoints[0]?.id })).json(), {
      detail: /is not a checkpoint of/,
    });
    const fresh = await stack.createJob();
    t.match((await call('POST', `jobs/${fresh.id}/fork`, {})).json(), { detail: /no checkpoint yet/ });
  });

  t.test('a fork over a quantized base has the same base', async (t) => {
    const job = await stack.createJob({
      model: { preset: 'llama-tiny', quantization: 'nf4' },
      train: { steps: 10, sequence_length: 16, adapter: {} },
    });
    t.equal(job.spec.model.quantization, 'nf4');
    await claimAndTrain(store, job.id, { steps: 3 });
    const [checkpoint] = (await store.listCheckpoints(job.id)).data;
    await objects.put(`${checkpoint?.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const forked = await call('POST', `jobs/${job.id}/fork`, {});
    t.equal(forked.statusCode, 201, forked.body);
    t.equal(forked.json<Job>().spec.model.quantization, 'nf4');
  });
});
