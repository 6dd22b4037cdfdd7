/** Concurrent requests for one job: its stored `desired.json` agrees with the job store. */
import t, { type Test } from 'tap';
import type { Job } from '../../../contracts/index.js';
import { recover } from '../../../control/recovery/recover.js';
import { desiredKey } from '../../../formats/checkpoint/layout.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { putResult } from '../../../state/index.js';
import { startTestStack } from '../../testing/stack.js';

/** A stack whose next write of a `desired.json` blocks until it is released. */
async function slowStack(t: Test) {
  let slow: { reached: () => void; go: Promise<void> } | null = null;
  const wrap = ({ objects }: { objects: ObjectStore }) => {
    const put: ObjectStore['put'] = async (key, ...rest) => {
      const held = key.endsWith('/desired.json') ? slow : null;
      if (held) {
        slow = null;
        held.reached();
        await held.go;
      }
      return objects.put(key, ...rest);
    };
    return { objects: Object.assign(Object.create(objects) as ObjectStore, { put }) };
  };
  const stack = await startTestStack({ wrap });
  t.teardown(() => stack.close());
  const act = ({ id }: Job, action: string) =>
    stack.request({
      method: 'POST',
      url: `/v1/jobs/${id}/${action}`,
      ...(action === 'resume' && { payload: {} }),
    });
  /** Starts a request and leaves it blocked in its write. */
  const begin = async (job: Job, action: string) => {
    let release = () => {};
    const go = new Promise<void>((resolve) => (release = resolve));
    const reached = new Promise<void>((resolve) => (slow = { reached: resolve, go }));
    const reply = act(job, action);
    await reached;
    return async () => {
      release();
      return (await reply).statusCode;
    };
  };
  const kept = async ({ id }: Job) =>
    JSON.parse(String(await stack.objects.get(desiredKey(id)))).desired as string;
  return { stack, act, begin, kept };
}

t.test('a job that is cancelled during a resume stays cancelled without Redis', async (t) => {
  const { stack, act, begin, kept } = await slowStack(t);
  const job = await stack.createJob();
  await act(job, 'pause');
  const finish = await begin(job, 'resume');
  t.equal((await act(job, 'cancel')).json<Job>().state, 'cancelled');
  t.equal(await finish(), 409);
  t.equal(await kept(job), 'cancel');
  await stack.redis.forget();
  t.match(await recover({ ...stack, onUnusable: (key, error) => t.fail(key, { error }) }), {
    jobs: { cancelled: 1 },
  });
});

t.test('if two requests write in reverse order, the later request wins', async (t) => {
  const { stack, act, begin, kept } = await slowStack(t);
  const job = await stack.createJob();
  const pause = await begin(job, 'pause');
  await act(job, 'resume');
  t.equal(await pause(), 202);
  t.equal(await kept(job), 'run');
  const again = await begin(job, 'pause');
  await act(job, 'cancel');
  t.equal(await again(), 202);
  t.equal(await kept(job), 'cancel');
});

t.test('a withdrawn failure stays withdrawn, whatever was requested since', async (t) => {
  for (const action of ['pause', 'cancel']) {
    const { stack, act } = await slowStack(t);
    const job = await stack.createJob();
    const claim = await stack.store.claimAttempt(job.id, 1, 'worker', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    await stack.store.finishJob(job.id, claim.execution, 'failed');
    await putResult(stack.objects, {
      ...{ job_id: job.id, state: 'failed', reason: 'x', epoch: claim.job.epoch, step: 0, total_steps: 10 },
      ...{ state_digest: null, checkpoint: null, metrics: null, export: null, failure: null },
      finished_at: new Date().toISOString(),
    });
    await act(job, 'retry');
    const { state } = (await act(job, action)).json<Job>();
    await stack.redis.forget();
    const found = await recover({ ...stack, onUnusable: (key, error) => t.fail(key, { error }) });
    t.strictSame(found.jobs, { [state]: 1 }, action);
  }
});
