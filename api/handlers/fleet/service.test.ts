import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Problem, Readiness } from '../../../contracts/index.js';
import { ObjectStoreError } from '../../../platform/object-store/index.js';
import { projectRoot } from '../../../platform/process/root.js';
import { startTestStack, withMethod } from '../../testing/stack.js';

t.test('health, readiness and the contract need no key', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const get = (url: string) => stack.app.inject({ url });

  t.match((await get('/healthz')).json(), { status: 'ok', version: /^\d+\.\d+\.\d+$/ });
  t.same((await get('/readyz')).json(), {
    status: 'ready',
    checks: { redis: { ok: true, code: null }, object_store: { ok: true, code: null } },
  });
  const contract = await get('/openapi.yaml');
  t.match(contract.headers['content-type'], /^application\/yaml/);
  t.equal(contract.body, readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8'));
});

t.test('without Redis the process is alive but not ready, and reports it', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  await stack.redis.kill();
  t.equal((await stack.request({ url: '/healthz' })).statusCode, 200);
  const readiness = await stack.request({ url: '/readyz' });
  t.equal(readiness.statusCode, 503);
  t.same(readiness.json<Readiness>().checks.redis, { ok: false, code: 'job_store_unavailable' });
  const reply = await stack.request({ url: `/v1/jobs/${job.id}` });
  t.equal(reply.statusCode, 503);
  t.match(reply.json<Problem>(), { code: 'job_store_unavailable', retryable: true });
  t.ok(Number(reply.headers['retry-after']) > 0);

  await stack.redis.start();
  while ((await stack.request({ url: '/readyz' })).statusCode !== 200);
  t.equal((await stack.request({ url: `/v1/jobs/${job.id}` })).statusCode, 200, 'nothing was lost');
});

t.test('without the object store', async (t) => {
  const failures: [string, () => Promise<void>, string][] = [
    ['an error', () => Promise.reject(new ObjectStoreError('bucket_not_found', 'x')), 'bucket_not_found'],
    ['an unknown error', () => Promise.reject(new Error('x')), 'object_store_unavailable'],
    ['silence', () => new Promise(() => undefined), 'object_store_unavailable'],
  ];
  for (const [name, check, code] of failures) {
    t.test(name, async (t) => {
      const stack = await startTestStack({
        // Long enough for the check of Redis, which writes to its disk.
        limits: { readiness_timeout_ms: 2_000 },
        wrap: ({ objects }) => ({ objects: withMethod(objects, 'check', check) }),
      });
      t.teardown(() => stack.close());
      const reply = await stack.request({ url: '/readyz' });
      t.equal(reply.statusCode, 503);
      t.same(reply.json<Readiness>().checks, {
        redis: { ok: true, code: null },
        object_store: { ok: false, code },
      });
    });
  }
});
