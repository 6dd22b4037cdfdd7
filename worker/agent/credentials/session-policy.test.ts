import t from 'tap';
import { testSpec } from '../../testing/start-message.js';
import { reachOf, sessionPolicy, sourceOf } from './session-policy.js';

const JOB = 'job_01J00000000000000000000000';
const OTHER = 'job_01J00000000000000000000001';
const MODEL = 'mdl_01J00000000000000000000000';
const TOKENIZER = 'mdl_01J00000000000000000000001';
const DATASET = 'ds_01J00000000000000000000000';
const BUCKET = { partition: 'aws', bucket: 'fleet', prefix: 'a/b', kms: true };

t.test('a job reads its folder and its dataset, and writes checkpoints and exports', async (t) => {
  const job = { id: JOB, spec: testSpec() };
  t.strictSame(reachOf(job), {
    writes: [`jobs/${JOB}/checkpoints/`, `jobs/${JOB}/exports/`],
    reads: [`jobs/${JOB}/`, `datasets/${DATASET}/`],
  });
  t.equal(sourceOf(job), JOB);
  const mixture = [{ dataset: DATASET }, { dataset: `ds_${'1'.repeat(26)}` }];
  const several = { id: JOB, spec: testSpec({ data: { mixture } }) };
  t.strictSame(
    reachOf(several).reads,
    [`jobs/${JOB}/`],
    'datasets of a mixture are read in their own sessions',
  );
});

t.test('it also reads the models and the checkpoint of its spec, each listed once', async (t) => {
  const begun = testSpec({ init_from: { model: MODEL }, data: { tokenizer: MODEL } });
  t.strictSame(reachOf({ id: JOB, spec: begun }).reads.slice(2), [`models/${MODEL}/`]);
  const prefix = `jobs/${OTHER}/checkpoints/000000005-1-a-abc`;
  const initFrom = { checkpoint: 'ckpt_1', job: OTHER, prefix, restore: 'full' as const };
  const forked = { id: JOB, spec: testSpec({ init_from: initFrom, data: { tokenizer: TOKENIZER } }) };
  t.strictSame(reachOf(forked).reads.slice(2), [`models/${TOKENIZER}/`, `${prefix}/`]);
  t.equal(sourceOf(forked), OTHER);
});

t.test('an uploaded model reads itself and its base, and writes nothing', async (t) => {
  t.strictSame(reachOf({ id: MODEL }), { writes: [], reads: [`models/${MODEL}/`] });
  const adapter = { id: TOKENIZER, base: MODEL };
  t.strictSame(reachOf(adapter).reads, [`models/${TOKENIZER}/`, `models/${MODEL}/`]);
  t.equal(sourceOf(adapter), TOKENIZER);
});

t.test('the IAM policy names no other folder, only the bucket, and fits the size limit of STS', async (t) => {
  const text = sessionPolicy(BUCKET, reachOf({ id: JOB, spec: testSpec() }));
  t.ok(text.length <= 2048);
  const arn = (folder: string) => `arn:aws:s3:::fleet/a/b/${folder}*`;
  t.strictSame(JSON.parse(text).Statement, [
    {
      Effect: 'Allow',
      Action: ['s3:GetObject'],
      Resource: [arn(`jobs/${JOB}/`), arn(`datasets/${DATASET}/`)],
    },
    {
      Effect: 'Allow',
      Action: ['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'],
      Resource: [arn(`jobs/${JOB}/checkpoints/`), arn(`jobs/${JOB}/exports/`)],
    },
    {
      Effect: 'Allow',
      Action: ['s3:ListBucket'],
      Resource: ['arn:aws:s3:::fleet'],
      Condition: { StringLike: { 's3:prefix': [`a/b/jobs/${JOB}/*`, `a/b/datasets/${DATASET}/*`] } },
    },
    { Effect: 'Allow', Action: ['kms:Decrypt', 'kms:GenerateDataKey'], Resource: ['*'] },
  ]);
  const elsewhere = { ...BUCKET, partition: 'aws-cn', prefix: '', kms: false };
  const bare = sessionPolicy(elsewhere, { writes: [], reads: ['x/'] });
  t.notMatch(bare, /kms/);
  t.strictSame(JSON.parse(bare).Statement[0].Resource, ['arn:aws-cn:s3:::fleet/x/*']);
  t.ok(JSON.parse(bare).Statement.every(({ Resource }: { Resource: string[] }) => Resource.length > 0));
});
