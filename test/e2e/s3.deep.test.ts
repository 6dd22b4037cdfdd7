/**
 * The main job with everything in an S3 bucket: paused on 2 ranks, continued on 3, with the same digest as without a
 * pause.
 */
import { createHash } from 'node:crypto';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import t from 'tap';
import { startRadosgw, whyNoRadosgw } from '../../platform/testing/radosgw.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 60;
const BUCKET = 'zerofleet-e2e';
const PREFIX = 'team/a';
const skip = (await whyNoRadosgw()) ?? false;

t.test('the main job on S3', { skip }, async (t) => {
  const s3 = await startRadosgw();
  t.teardown(() => s3.stop());
  await s3.createBucket(BUCKET);
  const { client } = await startStack(t, {
    env: {
      ZEROFLEET_OBJECT_STORE: `s3://${BUCKET}/${PREFIX}`,
      ZEROFLEET_S3_ENDPOINT: s3.endpoint,
      AWS_REGION: s3.region,
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    },
  });
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const reference = await client.jobs.create(
    smallJob({ name: 'reference', dataset, steps: STEPS, ranks: 1 }),
  );
  const expected = await client.jobs.until(reference.id, () => false);
  t.equal(expected.state, 'succeeded', JSON.stringify(expected.failure));

  const { id } = await client.jobs.create(smallJob({ name: 'main', dataset, steps: STEPS, ranks: 2 }));
  await client.jobs.until(id, (job) => job.progress.step >= 20, { interval_ms: 10 });
  await client.jobs.pause(id);
  const paused = await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
  t.equal(paused.state, 'paused', JSON.stringify(paused.failure));
  await client.jobs.resume(id, { ranks: 3 });
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.match(job.export?.state_digest, /^[0-9a-f]{32}$/);
  t.equal(job.export?.state_digest, expected.export?.state_digest);

  const bucket = new S3Client({
    endpoint: s3.endpoint,
    region: s3.region,
    credentials: s3.credentials,
    forcePathStyle: true,
  });
  t.teardown(() => bucket.destroy());
  const listed = await bucket.send(new ListObjectsV2Command({ Bucket: BUCKET }));
  const keys = (listed.Contents ?? []).map(({ Key }) => Key ?? '');
  t.ok(
    keys.every((key) => key.startsWith(`${PREFIX}/`)),
    'nothing outside the prefix',
  );
  const model = `${PREFIX}/${job.export?.prefix.replace(/\/$/, '')}/config.json`;
  t.ok(keys.includes(model), keys.join('\n'));
  const config = await bucket.send(new GetObjectCommand({ Bucket: BUCKET, Key: model }));
  t.match(JSON.parse((await config.Body?.transformToString()) ?? ''), { model_type: 'llama' });

  const { files, expires_at } = await client.checkpoints.downloadUrls(job.latest_checkpoint?.id ?? '', {
    format: 'safetensors',
  });
  t.ok(Date.parse(`${expires_at}`) > Date.now());
  t.same(files.map(({ name }) => name).sort(), job.export?.files.map(({ name }) => name).sort());
  for (const file of files) {
    t.ok(file.url.startsWith(`${s3.endpoint}/${BUCKET}/${PREFIX}/jobs/${id}/exports/`), 'straight from S3');
    const bytes = new Uint8Array(await new Response(await client.checkpoints.openFile(file)).arrayBuffer());
    t.equal(createHash('sha256').update(bytes).digest('hex'), file.sha256, file.name);
  }

  const text = Buffer.alloc(17 * 1024 ** 2, 'to be or not to be, that is the question.\n');
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
  const { uploads } = client.datasets;
  const upload = await uploads.begin({ name: 'parts', bytes: text.length, digest });
  const { parts } = await uploads.urls(upload.id);
  t.same(
    parts.map(({ part_number, bytes }) => [part_number, bytes]),
    [
      [1, upload.part_bytes],
      [2, text.length - upload.part_bytes],
    ],
  );
  for (const { url } of parts)
    t.ok(url.startsWith(`${s3.endpoint}/${BUCKET}/${PREFIX}/uploads/`), 'straight to S3');
  const uploaded = await uploads.resume(upload.id, (begin, end) => text.subarray(begin, end));
  t.match(uploaded, { name: 'parts', bytes: text.length, digest });
});
