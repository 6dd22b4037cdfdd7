import { Redis } from 'ioredis';
import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { WorkerQueues } from './worker-queues.js';

t.test('each worker has a queue, all share a connection, and a removed queue leaves nothing', async (t) => {
  const server = await startTestRedis();
  const redis = new Redis({ path: new URL(server.url).pathname });
  const queues = new WorkerQueues(server.url, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(async () => {
    await queues.close();
    redis.disconnect();
    await server.stop();
  });
  const connections = async () =>
    String(await redis.client('LIST'))
      .trim()
      .split('\n').length;
  const before = await connections();
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: null };
  for (let n = 0; n < 80; n += 1)
    await queues.deliver({ job_id: `job_${n}`, attempt: 1, worker_id: `w${n}`, trace });
  await queues.deliver({ job_id: 'job_7', attempt: 1, worker_id: 'w7', trace });
  t.equal(await connections(), before);
  t.equal((await redis.keys('*:worker-w*:wait')).length, 80);
  t.equal(await redis.llen('{zf}:worker-w7:wait'), 1, 'a repeated entry adds nothing');
  t.same(JSON.parse((await redis.hget('{zf}:worker-w7:job_7-1', 'data')) ?? ''), {
    job_id: 'job_7',
    attempt: 1,
    trace,
  });
  await queues.remove('w7');
  t.same(await redis.keys('*:worker-w7:*'), []);
  await queues.remove('unknown');
});
