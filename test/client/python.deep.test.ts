/** The Python client on the distribution's httpx: its own tests, and the examples of its pages against a stack. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { ensureInstalled } from '../../platform/testing/programs.js';
import { startRadosgw, whyNoRadosgw } from '../../platform/testing/radosgw.js';
import { pythonWith } from '../support/python.js';
import { type StackOptions, startStack } from '../support/stack.js';

const run = promisify(execFile);
const inRoot = (...parts: string[]) => join(projectRoot(), ...parts);
const folder = inRoot('clients', 'python');

const lacking = await ensureInstalled(
  () => ('missing' in pythonWith('httpx') ? ['httpx of python3'] : []),
  ['python3', 'python3-httpx'],
);

const BUCKET = 'zerofleet-python';

/** Pages with examples in Python. */
const PAGES = ['docs/python.md', 'docs/sessions.md'];

/** Runs the examples of the pages as one program. */
async function runExamples(t: Test, python: string, options: StackOptions): Promise<Zerofleet> {
  const pages = await Promise.all(PAGES.map((page) => readFile(inRoot(page), 'utf8')));
  const examples = [...pages.join('\n').matchAll(/^```python\n([\s\S]*?)^```/gm)].map(([, text]) => text);
  const cwd = t.testdir();
  for (const file of ['README.md', 'openapi.yaml']) await cp(inRoot(file), join(cwd, file));
  await writeFile(join(cwd, 'examples.py'), examples.join('\n'));
  const { client } = await startStack(t, options);
  const env = {
    ...process.env,
    PYTHONPATH: folder,
    ZEROFLEET_URL: client.options.baseUrl,
    ZEROFLEET_API_KEY: client.options.apiKey,
  };
  const { stdout } = await run(python, ['-B', 'examples.py'], { cwd, env });
  const { size } = await stat(inRoot('openapi.yaml'));
  for (const pattern of [
    /^succeeded with loss \d.*Zerofleet\(http:/,
    /\nstep 1: loss \d/,
    /\nstep 20: loss \d/,
    /\nthe job succeeded\n/,
    /\nfiles: \[.*'model.safetensors'.*\]\n/,
    /\n\['readme', 'README.md'\]: [1-9]\d* estimates\n/,
    /\njobs: \['five-lines'\]\n/,
    /\nthe job is paused\n/,
    /\njob.state to cancelled\n/,
    new RegExp(`\\n${size} bytes\\n`),
    /\nvalidation_failed \['\/train\/steps'\]\n/,
    /\n([0-9a-f]{32}\n){20}\[.*'tokens': \[.*\]\n$/,
  ]) {
    t.match(stdout, pattern);
  }
  t.ok(existsSync(join(cwd, 'model', 'model.safetensors')));
  return client;
}

t.test('the Python client', { skip: lacking ?? false, timeout: 600_000 }, async (t) => {
  const found = pythonWith('httpx');
  if ('missing' in found) return;
  const { python } = found;

  await t.test('its tests pass', async () => {
    await run(python, ['-B', '-m', 'unittest'], { cwd: folder });
  });

  await t.test('the examples of its documentation run', async (t) => {
    await runExamples(t, python, {});
  });

  const skip = (await whyNoRadosgw()) ?? false;
  await t.test('the same where parts and files have presigned URLs', { skip }, async (t) => {
    const s3 = await startRadosgw();
    t.teardown(() => s3.stop());
    await s3.createBucket(BUCKET);
    const client = await runExamples(t, python, {
      env: {
        ZEROFLEET_OBJECT_STORE: `s3://${BUCKET}`,
        ZEROFLEET_S3_ENDPOINT: s3.endpoint,
        AWS_REGION: s3.region,
        AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
      },
    });
    const [checkpoint] = await collect(client.checkpoints.list(), 1);
    const { files } = await client.checkpoints.downloadUrls(checkpoint?.id ?? '');
    t.ok(files.every(({ url }) => url.startsWith(s3.endpoint)));
  });
});
