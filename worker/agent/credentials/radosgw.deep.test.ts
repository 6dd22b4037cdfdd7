/** Tests of the rights of a session at Ceph's radosgw, a server with STS and session policies. */
import t from 'tap';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { S3Store } from '../../../platform/object-store/s3/store.js';
import { startRadosgw, whyNoRadosgw } from '../../../platform/testing/radosgw.js';
import { testSpec } from '../../testing/start-message.js';
import { AttemptRole } from './attempt-role.js';

const OWN = 'job_01J00000000000000000000000';
const OTHER = 'job_01J00000000000000000000001';
const SOURCE = 'job_01J00000000000000000000002';
const MODEL = 'mdl_01J00000000000000000000000';
const DATASET = 'ds_01J00000000000000000000000';
const MIB = 1024 * 1024;

// Installing the server may take minutes.
t.setTimeout(600_000);
const skip = (await whyNoRadosgw()) ?? false;

t.test('a session of a job, at a server with STS', { skip }, async (t) => {
  const server = await startRadosgw();
  t.teardown(() => server.stop());
  await server.createBucket('fleet');
  const everything = { Effect: 'Allow', Action: ['s3:*'], Resource: ['arn:aws:s3:::*'] };
  const roleArn = await server.createRole('attempt', { Version: '2012-10-17', Statement: [everything] });
  const { endpoint, region, credentials } = server;
  const agent = new S3Store({ bucket: 'fleet', prefix: 'a', endpoint, region, credentials });
  t.teardown(() => agent.close());
  const checkpoint = `jobs/${SOURCE}/checkpoints/000000005-1-a-abc`;
  const theirs = [
    `jobs/${OTHER}/checkpoints/000000005-1-a-abc/shard`,
    `jobs/${SOURCE}/checkpoints/000000009-1-a-abc/shard`,
    `datasets/ds_01J00000000000000000000001/text`,
    `models/mdl_01J00000000000000000000001/config.json`,
    'projects/default/quota.json',
  ];
  const readable = [
    `jobs/${OWN}/spec.json`,
    `datasets/${DATASET}/text`,
    `models/${MODEL}/config.json`,
    `${checkpoint}/shard`,
  ];
  for (const key of [...theirs, ...readable]) await agent.put(key, Buffer.from(key));

  const before = { ...process.env };
  t.teardown(() => {
    process.env = before;
  });
  process.env.AWS_ACCESS_KEY_ID = credentials.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = credentials.secretAccessKey;
  const bucket = { bucket: 'fleet', prefix: 'a', kms: false };
  const role = new AttemptRole({ role_arn: roleArn, bucket, endpoint, region });
  t.teardown(() => role.close());
  const initFrom = { checkpoint: 'ckpt_1', job: SOURCE, prefix: checkpoint, restore: 'full' as const };
  const spec = testSpec({ init_from: initFrom, dataset: DATASET, data: { tokenizer: MODEL } });
  const session = await role.assume({ id: OWN, spec }, `${OWN}-1`);
  const objects = await openObjectStore('s3://fleet/a', {
    s3Endpoint: endpoint,
    credentials: () => session,
  });
  t.teardown(() => objects.close());

  await t.test('reads what the job needs', async (t) => {
    for (const key of readable) t.equal(String(await objects.get(key)), key);
  });
  await t.test('writes checkpoints, also in parts, and exports', async (t) => {
    const shard = `jobs/${OWN}/checkpoints/000000010-1-a-abc/shard`;
    t.same(await objects.put(shard, Buffer.alloc(20 * MIB, 7)), { bytes: 20 * MIB });
    t.ok((await objects.get(shard, { begin: 20 * MIB - 3, end: 20 * MIB })).equals(Buffer.from([7, 7, 7])));
    await objects.put(`jobs/${OWN}/exports/10/config.json`, Buffer.from('{}'));
  });
  await t.test('has no access to other jobs, datasets, models and projects', async (t) => {
    for (const key of theirs) {
      await t.rejects(objects.get(key), { code: 'access_denied' }, `read ${key}`);
      await t.rejects(objects.put(key, Buffer.from('mine')), { code: 'access_denied' }, `write ${key}`);
      t.equal(String(await agent.get(key)), key);
    }
    const list = async (prefix: string) => {
      for await (const _ of objects.list(prefix));
    };
    for (const prefix of ['', 'jobs/', `jobs/${OTHER}/`])
      await t.rejects(list(prefix), { code: 'access_denied' }, `list ${prefix}`);
  });
  await t.test('changes only checkpoints and exports of its own job, and deletes nothing', async (t) => {
    await t.rejects(objects.put(`jobs/${OWN}/spec.json`, Buffer.from('{}')), { code: 'access_denied' });
    await t.rejects(objects.put(`datasets/${DATASET}/text`, Buffer.from('')), { code: 'access_denied' });
    const own = `jobs/${OWN}/checkpoints/000000010-1-a-abc/shard`;
    await t.rejects(objects.delete([own]), { code: 'access_denied' });
  });
  await t.test('distinguishes a missing object from a denied one', async (t) => {
    const missing = `jobs/${OWN}/checkpoints/000000005-1-a-abc/shard`;
    await t.rejects(objects.get(missing), { code: 'object_not_found' });
    t.equal(await objects.head(missing), null);
    await t.rejects(objects.get(`models/${MODEL}/tokenizer_config.json`), { code: 'object_not_found' });
  });
});
