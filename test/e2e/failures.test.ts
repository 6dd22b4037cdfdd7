/** Redis gone, the bucket gone, the disk full: a clear error with a code while it lasts, and nothing lost after it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ApiError } from '../../client/index.js';
import type { Job } from '../../contracts/index.js';
import { agentProcess, descendants, isAlive, rankProcesses } from './processes.js';
import { smallJob } from './specs.js';
import { sampleText, startStack, type TestStack } from './stack.js';

const STEPS = 60;
/** Room for the checkpoints and exports of two small jobs. */
const SMALL_DISK_BYTES = 24 * 1024 * 1024;
const never = () => false;

/** Trains the reference of a stack's small job and returns its dataset and digest. */
async function reference(stack: TestStack): Promise<{ dataset: string; digest: string }> {
  const dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
  const spec = smallJob({ name: 'reference', dataset, steps: STEPS, ranks: 1 });
  const job = await stack.client.jobs.until((await stack.client.jobs.create(spec)).id, never);
  return { dataset, digest: job.export?.state_digest ?? 'none' };
}

/** A job on two ranks that has done at least `step` of its steps. */
async function runningJob(stack: TestStack, dataset: string, step: number): Promise<string> {
  const spec = smallJob({ name: 'disturbed', dataset, steps: STEPS, ranks: 2, every_steps: 10 });
  const { id } = await stack.client.jobs.create(spec);
  await stack.client.jobs.until(id, (job) => job.progress.step >= step, { interval_ms: 5 });
  return id;
}

async function code(request: Promise<unknown>): Promise<string | null> {
  try {
    await request;
    return 'accepted';
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

/** Polls through the time in which Redis is away. */
async function waitThroughOutage(stack: TestStack, id: string): Promise<Job> {
  for (;;) {
    try {
      return await stack.client.jobs.until(id, never);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 503)) throw error;
      await sleep(100);
    }
  }
}

t.test('Redis is killed in the middle of a job', async (t) => {
  const stack = await startStack(t);
  const { dataset, digest } = await reference(stack);
  const id = await runningJob(stack, dataset, 15);
  const redis = descendants(stack.pid).find(({ command }) => command.startsWith('redis-server'));
  process.kill(redis?.pid as number, 'SIGKILL');
  const job = await waitThroughOutage(stack, id);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
});

t.test('the worker agent is killed in the middle of a job', async (t) => {
  const stack = await startStack(t);
  const { dataset, digest } = await reference(stack);
  const id = await runningJob(stack, dataset, 25);
  const agent = agentProcess(stack.pid);
  const orphans = rankProcesses(stack.pid);
  process.kill(agent?.pid as number, 'SIGKILL');
  const job = await stack.client.jobs.until(id, never);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
  const alive = orphans.filter(({ pid }) => isAlive(pid));
  t.same(alive, [], 'ranks end with their agent');
});

t.test('the bucket is gone for a while', async (t) => {
  const stack = await startStack(t);
  const { dataset, digest } = await reference(stack);
  const id = await runningJob(stack, dataset, 5);
  const objects = join(stack.data_dir, 'objects');
  renameSync(objects, `${objects}.away`);
  t.equal(await code(stack.client.datasets.create('lost', 'a text')), 'bucket_not_found');
  const ready = await fetch(new URL('/readyz', stack.client.options.baseUrl));
  t.equal(ready.status, 503);
  await sleep(500);
  rmSync(objects, { recursive: true, force: true });
  renameSync(`${objects}.away`, objects);
  const job = await stack.client.jobs.until(id, never);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
});

/** A file system of a few megabytes, or null where this user may not mount one. */
function smallDisk(t: Test, bytes: number): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'zf-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'zf-test', dir], { stdio: 'ignore' });
  } catch {
    rmSync(dir, { recursive: true });
    return null;
  }
  t.teardown(() => {
    execFileSync('umount', ['--lazy', dir]);
    rmSync(dir, { recursive: true });
  });
  return dir;
}

t.test('the disk is full', async (t) => {
  const disk = smallDisk(t, SMALL_DISK_BYTES);
  if (disk === null) {
    t.comment('skipped: mounting a small file system needs root');
    return;
  }
  const stack = await startStack(t, { env: { ZEROFLEET_OBJECT_STORE: `file://${disk}` } });
  const { dataset, digest } = await reference(stack);
  t.equal(
    await code(stack.client.datasets.create('big', Buffer.alloc(2 * SMALL_DISK_BYTES, 'x'))),
    'disk_full',
  );

  // What is left does not hold a checkpoint: saving fails, training goes on, and the job ends well once there is room.
  const id = await runningJob(stack, dataset, 5);
  const filler = join(disk, 'filler');
  let size = SMALL_DISK_BYTES;
  for (; size > 0; size -= 256 * 1024) {
    try {
      writeFileSync(filler, Buffer.alloc(size));
      break;
    } catch {
      rmSync(filler, { force: true });
    }
  }
  t.ok(size > 0, 'the disk could be filled');
  await stack.client.jobs.until(id, (job) => job.progress.step >= 40, { interval_ms: 20 });
  rmSync(filler);
  const job = await stack.client.jobs.until(id, never);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
});
