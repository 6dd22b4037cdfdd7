/** Files of metrics from the API: the same points as pages, and errors before and behind the first bytes. */
import t, { type Test } from 'tap';
import { type JobMetric, type Page, ZerofleetError } from '../../contracts/index.js';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from '../testing/stack.js';
import { claimAndTrain, metricOf } from '../testing/training.js';

const STEPS = 2500;

/** A stack with a job of many steps, of which the ones from 1,001 on run twice. */
async function trained(t: Test, options: TestStackOptions = {}) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  const job = await stack.createJob({ train: { steps: STEPS } });
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  const report = async (from: number, to: number) => {
    const steps = Array.from({ length: to - from + 1 }, (_, i) => metricOf(from + i));
    await stack.store.report(job.id, execution, steps, { ...job.progress, step: to });
  };
  await report(2, 1200);
  await report(1001, STEPS);
  const url = `/v1/jobs/${job.id}/metrics`;
  const ask = (query: string) => stack.request({ url: `${url}?${query}` });
  const pages = async (query: string): Promise<JobMetric[]> => {
    const { data, next_cursor } = (await ask(`${query}&limit=1000`)).json<Page<JobMetric>>();
    if (next_cursor === null) return data;
    return [...data, ...(await pages(`${query.replace(/&after=.*/, '')}&after=${next_cursor}`))];
  };
  const lines = async (query: string): Promise<JobMetric[]> => {
    const { body } = await ask(`${query}&format=jsonl`);
    return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  };
  return { stack, job, url, ask, pages, lines };
}

t.test('a file has the points of all pages, and the parameters count', async (t) => {
  const { ask, pages, lines } = await trained(t);
  const all = await pages('from_step=1');
  t.equal(all.length, STEPS + 200);
  t.strictSame(await lines('from_step=1'), all);
  t.strictSame(await lines(`after=${all[1499]?.position}`), all.slice(1500));
  t.strictSame(await lines(`after=${all[9]?.position}&limit=5`), all.slice(10, 15));
  t.strictSame(
    await lines('from_step=1100&to_step=1103'),
    all.filter(({ step }) => step >= 1100 && step <= 1103),
  );
  t.strictSame(await lines('max_points=50&names=lr'), await pages('max_points=50&names=lr'));
  const csv = (await ask('format=csv&max_points=50')).body.split('\r\n');
  t.strictSame(
    csv.slice(1, -1).map((line) => line.split(',')[1]),
    (await pages('max_points=50')).map(({ position }) => position),
  );
});

t.test('each file has a type and a name', async (t) => {
  const { ask, stack, url, job } = await trained(t);
  const created = Math.floor(Date.parse(job.created_at) / 1000);
  for (const [format, type, name] of [
    ['jsonl', 'application/x-ndjson', `${job.id}.jsonl`],
    ['csv', 'text/csv; charset=utf-8; header=present', `${job.id}.csv`],
    ['tensorboard', 'application/octet-stream', `events.out.tfevents.${created}.${job.id}`],
  ]) {
    const headers = { 'content-type': type, 'content-disposition': `attachment; filename="${name}"` };
    t.match(await ask(`format=${format}`), { statusCode: 200, headers });
    const head = await stack.request({ method: 'HEAD', url: `${url}?format=${format}` });
    t.match(head, { statusCode: 200, headers, body: '' });
  }
  t.match(await ask('format=json'), { headers: { 'content-type': /^application\/json/ } });
});

t.test('errors before the first bytes are problem documents', async (t) => {
  const { ask, stack, pages } = await trained(t);
  t.match((await ask('format=xml')).json(), { code: 'invalid_parameter' });
  const [first] = await pages('from_step=1');
  await stack.loseRedis();
  for (const format of ['json', 'jsonl', 'csv', 'tensorboard']) {
    const lost = await ask(`format=${format}&after=${first?.position}`);
    t.match(lost, { statusCode: 410, headers: { 'content-type': /^application\/problem\+json/ } }, format);
    t.equal(lost.headers['content-disposition'], undefined);
  }
});

t.test('an error behind the first bytes breaks the connection', async (t) => {
  let reads = 0;
  const { stack, url } = await trained(t, {
    wrap: ({ store }) => ({
      store: Object.assign(Object.create(store), {
        readSteps: (...args: Parameters<typeof store.readSteps>) => {
          reads += 1;
          if (reads > 2) throw new ZerofleetError('job_store_unavailable', 'Redis is away');
          return store.readSteps(...args);
        },
      }),
    }),
  });
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const response = await fetch(`${await stack.listen()}${url}?format=jsonl`, { headers });
  t.equal(response.status, 200);
  await t.rejects(response.text());
});
