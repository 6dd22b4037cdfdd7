import t from 'tap';
import { type Job, type JobSpec, ZerofleetError } from '../../../contracts/index.js';
import { specKey } from '../../../formats/checkpoint/layout.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';
import { recordJob } from './record-job.js';

t.test('the document of a refused job is removed, unless a repeated call may create the job', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { objects, store } = stack;
  const dataset = await stack.upload('to be or not to be. '.repeat(100));
  const given = smallSpec(dataset.id) as JobSpec;
  const created = await stack.request({ method: 'POST', url: '/v1/jobs', payload: given });
  const { spec } = created.json<Job>();
  const written: string[] = [];
  const refusing = (before: (id: string) => Promise<unknown>) => ({
    objects,
    store: {
      createJob: async ({ id }: { id: string }): Promise<never> => {
        written.push(id);
        await before(id);
        throw new ZerofleetError('jobs_quota_exceeded', 'the quota was used up');
      },
    },
  });
  const refused = { code: 'jobs_quota_exceeded' };

  await t.rejects(
    recordJob(
      refusing(async () => undefined),
      { spec, given },
    ),
    refused,
  );
  t.equal(await objects.head(specKey(written[0] ?? '')), null);

  const id = `job_${'0'.repeat(26)}`;
  const another = refusing(() => recordJob({ store, objects }, { id, spec, given }));
  await t.rejects(recordJob(another, { id, spec, given }), refused);
  t.not(await store.getJob(id), null);
  t.not(await objects.head(specKey(id)), null, 'the job that another server has created keeps its document');
});
