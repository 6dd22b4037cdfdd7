import { DelayedError, type Job as QueueJob } from 'bullmq';
import t from 'tap';
import type { QueuePayload } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { ClaimResult } from '../../state/index.js';
import { deferred } from '../shared/deferred.js';
import { testProcesses } from '../testing/child-processes.js';
import { TEST_TIMING } from '../testing/fleet.js';
import type { AgentDeps } from './attempt/context.js';
import { Processor } from './processor.js';

/** Returns a queue entry that counts its returns to the queue. */
function entryOf(jobId: string, attempt = 1): { entry: QueueJob<QueuePayload>; handedBack(): number } {
  let count = 0;
  const moveToDelayed = async () => {
    count += 1;
  };
  const entry = { data: { job_id: jobId, attempt }, moveToDelayed } as unknown as QueueJob<QueuePayload>;
  return { entry, handedBack: () => count };
}

t.test('a repeated entry changes nothing; a later attempt waits for the one before', async (t) => {
  const answer = deferred<ClaimResult>();
  const claims: string[] = [];
  const refused = { granted: false, code: 'attempt_superseded', retry_after_ms: 0 } as const;
  const store = {
    claimAttempt: (id: string, attempt: number) => {
      claims.push(`${id} ${attempt}`);
      return id === 'job_a' && attempt === 1 ? answer.promise : Promise.resolve(refused);
    },
  };
  const log = createLogger({ level: 'silent', name: 'processor' });
  const deps = { store, log, timing: TEST_TIMING, processes: testProcesses() } as unknown as AgentDeps;
  const processor = new Processor(deps, 'worker-1');

  const first = entryOf('job_a');
  const working = processor.process(first.entry, 'token-1');
  const again = entryOf('job_a');
  await processor.process(again.entry, 'token-2');
  t.equal(again.handedBack(), 0);
  const later = entryOf('job_a', 2);
  await t.rejects(processor.process(later.entry, 'token-3'), DelayedError);
  t.equal(later.handedBack(), 1);
  await processor.process(entryOf('job_b').entry, 'token-4');
  t.strictSame(claims, ['job_a 1', 'job_b 1'], 'another job is not blocked');

  answer.resolve(refused);
  await working;
  t.equal(first.handedBack(), 0);
  await processor.process(later.entry, 'token-5');
  t.strictSame(claims, ['job_a 1', 'job_b 1', 'job_a 2'], 'the later attempt runs afterwards');
});

t.test('a return that the queue refuses is retried until the lock of the entry is lost', async (t) => {
  const log = createLogger({ level: 'silent', name: 'processor' });
  const store = { claimAttempt: () => Promise.reject(new Error('Connection is closed.')) };
  const timing = { ...TEST_TIMING, hand_back_ms: 5 };
  const processes = testProcesses();
  const processor = new Processor({ store, log, timing, processes } as unknown as AgentDeps, 'worker-1');
  const refusing = (answers: string[]) => {
    const moveToDelayed = async () => {
      const answer = answers.shift();
      if (answer !== undefined) throw new Error(answer);
    };
    return { data: { job_id: 'job_a', attempt: 1 }, moveToDelayed } as unknown as QueueJob<QueuePayload>;
  };
  const loading = 'LOADING Redis is loading the dataset in memory';
  const answers = [loading, 'Connection is closed.', loading];
  await t.rejects(processor.process(refusing(answers), 'token'), DelayedError);
  t.strictSame(answers, [], 'all answers were used');

  const lost = ['Missing lock for job 1. moveToDelayed', loading];
  await t.rejects(processor.process(refusing(lost), 'token'), { message: /^Missing lock/ });
  t.strictSame(lost, [loading], 'no attempt after a lost lock');

  processor.disconnected();
  await t.rejects(processor.process(refusing([loading, loading]), 'token'), {
    message: loading,
  });
});
