/** Tests of a job that loses its workers, one after the other. */
import t from 'tap';
import { resultKey } from '../../formats/checkpoint/layout.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet } from '../testing/fleet.js';

/** Claims the job for workers that never renew: each claims it after the lease of the one before has expired. */
async function lose(fleet: Fleet, id: string, workers: number): Promise<void> {
  for (let lost = 0; lost < workers; ) {
    const { attempt = 0 } = (await fleet.store.getJob(id)) ?? {};
    const claim = await fleet.store.claimAttempt(id, attempt, `lost-${lost}`, 1);
    if (!claim.granted) continue;
    lost += 1;
    await fleet.until(id, (job) => job.attempt > attempt);
  }
}

t.test(
  'more than ten workers lost without progress count as an error of the job; a retry resets the count',
  async (t) => {
    const fleet = await Fleet.start();
    t.teardown(() => fleet.close());
    const poison = await fleet.submit({ steps: 20, max_errors: 0 });
    const patient = await fleet.submit({ steps: 20, max_errors: 1 });
    const unlucky = await fleet.submit({ steps: 20 });
    const cancelled = await fleet.submit({ steps: 20 });
    await lose(fleet, poison, 11);
    await lose(fleet, patient, 11);
    await lose(fleet, unlucky, 10);
    await lose(fleet, cancelled, 11);
    await fleet.store.requestCancel(cancelled);
    await fleet.agent();
    const failed = await fleet.untilState(poison, 'failed');
    t.match(failed, {
      reason: 'workers_lost',
      failure: {
        code: 'workers_lost',
        category: 'hardware',
        retryable: true,
        message: /^11 workers .*\/retry/,
      },
    });
    t.ok(await fleet.objects.head(resultKey(poison)));
    const events = await fleet.events(poison);
    t.match(
      events.find(({ type }) => type === 'attempt.error'),
      { data: { code: 'workers_lost' } },
    );
    t.notOk(events.some(({ type }) => type === 'training.started'));
    const [attempt] = (await fleet.store.listAttempts(poison)).data;
    t.match(attempt?.root_cause, { code: 'workers_lost' });
    await fleet.untilState(patient, 'succeeded');
    const errors = (await fleet.events(patient)).filter(({ type }) => type === 'attempt.error');
    t.match(errors, [{ data: { code: 'workers_lost' } }], 'one error, because no worker was lost since');
    await fleet.untilState(unlucky, 'succeeded');
    t.notOk((await fleet.events(unlucky)).some(({ type }) => type === 'attempt.error'));
    await fleet.untilState(cancelled, 'cancelled');
    await fleet.store.retryJob(poison);
    const job = await fleet.untilState(poison, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 20));
  },
);
