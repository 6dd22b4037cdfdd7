/** A minute of chaos with each kind of Redis; `npm run test:chaos` runs longer. */
import t from 'tap';
import { REDIS_KINDS } from './redis.js';
import { runChaos } from './run.js';

t.setTimeout(2_400_000);

for (const redis of REDIS_KINDS) {
  t.test(`a minute of random kills, stops and disconnections; Redis: ${redis}`, async (t) => {
    const seed = Number(process.env.CHAOS_SEED ?? 20_261);
    const report = await runChaos({ seconds: 60, seed, redis });
    t.comment(JSON.stringify(report));
    const nothing = Object.fromEntries(Object.keys(report.findings).map((name) => [name, []]));
    t.same(report.findings, nothing, JSON.stringify(report, null, 2));
    t.ok(report.jobs > 0, 'jobs were acknowledged');
    for (const verb of ['kill', 'stop']) {
      const counts = Object.entries(report.disturbances).filter(([kind]) => kind.startsWith(verb));
      t.ok(
        counts.some(([, count]) => count > 0),
        `fault injected: ${verb}`,
      );
    }
    t.ok(report.answers > 0, 'questions were answered');
    t.ok(report.calls > 0, 'calls of sessions were answered');
    t.ok(report.resizes > 0, 'jobs were resized');
    t.ok(report.spread > 0, 'jobs trained on two agents');
    t.ok(redis === 'private' || report.failovers > 0, 'Redis failed over');
  });
}
