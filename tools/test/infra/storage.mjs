// Applies the module `storage` to a real S3 server, checks the server's answers and behaviour, and destroys it again.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiledDir, inRoot } from '../../bootstrap/paths.mjs';
import { startRelay } from './radosgw-relay.mjs';

const BUCKET = 'zf-infra-test';
const DIRECTORY = 'storage-on-a-server';
const FLAGS = ['-auto-approve', '-no-color', '-parallelism=1'];

/** Configuration for an operator with their own S3 server, which manages encryption and object ownership itself. */
const configuration = (endpoint, { accessKeyId, secretAccessKey }) => `
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "${accessKeyId}"
  secret_key                  = "${secretAccessKey}"
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  endpoints {
    s3 = "${endpoint}"
  }
}

module "storage" {
  source     = "../modules/storage"
  bucket     = { name = "${BUCKET}", prefix = "fleet", versioning = true, stale_upload_days = 5, object_ownership = "server" }
  encryption = { mode = "server" }
}

output "object_store_url" {
  value = module.storage.object_store_url
}
`;

async function codeOf(promise) {
  return promise.then(
    () => 'ok',
    (error) => error.name,
  );
}

/** One line per difference between the server and the module's configuration. */
async function differences(s3, sdk) {
  const problems = [];
  const expect = (title, actual, expected) => {
    if (JSON.stringify(actual) !== JSON.stringify(expected))
      problems.push(`${title} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  };
  const { PublicAccessBlockConfiguration: block } = await s3.send(
    new sdk.GetPublicAccessBlockCommand({ Bucket: BUCKET }),
  );
  expect('the block of public access', Object.values(block ?? {}), [true, true, true, true]);
  const { Status } = await s3.send(new sdk.GetBucketVersioningCommand({ Bucket: BUCKET }));
  expect('versioning', Status, 'Enabled');
  const { Rules = [] } = await s3.send(new sdk.GetBucketLifecycleConfigurationCommand({ Bucket: BUCKET }));
  const stale = Rules.find(({ ID }) => ID === 'stale-uploads');
  expect(
    'the rule for stale uploads',
    [stale?.Status, stale?.Filter?.Prefix, stale?.AbortIncompleteMultipartUpload?.DaysAfterInitiation],
    ['Enabled', 'fleet/', 5],
  );
  // Plain HTTP: the same request works on a bucket without the module.
  const put = (Bucket) =>
    codeOf(s3.send(new sdk.PutObjectCommand({ Bucket, Key: 'fleet/probe', Body: 'probe' })));
  await s3.send(new sdk.CreateBucketCommand({ Bucket: `${BUCKET}-open` }));
  expect('writing by plain HTTP to another bucket', await put(`${BUCKET}-open`), 'ok');
  expect('writing by plain HTTP', await put(BUCKET), 'AccessDenied');
  return problems;
}

async function applyAndDestroy(workspace, server) {
  const sdk = await import('@aws-sdk/client-s3');
  const relay = await startRelay(server);
  const { endpoint, region, credentials } = server;
  const s3 = new sdk.S3Client({
    endpoint,
    region,
    credentials,
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  try {
    mkdirSync(join(workspace.source, DIRECTORY));
    writeFileSync(join(workspace.source, DIRECTORY, 'main.tf'), configuration(relay.endpoint, credentials));
    await workspace.prepare(DIRECTORY);
    // Runs outside of the queue: nearly all of it is waiting until the server has repeated its answer ten times. One
    // change at a time: radosgw may lose one of two concurrent changes of a bucket.
    const applied = await workspace.terraformAtOnce(DIRECTORY, ['apply', ...FLAGS]);
    if (applied.code !== 0) return applied.output.trim();
    const problems = await differences(s3, sdk);
    const destroyed = await workspace.terraformAtOnce(DIRECTORY, ['destroy', ...FLAGS]);
    if (destroyed.code !== 0) problems.push(destroyed.output.trim());
    const gone = await codeOf(s3.send(new sdk.HeadBucketCommand({ Bucket: BUCKET })));
    if (gone !== 'NotFound') problems.push(`after the destruction the bucket answers ${gone}`);
    return problems.length === 0 ? null : problems.join('\n');
  } finally {
    s3.destroy();
    await relay.close();
  }
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace after `initRoot`
 * @returns {Promise<import('./static-checks.mjs').Result & {skipped?: string}>}
 */
export async function testStorage(workspace) {
  const name = 'modules/storage applied to radosgw and destroyed';
  const { startRadosgw, whyNoRadosgw } = await import(
    pathToFileURL(inRoot(compiledDir, 'platform', 'testing', 'radosgw.js')).href
  );
  const skipped = await whyNoRadosgw();
  if (skipped) return { name, problem: null, skipped };
  const server = await startRadosgw();
  try {
    return { name, problem: await applyAndDestroy(workspace, server) };
  } finally {
    await server.stop();
  }
}
