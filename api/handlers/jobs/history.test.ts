import t from 'tap';
import type { Checkpoint, JobEvent, JobMetric, Page, Problem } from '../../../contracts/index.js';
import { startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

t.test('events, metrics and checkpoints', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 7 });

  const readAll = async <T>(kind: string, limit: number) => {
    const items: T[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const url = `/v1/jobs/${job.id}/${kind}?limit=${limit}${after && `&after=${after}`}`;
      const page: Page<T> = (await stack.request({ url })).json();
      t.ok(page.data.length <= limit);
      items.push(...page.data);
      after = page.next_cursor;
    }
    return items;
  };

  t.test('metrics in pages, each step once and in order', async (t) => {
    for (const limit of [1, 3, 7, 100]) {
      const metrics = await readAll<JobMetric>('metrics', limit);
      t.same(
        metrics.map((metric) => metric.step),
        [1, 2, 3, 4, 5, 6, 7],
      );
    }
  });

  t.test('events begin with the creation', async (t) => {
    const events = await readAll<JobEvent>('events', 2);
    t.equal(events[0]?.type, 'job.created');
    t.ok(events.some((event) => event.type === 'checkpoint.committed'));
  });

  t.test('events and metrics share one sequence', async (t) => {
    const [events, metrics] = [
      await readAll<JobEvent>('events', 50),
      await readAll<JobMetric>('metrics', 50),
    ];
    const seqs = [...events, ...metrics].map((item) => item.seq).sort((a, b) => a - b);
    t.same(
      seqs,
      Array.from({ length: seqs.length }, (_, index) => index + 1),
    );
  });

  t.test('checkpoints', async (t) => {
    const page: Page<Checkpoint> = (await stack.request({ url: `/v1/jobs/${job.id}/checkpoints` })).json();
    t.match(page, { data: [{ job_id: job.id, step: 7, world_size: 2 }], next_cursor: null });
  });

  t.test('a job that does not exist', async (t) => {
    for (const kind of ['events', 'metrics', 'checkpoints', 'stream']) {
      const reply = await stack.request({ url: `/v1/jobs/job_00000000000000000000000000/${kind}` });
      t.equal(reply.json<Problem>().code, 'job_not_found', kind);
    }
  });
});
