/**
 * Cost of writes that survive a failover, and its duration: `npm run bench -- failover --redis sentinel --jobs 2000
 * --rounds 3`. A primary with two replicas on loopback.
 *
 * - `create`: jobs are created by 32 callers of one connection, then one at a time. `replicas` 0 is the reference, 1
 *   waits for a replica. The two alternate, and the ratio is that of the medians.
 * - `failover`: the primary is killed, or stopped; time until the next acknowledged write of a connection that had been
 *   in use.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { FailoverRedis } from '../platform/testing/failover-redis.js';
import { untilDone } from '../platform/testing/waiting.js';
import { openJobStore } from '../state/index.js';
import { createTestJob } from '../state/testing/jobs.js';
import { latencyOf } from './http/load.js';
import { benchOptions, count, oneOf } from './options.js';
import { median, report } from './report.js';

const { redis, jobs, rounds } = benchOptions({
  redis: oneOf(['sentinel', 'cluster'] as const, 'sentinel'),
  jobs: count(2_000),
  rounds: count(3),
});
const CALLERS = 32;
const ALONE = 300;
const KEY = '{zf}:bench';

const servers = await FailoverRedis[redis]();

async function create(replicas: number) {
  const store = await openJobStore({ url: `${servers.url}?replicas=${replicas}` });
  let left = jobs;
  const began = performance.now();
  const caller = async () => {
    while (left-- > 0) await createTestJob(store);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const perSecond = Math.round((jobs * 1000) / (performance.now() - began));
  const latencies: number[] = [];
  for (let n = 0; n < ALONE; n += 1) {
    const sent = performance.now();
    await createTestJob(store);
    latencies.push(performance.now() - sent);
  }
  await store.close();
  const measured = { replicas, per_second: perSecond, ...latencyOf(latencies) };
  report('failover', { part: 'create', redis, callers: CALLERS, ...measured });
  return measured;
}

async function failOver(loss: 'SIGKILL' | 'SIGSTOP') {
  const connection = await connectRedis(servers.url, 'commands');
  const primary = await untilDone(async () => (await servers.wholePrimary()) ?? Promise.reject());
  await connection.set(KEY, '1');
  const began = performance.now();
  process.kill(primary.pid ?? 0, loss);
  while (
    await connection.set(KEY, '1').then(
      () => false,
      () => true,
    )
  )
    await sleep(10);
  const ms = Math.round(performance.now() - began);
  report('failover', { part: 'failover', redis, loss, ms });
  if (loss === 'SIGKILL') primary.start();
  else process.kill(primary.pid ?? 0, 'SIGCONT');
  await disconnectRedis(connection);
  return ms;
}

const measured = { without: [] as number[], with: [] as number[] };
await create(0);
for (let round = 0; round < rounds; round += 1) {
  measured.without.push((await create(0)).per_second);
  measured.with.push((await create(1)).per_second);
}
report('failover', { part: 'ratio', redis, ratio: median(measured.with) / median(measured.without) });
for (const loss of ['SIGKILL', 'SIGSTOP'] as const) {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) times.push(await failOver(loss));
  report('failover', { part: 'failover', redis, loss, median_ms: median(times) });
}
await servers.stop();
