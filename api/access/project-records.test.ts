/** Isolation of records between projects. */
import t from 'tap';
import { ulid } from 'ulid';
import type { Dataset, Job, Page, Problem } from '../../contracts/index.js';
import { smallSpec, startTestStack } from '../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../testing/training.js';

t.test('two projects', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store } = stack;
  const headers = await stack.headersIn('team-b');
  const job = await stack.createJob();
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  await store.commitCheckpoint(job.id, execution, checkpointOf(job.id, 2));
  const [checkpoint] = (await store.listCheckpoints(job.id)).data;
  const dataset = job.spec.data.dataset ?? '';
  const upload = (name: string) =>
    stack.request({
      method: 'POST',
      url: `/v1/datasets?name=${name}`,
      headers: { ...headers, 'content-type': 'text/plain' },
      payload: 'to be or not to be, that is the question. '.repeat(20),
    });

  t.test("lists contain only records of the key's project", async (t) => {
    const theirs = (await upload('theirs')).json<Dataset>();
    t.equal(theirs.project, 'team-b');
    const listed = await stack.request({ url: '/v1/datasets', headers });
    t.same(listed.json<Page<Dataset>>().data, [theirs]);
    t.same((await stack.request({ url: '/v1/jobs', headers })).json<Page<Job>>().data, []);
    const mine = (await stack.request({ url: '/v1/datasets' })).json<Page<Dataset>>().data;
    t.same(
      mine.map(({ id }) => id),
      [dataset],
    );
  });

  t.test("another project's ids are answered like unknown ones", async (t) => {
    const ask = async (method: 'GET' | 'POST' | 'DELETE' | 'PATCH', path: string, ids: [string, string]) => {
      const [own, unknown] = await Promise.all(
        ids.map(async (id) => {
          const payload = method === 'PATCH' ? { pinned: true } : undefined;
          const reply = await stack.request({
            method,
            url: path.replace('{id}', id),
            headers,
            ...(payload && { payload }),
          });
          t.equal(reply.statusCode, 404, `${method} ${path}`);
          const { request_id: _, ...problem } = reply.json<Problem>();
          return JSON.stringify(problem).replaceAll(id, 'ID');
        }),
      );
      t.equal(own, unknown, `${method} ${path}`);
    };
    const none = '0'.repeat(26);
    for (const page of ['', '/events', '/metrics', '/checkpoints', '/stream'])
      await ask('GET', `/v1/jobs/{id}${page}`, [job.id, `job_${none}`]);
    for (const action of ['cancel', 'pause', 'resume', 'checkpoint', 'fork'])
      await ask('POST', `/v1/jobs/{id}/${action}`, [job.id, `job_${none}`]);
    const id = checkpoint?.id ?? '';
    for (const method of ['GET', 'PATCH', 'DELETE'] as const)
      await ask(method, '/v1/checkpoints/{id}', [id, `ckpt_${none}`]);
    for (const method of ['GET', 'DELETE'] as const)
      await ask(method, '/v1/datasets/{id}', [dataset, `ds_${none}`]);
    t.equal((await store.getJob(job.id))?.state, 'running', 'it is unchanged');
  });

  t.test('a job can refer only to records of its project', async (t) => {
    const spec = smallSpec(dataset);
    const post = (payload: object) => stack.request({ method: 'POST', url: '/v1/jobs', headers, payload });
    t.match((await post(spec)).json<Problem>(), {
      status: 422,
      errors: [{ pointer: '/data/dataset', code: 'dataset_not_found' }],
    });
    const theirs = smallSpec((await upload('more')).json<Dataset>().id);
    const model = { preset: 'llama-tiny', init_from: { checkpoint: checkpoint?.id } };
    t.match((await post({ ...theirs, model })).json<Problem>(), {
      errors: [{ pointer: '/model/init_from/checkpoint', code: 'checkpoint_not_found' }],
    });
    t.match((await post({ ...theirs, project: 'default' })).json<Problem>(), {
      errors: [{ pointer: '/project', code: 'project_mismatch', suggestion: 'team-b' }],
    });
    t.match((await post({ ...theirs, project: 'No Name' })).json<Problem>(), {
      errors: [{ pointer: '/project', code: 'wrong_format' }],
    });
    const reply = await post({ ...theirs, project: 'team-b' });
    t.match(reply.json<Job>(), { spec: { project: 'team-b' } });
    t.match(await stack.request({ url: `/v1/jobs/${reply.json<Job>().id}` }), { statusCode: 404 });
  });

  t.test('the same idempotency key of two projects creates two jobs', async (t) => {
    const [mine, theirs] = [dataset, (await upload('third')).json<Dataset>().id];
    const key = { 'idempotency-key': ulid() };
    const post = (id: string, more: object) =>
      stack.request({
        method: 'POST',
        url: '/v1/jobs',
        headers: { ...key, ...more },
        payload: smallSpec(id),
      });
    const [a, b, again] = [await post(mine, {}), await post(theirs, headers), await post(theirs, headers)];
    t.equal(a.statusCode, 201);
    t.equal(b.statusCode, 201);
    t.not(a.json<Job>().id, b.json<Job>().id);
    t.equal(again.json<Job>().id, b.json<Job>().id);
  });
});
