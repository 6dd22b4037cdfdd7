import { chmodSync } from 'node:fs';
import t, { type Test } from 'tap';
import { createLogger } from '../../../platform/logging/logging.js';
import { SlurmAllocation } from './slurm-allocation.js';

const log = createLogger({ level: 'silent', name: 'test' });

/** An allocation of which `squeue`, a shell script, reports. */
function open(t: Test, squeue: string): SlurmAllocation {
  const dir = t.testdir({ squeue: `#!/bin/sh\n${squeue}\n` });
  chmodSync(`${dir}/squeue`, 0o700);
  return new SlurmAllocation({ env: { PATH: `${dir}:/usr/bin:/bin`, SLURM_JOB_ID: '17' }, log });
}

async function noticeOf(allocation: SlurmAllocation) {
  const watched = allocation.watch(new AbortController().signal);
  process.emit('SIGTERM', 'SIGTERM');
  return watched;
}

t.test('SIGTERM is a notice with the end that Slurm reports', async (t) => {
  const reported = open(
    t,
    '[ "$*" = "--noheader --states=all --jobs=17 --format=%T %e" ] && echo "RUNNING 1795687258"',
  );
  t.same(await noticeOf(reported), {
    cause: 'end of the Slurm allocation',
    terminates_at: 1795687258000,
  });
});

t.test('an allocation that is ending has the time until SIGKILL', async (t) => {
  const before = Date.now();
  const notice = await noticeOf(open(t, 'echo "COMPLETING $(date +%s)"'));
  t.match(notice, { cause: 'Slurm job COMPLETING' });
  const leftMs = (notice?.terminates_at ?? 0) - before;
  t.ok(leftMs >= 30_000 && leftMs < 60_000);
});

t.test('without an answer the end is unknown', async (t) => {
  for (const squeue of ['exit 1', 'exec sleep 60'])
    t.match(await noticeOf(open(t, squeue)), { terminates_at: null });
});

t.test('an agent that ends by itself gets no notice', async (t) => {
  const listeners = process.listenerCount('SIGTERM');
  const stop = new AbortController();
  const watched = open(t, 'exit 1').watch(stop.signal);
  stop.abort();
  t.equal(await watched, null);
  t.equal(process.listenerCount('SIGTERM'), listeners);
});
