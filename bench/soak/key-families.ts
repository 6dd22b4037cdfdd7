import type { Redis } from 'ioredis';

interface KeyFamily {
  keys: number;
  bytes: number;
}

/** Keys per round trip. */
const BATCH = 1_000;

/** Variable parts of key names: ids, digests, workers, days, attempts of a queue. */
const VARIABLE = [
  /\b(job|ds|ckpt|key|model|whk|dlv)_[0-9A-HJKMNP-TV-Z]{26}(-\d+)?/g,
  /\b[0-9a-f]{64}\b/g,
  /(?<=worker[-:])simulated-worker-\d+/g,
  /(?<=:usage:)\d+/g,
];

function familyOf(key: string): string {
  return VARIABLE.reduce((name, part) => name.replace(part, '*'), key);
}

/** All keys of a Redis by family, with their `MEMORY USAGE`. */
export async function keyFamilies(redis: Redis): Promise<Record<string, KeyFamily>> {
  const families: Record<string, KeyFamily> = {};
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'COUNT', BATCH);
    cursor = next;
    const asked = redis.pipeline();
    for (const key of keys) asked.memory('USAGE', key, 'SAMPLES', 0);
    const replies = (await asked.exec()) ?? [];
    keys.forEach((key, i) => {
      const family = familyOf(key);
      const known = families[family] ?? { keys: 0, bytes: 0 };
      families[family] = { keys: known.keys + 1, bytes: known.bytes + Number(replies[i]?.[1] ?? 0) };
    });
  } while (cursor !== '0');
  return Object.fromEntries(Object.entries(families).sort(([, a], [, b]) => b.bytes - a.bytes));
}

export async function usedMemory(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}
