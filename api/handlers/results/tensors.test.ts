import t from 'tap';
import type { CheckpointTensorPage, Problem } from '../../../contracts/index.js';
import { parseSafetensorsHeader } from '../../../platform/safetensors/read-header.js';
import { elementValue, putTestCheckpoint } from '../../../platform/testing/checkpoints.js';
import { startTestStack, type TestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

const NUMELS = [300, 6, 41];

/** A job with a checkpoint of three ranks, of which each owns several stretches of a tensor. */
async function fill({ store, objects, createJob }: TestStack) {
  const { id: job_id } = await createJob();
  const execution = await claimAndTrain(store, job_id, { steps: 1 });
  const checkpoint = checkpointOf(job_id, 2);
  const shape = { numels: NUMELS, ranks: 3, frozen: [1] };
  await putTestCheckpoint(objects, checkpoint.prefix, shape, checkpoint.id);
  await store.commitCheckpoint(job_id, execution, checkpoint);
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
