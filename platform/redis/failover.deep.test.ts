/** Primaries are lost under load: under sentinels, and in a cluster. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { FailoverRedis } from '../testing/failover-redis.js';
import type { RedisProcess } from '../testing/redis-process.js';
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

/** 4 KiB each: more than the buffers of a connection hold before a replica that does not read. */
const VALUE = 'x'.repeat(4_096);
/** Writes that are lost with the primary: several times what the buffers hold. */
const LAGGING = 5_000;
/** Time in which no write is acknowledged that waits for a replica. */
const CUT_OFF_MS = 600;

/**
 * Writes while the replicas are cut off and the primary is then killed. @returns the number of acknowledged writes, and
 * of lost ones
 */
async function loseLaggingReplicas(servers: FailoverRedis, replicas: number) {
  const redis = await connectRedis(`${servers.url}?replicas=${replicas}`, 'commands');
  const acknowledged: number[] = [];
  let next = 0;
  let writing = true;
  const lanes = Array.from({ length: 32 }, async () => {
    while (writing) {
      const n = next++;
      await redis.set(key(n), VALUE).then(
        () => acknowledged.push(n),
        () => sleep(20),
      );
    }
  });
  const primary = await servers.primary();
  const others = servers.servers.filter((server) => server !== primary);
  const signal = (name: NodeJS.Signals) => {
    for (const { pid } of others) process.kill(pid ?? 0, name);
  };
  await until(() => acknowledged.length > 1_000);
  signal('SIGSTOP');
  const cut = acknowledged.length;
  if (replicas === 0) await until(() => acknowledged.length > cut + LAGGING);
  else await sleep(CUT_OFF_MS);
  await primary.kill();
  signal('SIGCONT');
  const before = acknowledged.length;
  await until(() => acknowledged.length > before + 1_000);
  writing = false;
  await Promise.all(lanes);
  let lost = 0;
  for (const n of acknowledged) lost += 1 - (await redis.exists(key(n)));
  await disconnectRedis(redis);
  return { acknowledged: acknowledged.length, lost };
}

for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  t.test(`${kind}: the replicas lag when the primary is lost`, async (t) => {
    const unconfirmed = await loseLaggingReplicas(await start(t, kind), 0);
    t.ok(unconfirmed.lost > 0, `without ?replicas writes are lost: ${JSON.stringify(unconfirmed)}`);
    const confirmed = await loseLaggingReplicas(await start(t, kind), 1);
    t.equal(confirmed.lost, 0, `with ?replicas=1 none is: ${JSON.stringify(confirmed)}`);
  });
}

/** Time in which a failover ends, and the former primary becomes a replica. */
const REPLACED_MS = 6_000;

/** Waits until one of the servers calls itself the primary. A sentinel also ends the connections to it. */
async function untilPromoted(servers: readonly RedisProcess[]): Promise<void> {
  const connections = servers.map(({ port }) => new Redis({ port, commandTimeout: 100 }));
  for (const connection of connections) connection.on('error', () => undefined);
  const isPrimary = (redis: Redis) =>
    redis.role().then(
      ([role]) => role === 'master',
      () => false,
    );
  await until(async () => (await Promise.all(connections.map(isPrimary))).includes(true));
  for (const connection of connections) connection.disconnect();
}

for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  t.test(
    `${kind}: a stopped primary goes on when a replica was just promoted; no acknowledged write is lost`,
    async (t) => {
      const servers = await start(t, kind);
      const redis = await connectRedis(servers.url, 'commands');
      t.teardown(() => disconnectRedis(redis));
      const primary = await servers.primary();
      await redis.set(key(0), '1');
      process.kill(primary.pid ?? 0, 'SIGSTOP');
      await untilPromoted(servers.servers.filter((server) => server !== primary));
      process.kill(primary.pid ?? 0, 'SIGCONT');
      // The other replica still follows it when a sentinel promotes one, and confirms its writes.
      const acknowledged: number[] = [];
      let next = 1;
      for (const end = Date.now() + REPLACED_MS; Date.now() < end; await sleep(5)) {
        const n = next++;
        await redis.set(key(n), '1').then(
          () => acknowledged.push(n),
          (error: unknown) => t.equal(redisError(error).code, 'job_store_unavailable', String(error)),
        );
      }
      t.not(await servers.primary(), primary);
      await untilDone(() => redis.set(key(next), '1'));
      const kept = await Promise.all(acknowledged.map((n) => redis.exists(key(n))));
      t.equal(kept.filter(Boolean).length, acknowledged.length, `of ${next} writes`);
    },
  );
}
