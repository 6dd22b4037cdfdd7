import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import tar from 'tar-stream';
import type { Execution } from '../../../contracts/execution.js';
import type { Checkpoint, Download, Problem } from '../../../contracts/index.js';
import { putExportRecord } from '../../../formats/checkpoint/export-record.js';
import { checkpointExportPrefix } from '../../../formats/checkpoint/layout.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { connectRedis, disconnectRedis } from '../../../platform/redis/connect.js';
import { ADMIN_KEY, startTestStack, type TestStack, withMethod } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface Filled {
  checkpoint: Checkpoint;
  execution: Execution;
  job_id: string;
}

/** A training job with a complete checkpoint. */
async function fill({ store, objects, createJob }: TestStack): Promise<Filled> {
  const { id: jobId } = await createJob();
  const execution = await claimAndTrain(store, jobId, { steps: 1 });
  const checkpoint = checkpointOf(jobId, 2);
  await putTestCheckpoint(objects, checkpoint.prefix, { numels: [10, 6], ranks: 2 }, checkpoint.id);
  await store.commitCheckpoint(jobId, execution, checkpoint);
  return { checkpoint, execution, job_id: jobId };
}

const files = {
  'model.safetensors': randomBytes(100_000),
  'zero/layers.0.weight/fp32.pt': randomBytes(10),
  'empty.json': Buffer.alloc(0),
};

async function putExport({ objects }: TestStack, { checkpoint, job_id }: Filled): Promise<string> {
  const kind = { format: 'safetensors', dtype: 'fp16', weights: 'trained', tensorboard: false } as const;
  const prefix = checkpointExportPrefix(job_id, checkpoint.step, { checkpoint: checkpoint.id, ...kind });
  for (const [name, bytes] of Object.entries(files)) await objects.put(`${prefix}/${name}`, bytes);
  const listed = Object.entries(files).map(([name, bytes]) => ({
    name,
    bytes: bytes.length,
    sha256: sha256(bytes),
  }));
  const { id: checkpointId, state_digest } = checkpoint;
  const record = {
    format_version: 1 as const,
    checkpoint_id: checkpointId,
    job_id,
    ...kind,
    prefix,
    state_digest,
    files: listed,
  };
  await putExportRecord(objects, record);
  return prefix;
}

t.test('files in a directory come through the API', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const filled = await fill(stack);
  const { checkpoint } = filled;
  const urls = (payload?: object, id = checkpoint.id) =>
    stack.request({
      method: 'POST',
      url: `/v1/checkpoints/${id}/download-urls`,
      ...(payload && { payload }),
    });
  const prefix = await putExport(stack, filled);

  t.test('a checkpoint: the manifest and all shards, as listed', async (t) => {
    const list = (await urls()).json<Download>();
    t.match(list, {
      checkpoint_id: checkpoint.id,
      format: null,
      dtype: null,
      weights: null,
      expires_at: null,
    });
    t.equal(list.files.length, 3);
    t.equal(list.files[0]?.name, 'MANIFEST.json');
    for (const file of list.files) {
      const reply = await stack.request({ url: file.url });
      t.equal(reply.statusCode, 200);
      t.equal(reply.rawPayload.length, file.bytes);
      t.equal(sha256(reply.rawPayload), file.sha256, file.name);
      t.equal(reply.headers.etag, `"${file.sha256}"`);
    }
  });

  t.test('an export with subfolders; whole or in ranges', async (t) => {
    const list = (await urls({ format: 'safetensors', dtype: 'fp16' })).json<Download>();
    t.match(list, { format: 'safetensors', dtype: 'fp16', state_digest: checkpoint.state_digest });
    for (const file of list.files) {
      const bytes = files[file.name as keyof typeof files];
      t.ok((await stack.request({ url: file.url })).rawPayload.equals(bytes), file.name);
    }
    const { url = '' } = list.files[0] ?? {};
    for (const [range, begin, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=99999-', 99_999, 100_000],
      ['bytes=10-20', 10, 21],
      ['bytes=50000-999999999', 50_000, 100_000],
    ] as const) {
      const reply = await stack.request({ url, headers: { range } });
      t.equal(reply.statusCode, 206, range);
      t.equal(reply.headers['content-range'], `bytes ${begin}-${end - 1}/100000`);
      t.ok(reply.rawPayload.equals(files['model.safetensors'].subarray(begin, end)));
    }
    for (const range of ['bytes=100000-', 'bytes=20-10'])
      t.match((await stack.request({ url, headers: { range } })).json<Problem>(), {
        code: 'range_not_satisfiable',
      });
    for (const range of ['bytes=-5', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=a-'])
      t.equal((await stack.request({ url, headers: { range } })).statusCode, 400, range);
  });

  t.test('all files as one archive; a file that is incomplete breaks it off', async (t) => {
    const url = `/v1/checkpoints/${checkpoint.id}/archive?format=safetensors&dtype=fp16`;
    const reply = await stack.request({ url });
    t.match(reply.headers, {
      'content-type': 'application/x-tar',
      'content-disposition': `attachment; filename="${checkpoint.id}.tar"`,
    });
    const found = new Map<string, Buffer>();
    const extract = tar.extract();
    Readable.from([reply.rawPayload]).pipe(extract);
    for await (const entry of extract) found.set(entry.header.name, await buffer(entry));
    const expected = Object.entries(files).map(([name, bytes]) => [`${checkpoint.id}/${name}`, bytes]);
    t.same([...found], expected);
    t.equal((await stack.request({ method: 'HEAD', url })).rawPayload.length, 0);
    await stack.objects.put(`${prefix}/model.safetensors`, files['model.safetensors'].subarray(1));
    const base = await stack.listen();
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    await t.rejects(fetch(base + url, { headers }).then((answer) => answer.arrayBuffer()));
    await stack.objects.put(`${prefix}/model.safetensors`, files['model.safetensors']);
    const none = await stack.request({ url: `${url}&weights=ema` });
    t.match(none.json<Problem>(), { code: 'validation_failed' });
  });

  t.test('names cannot reach other objects', async (t) => {
    const secret = `jobs/${filled.job_id}/spec.json`;
    await stack.objects.put(secret, Buffer.from('{}'));
    const names = [
      '../../spec.json',
      '/etc/passwd',
      '..',
      './MANIFEST.json',
      'MANIFEST.json/',
      'manifest.json',
      `a\u0000`,
    ];
    for (const name of names) {
      const url = `/v1/checkpoints/${checkpoint.id}/file?${new URLSearchParams({ name })}`;
      t.match(
        (await stack.request({ url })).json<Problem>(),
        { status: 404, code: 'export_not_found' },
        name,
      );
    }
  });

  t.test('unknown files and invalid combinations', async (t) => {
    t.match((await urls({ format: 'safetensors', dtype: 'fp32' })).json<Problem>(), {
      code: 'export_not_found',
    });
    for (const field of [{ dtype: 'fp32' }, { weights: 'trained' }, { tensorboard: false }])
      t.match((await urls(field)).json<Problem>(), {
        errors: [{ pointer: `/${Object.keys(field)}`, code: 'field_without_effect' }],
      });
    t.match((await urls({ format: 'deepspeed_universal', dtype: 'bf16' })).json<Problem>(), {
      code: 'validation_failed',
    });
    t.match((await urls({}, `ckpt_${'0'.repeat(26)}`)).json<Problem>(), { code: 'checkpoint_not_found' });
    t.match((await urls({ expires_seconds: 10 })).json<Problem>(), { code: 'validation_failed' });
    // A record whose bytes are missing.
    const gone = checkpointOf(filled.job_id, 3);
    await stack.store.commitCheckpoint(filled.job_id, filled.execution, gone);
    t.match((await urls({}, gone.id)).json<Problem>(), { code: 'checkpoint_not_found' });
  });

  t.test('an export outlives its checkpoint, and a job has its own export', async (t) => {
    const { store } = stack;
    await store.deleteCheckpoint(checkpoint.id);
    t.match((await urls()).json<Problem>(), { code: 'checkpoint_not_found' });
    t.equal((await urls({ format: 'safetensors', dtype: 'fp16' })).statusCode, 200);
    t.match((await urls({ format: 'safetensors', dtype: 'fp16', tensorboard: true })).json<Problem>(), {
      code: 'export_not_found',
      detail: /with an event file/,
    });

    const last = (await store.getJob(filled.job_id))?.latest_checkpoint?.id ?? '';
    const prefix = `jobs/${filled.job_id}/exports/9`;
    await stack.objects.put(`${prefix}/config.json`, Buffer.from('{}'));
    const listed = { name: 'config.json', bytes: 2, sha256: sha256(Buffer.from('{}')) };
    const exported = {
      checkpoint_id: last,
      step: 9,
      prefix,
      state_digest: checkpoint.state_digest,
      files: [listed],
    };
    await store.finishJob(filled.job_id, filled.execution, 'succeeded', { export: exported });
    const list = (await urls({ format: 'safetensors' }, last)).json<Download>();
    t.match(list, { dtype: 'bf16', weights: 'trained', tensorboard: false, files: [listed] });
    t.equal((await stack.request({ url: list.files[0]?.url ?? '' })).body, '{}');
  });
});

t.test(
  'a download protects a checkpoint from retention for a while, but not from deletion by a client',
  async (t) => {
    const stack = await startTestStack();
    t.teardown(() => stack.close());
    const { store } = stack;
    const redis = await connectRedis(stack.redis.url, 'commands');
    t.teardown(() => disconnectRedis(redis));
    const filled = await fill(stack);
    const { checkpoint, execution, job_id } = filled;
    await store.commitCheckpoint(job_id, execution, checkpointOf(job_id, 3));
    const retention = () => store.removeCheckpoint(job_id, execution, checkpoint.id);
    const holdsOf = async () => {
      const [, until] = await redis.zrange(`{zf}:checkpoint:${checkpoint.id}:holds`, '0', '-1', 'WITHSCORES');
      return (Number(until) - Date.now()) / 1000;
    };
    const urls = (payload: object) =>
      stack.request({ method: 'POST', url: `/v1/checkpoints/${checkpoint.id}/download-urls`, payload });

    const list = (await urls({ expires_seconds: 60 })).json<Download>();
    await t.rejects(retention(), { code: 'checkpoint_held', message: /download/ });
    t.ok((await holdsOf()) <= 61, 'as long as the URLs are valid');
    t.equal((await stack.request({ url: list.files[0]?.url ?? '' })).statusCode, 200);
    const afterFile = await holdsOf();
    t.ok(afterFile > 3500 && afterFile <= 3601, 'each file extends the protection to an hour');
    await urls({ expires_seconds: 60 });
    t.ok((await holdsOf()) > 3500, 'a shorter request does not shorten the protection');
    await putExport(stack, filled);

    const removed = await stack.request({ method: 'DELETE', url: `/v1/checkpoints/${checkpoint.id}` });
    t.equal(removed.statusCode, 204, removed.body);
    t.match((await urls({})).json<Problem>(), { code: 'checkpoint_not_found' });
  },
);

t.test('files in S3 have URLs of their own, of just these objects', async (t) => {
  const asked: [string, number][] = [];
  const stack = await startTestStack({
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'downloadUrl', async (key, seconds) => {
        asked.push([key, seconds]);
        return `https://bucket.example/${key}?X-Amz-Signature=1`;
      }),
    }),
  });
  t.teardown(() => stack.close());
  const filled = await fill(stack);
  const url = `/v1/checkpoints/${filled.checkpoint.id}/download-urls`;
  const before = Date.now();
  const list = (
    await stack.request({ method: 'POST', url, payload: { expires_seconds: 600 } })
  ).json<Download>();
  t.same(
    asked,
    list.files.map(({ name }) => [`${filled.checkpoint.prefix}/${name}`, 600]),
  );
  t.match(list.files[0]?.url, /^https:\/\/bucket\.example\/jobs\//);
  const left = Date.parse(`${list.expires_at}`) - before;
  t.ok(left >= 600_000 && left < 660_000);
  const via = (await stack.request({ method: 'POST', url, payload: { via: 'api' } })).json<Download>();
  t.match(via, { expires_at: null, files: [{ url: /^\/v1\/checkpoints\// }] });
});
