/** Primaries are lost under load: under sentinels, and in a cluster. */
import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { FailoverRedis } from '../testing/failover-redis.js';
import { until, untilDone } from '../testing/waiting.js';
import { connectRedis, disconnectRedis, openRedis, redisError } from './connect.js';

const KINDS = { sentinel: FailoverRedis.sentinel, cluster: FailoverRedis.cluster };
/** Ways in which a primary can be lost, and what it does later. */
const LOSSES = { killed: 'SIGKILL', stopped: 'SIGSTOP' } as const;

const key = (n: number) => `${REDIS_PREFIX}:test:${n}`;

async function start(t: Test, kind: keyof typeof KINDS): Promise<FailoverRedis> {
  const servers = await KINDS[kind]();
  t.teardown(() => servers.stop());
  return servers;
}

for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  t.test(`${kind}: a primary is lost; no acknowledged write is`, async (t) => {
    const servers = await start(t, kind);
    const redis = await connectRedis(servers.url, 'commands');
    const subscriber = await connectRedis(servers.url, 'subscriber');
    const reader = openRedis(servers.url, 'queue');
    t.teardown(() => Promise.all([redis, subscriber, reader].map(disconnectRedis)));
    const heard: string[] = [];
    subscriber.on('message', (_channel: string, message: string) => heard.push(message));
    subscriber.on('ready', () => void subscriber.subscribe(`${REDIS_PREFIX}:news`).catch(() => undefined));
    await subscriber.subscribe(`${REDIS_PREFIX}:news`);

    let next = 0;
    const acknowledged: number[] = [];
    /** Writes all the time; a write without an acknowledgement is not repeated. */
    const write = async () => {
      const n = next++;
      await redis.set(key(n), '1').then(
        () => acknowledged.push(n),
        (error: unknown) => t.equal(redisError(error).code, 'job_store_unavailable', String(error)),
      );
    };
    for (const [loss, signal] of Object.entries(LOSSES)) {
      const first = acknowledged.length;
      let writing = true;
      const lanes = [0, 1, 2, 3].map(async () => {
        while (writing) await write();
      });
      await until(() => acknowledged.length > first + 200);
      const lost = await servers.primary();
      const blocked = reader.xread('BLOCK', 1_000, 'STREAMS', `${REDIS_PREFIX}:none`, '$');
      process.kill(lost.pid ?? 0, signal);
      let primary = lost;
      while (primary === lost) primary = await servers.primary();
      const before = acknowledged.length;
      await until(() => acknowledged.length > before + 200);
      writing = false;
      await Promise.all(lanes);
      t.equal(await blocked.catch(() => null), null, 'a blocking read goes on');
      await untilDone(async () => {
        await redis.publish(`${REDIS_PREFIX}:news`, loss);
        if (!heard.includes(loss)) throw new Error('not yet heard');
      });
      t.pass(`${loss}: a subscriber hears the new primary`);
      if (signal === 'SIGSTOP') process.kill(lost.pid ?? 0, 'SIGCONT');
      else lost.start();
      // It takes part again: the other replica and this one are two copies once more.
      await untilDone(async () => {
        if ((await redis.wait(2, 1_000)) < 2) throw new Error('one replica');
      });
    }
    const kept = await Promise.all(acknowledged.map((n) => redis.exists(key(n))));
    t.equal(
      kept.reduce((sum, one) => sum + one, 0),
      acknowledged.length,
      `${acknowledged.length} of ${next} writes were acknowledged`,
    );
  });
}
