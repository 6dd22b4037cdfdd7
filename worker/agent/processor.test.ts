import { DelayedError, type Job as QueueJob } from 'bullmq';
import t from 'tap';
import type { Job, QueuePayload } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging.js';
import { deferred } from '../deferred.js';
import { TEST_TIMING } from '../testing/fleet.js';
import type { AgentDeps } from './context.js';
import { Processor } from './processor.js';

/** A queue entry that counts how often it was handed back. */
function entryOf(job_id: string): { entry: QueueJob<QueuePayload>; handedBack(): number } {
  let count = 0;
  const moveToDelayed = async () => {
    count += 1;
  };
  const entry = { data: { job_id, attempt: 1 }, moveToDelayed } as unknown as QueueJob<QueuePayload>;
  return { entry, handedBack: () => count };
}

t.test('an entry that comes again while it is at work here waits until it is not', async (t) => {
  const answer = deferred<Job | null>();
  const asked: string[] = [];
  const store = {
    getJob: (id: string) => {
      asked.push(id);
      return id === 'job_a' ? answer.promise : Promise.resolve(null);
    },
  };
  const log = createLogger({ level: 'silent', name: 'processor' });
  const deps = { store, log, timing: TEST_TIMING } as unknown as AgentDeps;
  const processor = new Processor(deps, 'worker-1');

  const first = entryOf('job_a');
  const working = processor.process(first.entry, 'token-1', undefined);
  const second = entryOf('job_a');
  await t.rejects(processor.process(second.entry, 'token-2', undefined), DelayedError);
  t.equal(second.handedBack(), 1);
  await processor.process(entryOf('job_b').entry, 'token-3', undefined);
  t.strictSame(asked, ['job_a', 'job_b'], 'the second entry asked for nothing, another job is not held up');

  answer.resolve(null);
  await working;
  t.equal(first.handedBack(), 0);
  await processor.process(second.entry, 'token-4', undefined);
  t.strictSame(asked, ['job_a', 'job_b', 'job_a'], 'afterwards it is taken');
});

t.test(
  'an entry that the queue refuses to take back is offered again, and let go once its lock is lost',
  async (t) => {
    const log = createLogger({ level: 'silent', name: 'processor' });
    const store = { getJob: () => Promise.reject(new Error('Connection is closed.')) };
    const timing = { ...TEST_TIMING, hand_back_ms: 5 };
    const processor = new Processor({ store, log, timing } as unknown as AgentDeps, 'worker-1');
    const refusing = (answers: string[]) => {
      const moveToDelayed = async () => {
        const answer = answers.shift();
        if (answer !== undefined) throw new Error(answer);
      };
      return { data: { job_id: 'job_a', attempt: 1 }, moveToDelayed } as unknown as QueueJob<QueuePayload>;
    };
    const loading = 'LOADING Redis is loading the dataset in memory';
    const answers = [loading, 'Connection is closed.', loading];
    await t.rejects(processor.process(refusing(answers), 'token', undefined), DelayedError);
    t.strictSame(answers, [], 'until it was taken');

    const lost = ['Missing lock for job 1. moveToDelayed', loading];
    await t.rejects(processor.process(refusing(lost), 'token', undefined), { message: /^Missing lock/ });
    t.strictSame(lost, [loading], 'nothing was tried after that');

    processor.disconnected();
    await t.rejects(processor.process(refusing([loading, loading]), 'token', undefined), {
      message: loading,
    });
  },
);
