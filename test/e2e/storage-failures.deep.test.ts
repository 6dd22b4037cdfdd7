/** Missing bucket and full disk: a clear error code during the fault, and no loss after it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ApiError } from '../../clients/typescript/index.js';
import { reference, runningJob } from '../support/disturbed-job.js';
import { startStack } from '../support/stack.js';

/** Space for the checkpoints and exports of two small jobs. */
const SMALL_DISK_BYTES = 24 * 1024 * 1024;
const never = () => false;

async function code(request: Promise<unknown>): Promise<string | null> {
  try {
    await request;
    return 'accepted';
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

t.test('the bucket is missing for a while', async (t) => {
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

/**
 * A file system of a few megabytes. @returns its directory, and a function that removes it; null if this user may not
 * mount one
 */
function mountSmallDisk(): { disk: string; unmount(): void } | null {
  const disk = mkdtempSync(join(tmpdir(), 'zf-small-disk-'));
  const options = `size=${SMALL_DISK_BYTES}`;
  const isMounted =
    spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'zf-test', disk], { stdio: 'ignore' }).status === 0;
  const unmount = () => {
    if (isMounted) execFileSync('umount', ['--lazy', disk]);
    rmSync(disk, { recursive: true });
  };
  if (isMounted) return { disk, unmount };
  unmount();
  return null;
}

const mounted = mountSmallDisk();
const skip = mounted ? false : 'mounting a small file system needs root';

t.test('the disk is full', { skip }, async (t) => {
  const { disk, unmount } = mounted as NonNullable<typeof mounted>;
  t.teardown(unmount);
  const stack = await startStack(t, { env: { ZEROFLEET_OBJECT_STORE: `file://${disk}` } });
  const { dataset, digest } = await reference(stack);
  t.equal(
    await code(stack.client.datasets.create('big', Buffer.alloc(2 * SMALL_DISK_BYTES, 'x'))),
    'disk_full',
  );

  // The remaining space does not hold a checkpoint: saving fails, training continues, and the job succeeds once there
  // is space.
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
