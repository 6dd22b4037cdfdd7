/**
 * Set-up, the stack, a job in an S3 bucket and the command line on each supported version of Node.js. All versions give
 * the same digest, and standard error is empty. Only a set-up that has something to do advises against an old version.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Dataset, Job } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { S3StandIn } from '../../platform/testing/s3-stand-in.js';
import { agentProcess } from '../support/processes.js';
import { smallJob } from '../support/specs.js';
import { cleanEnvironment, sampleText, startStack } from '../support/stack.js';
import { type NodeRelease, nodeRelease } from './node-releases.js';

const run = promisify(execFile);
const script = (name: string) => join(projectRoot(), 'tools', name);

const bootstrap = (await import(pathToFileURL(script('bootstrap/node-version.mjs')).href)) as {
  oldestVersion(): string;
  recommendedMajors: number[];
};
const oldest = bootstrap.oldestVersion();
/** The oldest supported release, the newest of its major version, and the recommended ones. */
const lines = [oldest, String(Number.parseInt(oldest, 10)), ...bootstrap.recommendedMajors.map(String)];

async function startOn(t: Test, { program }: NodeRelease) {
  const door = await new S3StandIn().open();
  t.teardown(() => door.close());
  return startStack(t, {
    command: [program, script('run.mjs'), 'start'],
    env: {
      ZEROFLEET_OBJECT_STORE: 's3://models/fleet',
      ZEROFLEET_S3_ENDPOINT: door.endpoint,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_REGION: 'eu-central-1',
    },
  });
}

/** Trains a job that the command line submits and watches. */
async function train(t: Test, release: NodeRelease): Promise<Job> {
  const stack = await startOn(t, release);
  t.match(agentProcess(stack.pid)?.command, release.program, 'the worker runs on the same Node.js');
  const dir = mkdtempSync(join(tmpdir(), 'zf-node-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const { baseUrl, apiKey } = stack.client.options;
  const env = { ...cleanEnvironment(), ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey };
  const zerofleet = async <T>(...args: string[]): Promise<T> => {
    const command = [script('zerofleet.mjs'), '--json', ...args];
    const { stdout, stderr } = await run(release.program, command, { cwd: dir, env });
    t.equal(stderr, '', `zerofleet ${args[0]}`);
    return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as T;
  };

  writeFileSync(join(dir, 'text.txt'), sampleText());
  const dataset = await zerofleet<Dataset>('datasets', 'upload', 'text.txt');
  const spec = smallJob({ name: release.version, dataset: dataset.id, steps: 8, ranks: 2, every_steps: 4 });
  writeFileSync(join(dir, 'job.json'), JSON.stringify(spec));
  const job = await zerofleet<Job>('submit', 'job.json', '--watch');
  const logs = await collect(stack.client.jobs.logs(job.id));
  t.same(
    logs.filter(({ stream }) => stream === 'stderr'),
    [],
    'ranks print no warnings',
  );
  t.equal(await stack.stop(), 0);
  const remarks = stack
    .output()
    .split('\n')
    .filter((line) => line !== `ready ${baseUrl}` && !/^console: .*zerofleet open$/.test(line));
  t.same(remarks, [], 'the stack prints no warnings');
  return job;
}

t.test('supported versions of Node.js', { timeout: 1_200_000 }, async (t) => {
  // Up-to-date parts cause no output of the set-ups below.
  await run(process.execPath, [script('setup.mjs')], { env: cleanEnvironment() });
  const releases: NodeRelease[] = [{ version: process.versions.node, program: process.execPath }];
  for (const line of lines) {
    const release = await nodeRelease(line);
    if (typeof release === 'string') await t.test(`Node.js ${line}`, { skip: release }, async () => {});
    else if (!releases.some(({ version }) => version === release.version)) releases.push(release);
  }
  const digests = new Set<string | undefined>();
  for (const release of releases) {
    await t.test(`Node.js ${release.version}`, { timeout: 300_000 }, async (t) => {
      const options = { env: cleanEnvironment() };
      const { stdout, stderr } = await run(release.program, [script('setup.mjs')], options);
      t.equal(stdout, 'everything is up to date\n');
      t.equal(stderr, '');
      const job = await train(t, release);
      t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
      digests.add(job.export?.state_digest);
    });
  }
  const [digest] = digests;
  t.match(digest, /^[0-9a-f]{32}$/);
  t.equal(digests.size, 1, 'the same bits on all of them');
});
