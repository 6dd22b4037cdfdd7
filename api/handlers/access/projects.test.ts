import { Readable } from 'node:stream';
import t from 'tap';
import type { Job, Page, Problem, Project, ProjectUsage } from '../../../contracts/index.js';
import { desiredKey } from '../../../formats/checkpoint/layout.js';
import { startTestStack } from '../../testing/stack.js';

t.test('quotas', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const put = (quota: object, headers = {}) =>
    stack.request({ method: 'PUT', url: '/v1/projects/default', payload: { quota }, headers });
  const usage = async (query = '') =>
    (await stack.request({ url: `/v1/usage${query}` })).json<ProjectUsage>();
  const TEXT = 'to be or not to be, that is the question. '.repeat(20);
  const upload = (payload: string | Readable = TEXT) =>
    stack.request({
      method: 'POST',
      url: '/v1/datasets?name=a',
      headers: { 'content-type': 'text/plain' },
      payload,
    });

  t.test('are set by operators only', async (t) => {
    const reply = await put({ max_jobs: 1, max_ranks: 3 });
    t.match(reply.json<Project>(), {
      name: 'default',
      quota: { max_jobs: 1, max_ranks: 3, max_storage_bytes: null },
      used: { jobs: 0, ranks: 0, storage_bytes: 0 },
    });
    t.equal((await put({}, await stack.headersIn('team-b'))).json<Problem>().code, 'insufficient_scope');
    t.equal((await put({ max_jobs: -1 })).statusCode, 422);
    const listed = (await stack.request({ url: '/v1/projects' })).json<Page<Project>>();
    t.match(listed.data, [{ name: 'default' }, { name: 'team-b' }]);
  });

  t.test('refuse a job, and a resume that leaves the job paused', async (t) => {
    const job = await stack.createJob();
    const again = await stack.request({ method: 'POST', url: '/v1/jobs', payload: given(job) });
    t.match(again.json<Problem>(), { status: 403, code: 'jobs_quota_exceeded', detail: /cancel one/ });
    const post = (path: string, payload: object) =>
      stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/${path}`, payload });
    t.equal((await post('resize', { ranks: 4 })).json<Problem>().code, 'ranks_quota_exceeded');
    await post('pause', {});
    t.equal((await post('resume', { ranks: 4 })).json<Problem>().code, 'ranks_quota_exceeded');
    const desired = JSON.parse((await stack.objects.get(desiredKey(job.id))).toString());
    t.match(desired, { desired: 'pause', reason: 'user_request' }, 'also for a recovery');
    t.equal((await post('resume', { ranks: 3 })).statusCode, 202);
  });

  t.test('refuse an upload before it is read, and one whose size is not known after it', async (t) => {
    const { storage } = await usage();
    await put({ max_storage_bytes: storage.total_bytes + 500 });
    t.equal((await upload()).json<Problem>().code, 'storage_quota_exceeded');
    const chunked = Readable.from([Buffer.from(TEXT)]);
    t.equal((await upload(chunked)).json<Problem>().code, 'storage_quota_exceeded');
    t.same((await usage()).storage, storage);
    const keys = [];
    for await (const { key } of stack.objects.list('datasets/')) keys.push(key);
    t.equal(keys.length, 2, 'no trace of them is left');
    await put({});
    t.equal((await upload()).statusCode, 201);
  });

  t.test('usage', async (t) => {
    const found = await usage('?from=2026-01-01&to=2026-01-31');
    t.equal(found.days.length, 31);
    t.match(found, {
      total: { jobs: 0 },
      jobs: { queued: 1, failed: 0 },
      ranks: 3,
      quota: { max_jobs: null },
    });
    const recent = await usage();
    t.equal(recent.days.length, 30);
    t.equal(recent.total.jobs, 1);
    for (const query of [
      '?from=2026-02-01&to=2026-01-31',
      '?from=2024-01-01&to=2026-01-01',
      '?from=2026-02-31',
    ])
      t.equal((await stack.request({ url: `/v1/usage${query}` })).statusCode, 400, query);
    const theirs = await stack.request({ url: '/v1/usage', headers: await stack.headersIn('team-b') });
    t.match(theirs.json<ProjectUsage>(), {
      project: 'team-b',
      total: { jobs: 0 },
      storage: { total_bytes: 0 },
    });
  });
});

/** Fields of a resolved document that can be sent in a request. */
function given({ spec }: Job) {
  return {
    name: 'again',
    model: { preset: 'llama-tiny' },
    data: { dataset: spec.data.dataset },
    train: { steps: 1 },
  };
}
