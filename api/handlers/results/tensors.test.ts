import t from 'tap';
import type { CheckpointTensorPage, EditPayload, Problem, TensorEdit } from '../../../contracts/index.js';

import { safetensorsHeader } from '../../../formats/safetensors/header.js';
import { parseSafetensorsHeader } from '../../../formats/safetensors/read-header.js';
import { elementValue, putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import type { EditPort, EditProgress } from '../../services.js';
import { startTestStack, type TestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

const NUMELS = [300, 6, 41];

/** A job with a checkpoint of three ranks, of which each owns several stretches of a tensor. */
async function fill({ store, objects, createJob }: TestStack) {
  const { id: jobId } = await createJob();
  const execution = await claimAndTrain(store, jobId, { steps: 1 });
  const checkpoint = checkpointOf(jobId, 2);
  const shape = { numels: NUMELS, ranks: 3, frozen: [1] };
  await putTestCheckpoint(objects, checkpoint.prefix, shape, checkpoint.id);
  await store.commitCheckpoint(jobId, execution, checkpoint);
  return { checkpoint, execution };
}

t.test('tensors of a checkpoint', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { checkpoint, execution } = await fill(stack);
  const tensors = `/v1/checkpoints/${checkpoint.id}/tensors`;
  const problem = async (url: string) => (await stack.request({ url })).json<Problem>();

  t.test('the list has the states of each one, in pages', async (t) => {
    const all = (await stack.request({ url: tensors })).json<CheckpointTensorPage>();
    const adam = ['master', 'exp_avg', 'exp_avg_sq'];
    t.strictSame(all, {
      data: [
        { name: 'p0', shape: [300], dtype: 'fp32', states: adam },
        { name: 'p1', shape: [6], dtype: 'fp32', states: ['master'] },
        { name: 'p2', shape: [41], dtype: 'fp32', states: adam },
      ],
      next_cursor: null,
    });
    const first = (await stack.request({ url: `${tensors}?limit=2` })).json<CheckpointTensorPage>();
    t.equal(first.next_cursor, 'p1');
    const second = (await stack.request({ url: `${tensors}?limit=2&after=p1` })).json<CheckpointTensorPage>();
    t.strictSame([...first.data, ...second.data], all.data);
    t.equal(second.next_cursor, null);
    t.match(await problem(`${tensors}?after=p9`), { status: 404, code: 'tensor_not_found' });
  });

  t.test('a tensor is a safetensors file, assembled from all shards', async (t) => {
    for (const [param, state] of [
      [0, 'master'],
      [0, 'exp_avg_sq'],
      [1, 'master'],
      [2, 'exp_avg'],
    ] as const) {
      const name = `p${param}`;
      const reply = await stack.request({ url: `${tensors}/${name}?state=${state}` });
      t.equal(reply.statusCode, 200);
      const { bytes, tensors: found, metadata } = parseSafetensorsHeader(reply.rawPayload);
      const numel = NUMELS[param] ?? 0;
      t.strictSame(found, [{ name, dtype: 'F32', shape: [numel], begin: 0, end: numel * 4 }]);
      t.strictSame(metadata, { checkpoint: checkpoint.id, state });
      const values = Array.from({ length: numel }, (_, element) =>
        reply.rawPayload.readFloatLE(bytes + 4 * element),
      );
      const expected = values.map((_, element) => elementValue(NUMELS, state, param, element));
      t.strictSame(values, expected, `${name} ${state}`);
      t.equal(reply.headers['content-length'], String(reply.rawPayload.length));
      const head = await stack.request({ method: 'HEAD', url: `${tensors}/${name}?state=${state}` });
      t.equal(head.headers['content-length'], reply.headers['content-length']);
    }
    const [plain, named] = await Promise.all(
      [`${tensors}/p0`, `${tensors}/p0?state=master`].map((url) => stack.request({ url })),
    );
    t.strictSame(plain?.rawPayload, named?.rawPayload, 'the default is the weights');
  });

  t.test('what does not exist is refused', async (t) => {
    t.match(await problem(`${tensors}/p7`), {
      status: 404,
      code: 'tensor_not_found',
      detail: /did you mean p/,
    });
    t.match(await problem(`${tensors}/p1?state=exp_avg`), {
      code: 'tensor_not_found',
      detail: 'p1 has master, but no exp_avg',
    });
    t.match(await problem(`${tensors}/p0?state=ema`), { code: 'tensor_not_found' });
    t.match(await problem(`${tensors}/p0?state=grad`), { status: 400, code: 'invalid_parameter' });
    t.match(await problem(`${tensors}/..%2f..%2fspec.json`), { status: 400, code: 'invalid_parameter' });
    const unknown = checkpoint.id.replace(/.{4}$/, '0000');
    t.match(await problem(`/v1/checkpoints/${unknown}/tensors/p0`), { code: 'checkpoint_not_found' });
  });

  t.test('reading a tensor keeps the checkpoint from retention', async (t) => {
    const { store } = stack;
    const { id, job_id } = checkpoint;
    await stack.request({ url: `${tensors}/p0` });
    await t.rejects(store.removeCheckpoint(job_id, execution, id), { code: 'checkpoint_held' });
  });

  t.test('a damaged shard is an error and not half an answer', async (t) => {
    const { objects } = stack;
    const key = `${checkpoint.prefix}/shard-0.safetensors`;
    const bytes = await objects.get(key);
    bytes[100] = (bytes[100] ?? 0) ^ 1;
    await objects.put(key, bytes);
    t.match(await problem(`${tensors}/p0`), { status: 500, code: 'shard_corrupt' });
    await objects.delete([`${checkpoint.prefix}/MANIFEST.json`]);
    t.match(await problem(`${tensors}/p0`), { status: 404, code: 'checkpoint_not_found' });
    t.match(await problem(tensors), { status: 404, code: 'checkpoint_not_found' });
  });
});

const STREAM = { 'content-type': 'application/octet-stream' };

function fileOf(name: string, shape: number[], value: number): Buffer {
  const numel = shape.reduce((product, size) => product * size, 1);
  const header = safetensorsHeader([{ name, dtype: 'F32', shape, begin: 0, end: numel * 4 }], {});
  return Buffer.concat([header, Buffer.from(new Float32Array(numel).fill(value).buffer)]);
}

/** Remembers requested changes, as a queue without a worker. */
class FakeEdits implements EditPort {
  readonly requested = new Map<string, { payload: EditPayload; progress: EditProgress }>();

  async requestEdit(_pool: string, payload: EditPayload): Promise<EditProgress> {
    const progress = { state: 'queued' as const };
    this.requested.set(payload.edit_id, { payload, progress });
    return progress;
  }

  async findEdit(_pool: string, editId: string) {
    return this.requested.get(editId) ?? null;
  }
}

t.test('changes of a tensor', async (t) => {
  const edits = new FakeEdits();
  const stack = await startTestStack({ edits });
  t.teardown(() => stack.close());
  const { store, objects } = stack;
  const { checkpoint, execution } = await fill(stack);
  const { id, job_id } = checkpoint;
  const put = (name: string, payload: Buffer, query = '', checkpoint = id) =>
    stack.request({
      method: 'PUT',
      url: `/v1/checkpoints/${checkpoint}/tensors/${name}${query}`,
      headers: STREAM,
      payload,
    });
  const stored = async () => {
    const keys: string[] = [];
    for await (const { key } of objects.list(`jobs/${job_id}/exports/`)) keys.push(key);
    return keys;
  };

  t.test('only a job that no worker holds', async (t) => {
    const refused = await put('p0', fileOf('p0', [300], 1));
    t.match(refused.json<Problem>(), {
      status: 409,
      code: 'invalid_state',
      detail: /is running: pause it first/,
    });
    await store.requestPause(job_id);
    t.match((await put('p0', fileOf('p0', [300], 1))).json(), {
      code: 'invalid_state',
      detail: /is pausing/,
    });
    await store.releaseAttempt(job_id, execution, { to: 'paused' });
    t.strictSame(await stored(), []);
  });

  let first: TensorEdit;
  t.test('the values wait for a worker, once for equal requests', async (t) => {
    const reply = await put('p0', fileOf('p0', [300], 2), '?state=exp_avg');
    t.equal(reply.statusCode, 202);
    first = reply.json<TensorEdit>();
    t.match(first, {
      made_from: id,
      tensor: 'p0',
      tensor_state: 'exp_avg',
      state: 'queued',
      checkpoint_id: null,
    });
    t.equal(reply.headers.location, `/v1/checkpoints/${id}/edits/${first.id}`);
    const { payload } = edits.requested.get(first.id) ?? {};
    t.strictSame(
      await objects.get(payload?.values.key ?? ''),
      Buffer.from(new Float32Array(300).fill(2).buffer),
    );
    t.match(payload, { job_id, checkpoint: { id, prefix: checkpoint.prefix } });
    t.strictSame((await put('p0', fileOf('p0', [300], 2), '?state=exp_avg')).json(), first);
    t.equal((await stored()).length, 1, 'the values of the repetition are not kept');
    t.not((await put('p0', fileOf('p0', [300], 3), '?state=exp_avg')).json<TensorEdit>().id, first.id);
    await t.rejects(store.deleteCheckpoint(id), { code: 'checkpoint_in_use' });
  });

  t.test('the progress of a change', async (t) => {
    const read = async (edit: string, checkpoint = id) =>
      (await stack.request({ url: `/v1/checkpoints/${checkpoint}/edits/${edit}` })).json();
    t.strictSame(await read(first.id), first);
    const found = edits.requested.get(first.id);
    const error = { code: 'shard_corrupt', message: 'chunk 3' };
    if (found) found.progress = { state: 'failed', error };
    t.match(await read(first.id), { state: 'failed', error, checkpoint_id: null });
    const again = (await put('p0', fileOf('p0', [300], 2), '?state=exp_avg')).json<TensorEdit>();
    t.match(again, { id: first.id, state: 'queued' }, 'a failed change is requested again');
    t.match(await read('0'.repeat(32)), { status: 404, code: 'edit_not_found' });
    t.match(await read('x'), { status: 400 });
  });

  t.test('what cannot be changed is refused, and leaves nothing', async (t) => {
    const before = await stored();
    t.match((await put('p0', fileOf('p0', [299], 2))).json(), {
      status: 422,
      code: 'tensor_invalid',
      detail: /shape/,
    });
    t.match((await put('p0', fileOf('p0', [300], Number.NaN))).json(), {
      code: 'tensor_invalid',
      detail: /NaN/,
    });
    t.match((await put('p9', fileOf('p9', [300], 2))).json(), { status: 404, code: 'tensor_not_found' });
    t.match((await put('p1', fileOf('p1', [6], 2), '?state=exp_avg')).json(), { code: 'tensor_not_found' });
    t.match((await put('p0', Buffer.alloc(0))).json(), { status: 422 });
    const [, older] = (await store.listCheckpoints(job_id)).data;
    await putTestCheckpoint(objects, older?.prefix ?? '', { numels: NUMELS, ranks: 1 }, older?.id);
    t.match((await put('p0', fileOf('p0', [300], 2), '', older?.id)).json(), {
      status: 409,
      code: 'checkpoint_not_newest',
      detail: `${older?.id} is not the newest checkpoint of its job; change ${id}, or fork the job from ${older?.id}`,
    });
    t.strictSame(await stored(), before);
  });

  t.test('a repeated request finds the checkpoint that the first one made', async (t) => {
    const made = { ...checkpoint, id: id.replace(/.{4}$/, 'ZZZZ'), prefix: `${checkpoint.prefix}-made` };
    const madeFrom = {
      checkpoint_id: id,
      edit_id: first.id,
      tensor: 'p0',
      tensor_state: 'exp_avg' as const,
    };
    await store.commitEdit({ ...made, made_from: madeFrom }, { sourceId: id, epoch: 1 });
    const found = edits.requested.get(first.id);
    if (found) found.progress = { state: 'succeeded', checkpoint_id: made.id };
    const reply = await put('p0', fileOf('p0', [300], 2), '?state=exp_avg');
    t.match(reply.json(), { id: first.id, state: 'succeeded', checkpoint_id: made.id });
    t.match((await put('p0', fileOf('p0', [300], 9))).json(), { code: 'checkpoint_not_newest' });
    t.match((await stack.request({ url: `/v1/checkpoints/${made.id}` })).json(), { made_from: madeFrom });
  });
});
