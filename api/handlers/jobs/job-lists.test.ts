import t from 'tap';
import type { Job, Problem } from '../../../contracts/index.js';
import { smallSpec, startTestStack, type TestStack } from '../../testing/stack.js';

/** `pointer code suggestion` of each bad field, sorted. */
function summary({ errors }: Problem): string[] {
  return errors.map((e) => [e.pointer, e.code, ...(e.suggestion ? [e.suggestion] : [])].join(' ')).sort();
}

t.test('lists of jobs', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const ids = await createMany(stack, 5);

  t.test('pages, newest first', async (t) => {
    const seen: string[] = [];
    let after: string | null = '';
    while (after !== null) {
      const reply = await stack.request({ url: `/v1/jobs?limit=2${after && `&after=${after}`}` });
      const page: { data: Job[]; next_cursor: string | null } = reply.json();
      seen.push(...page.data.map((job) => job.id));
      after = page.next_cursor;
    }
    t.same(seen, ids.toReversed());
  });

  t.test('by state and by label', async (t) => {
    await stack.request({ method: 'POST', url: `/v1/jobs/${ids[1]}/cancel` });
    const list = async (query: string) =>
      (await stack.request({ url: `/v1/jobs?${query}` })).json<{ data: Job[] }>().data.map((job) => job.id);
    t.same(await list('state=cancelled'), [ids[1]]);
    t.same(await list('label=number%3D3'), [ids[3]]);
    t.same(await list('label=number%3D9'), []);
    t.same(await list('state=cancelled&state=queued'), ids.toReversed());
    t.same(await list('state=cancelled&state=paused&limit=1'), [ids[1]]);
  });

  t.test('by name, pool, time and id prefix', async (t) => {
    const list = async (query: string) =>
      (await stack.request({ url: `/v1/jobs?${query}` })).json<{ data: Job[] }>().data.map((job) => job.id);
    const { id, created_at } = await stack.createJob({ name: 'a b', resources: { pool: 'big' } });
    t.same(await list('name=a%20b'), [id]);
    t.same(await list('name=a'), []);
    t.same(await list('pool=big'), [id]);
    t.same(await list(`id_prefix=${id.slice(0, 28)}&name=a+b`), [id]);
    t.same((await list(`created_before=${created_at}`)).includes(id), false);
    t.same(await list(`created_after=${created_at}`), []);
    for (const query of ['name=', 'id_prefix=ds_', 'id_prefix=job_u', 'pool=A', 'created_before=now'])
      t.equal((await stack.request({ url: `/v1/jobs?${query}` })).statusCode, 400, query);
  });

  t.test('bad parameters are reported with suggestions', async (t) => {
    const reply = await stack.request({ url: '/v1/jobs?limit=0&stat=running&state=runing' });
    t.equal(reply.statusCode, 400);
    t.equal(reply.json<Problem>().code, 'invalid_parameter');
    t.same(summary(reply.json()), [
      '/query/limit out_of_range',
      '/query/stat unknown_field state',
      '/query/state/0 unknown_value running',
    ]);
    t.equal((await stack.request({ url: '/v1/jobs?limit=1&limit=2' })).statusCode, 400);
  });
});

async function createMany(stack: TestStack, num: number): Promise<string[]> {
  const dataset = await stack.upload('text '.repeat(100));
  const ids: string[] = [];
  for (let number = 0; number < num; number += 1) {
    const payload = { ...smallSpec(dataset.id), labels: { number: String(number) } };
    ids.push((await stack.request({ method: 'POST', url: '/v1/jobs', payload })).json<Job>().id);
  }
  return ids;
}
