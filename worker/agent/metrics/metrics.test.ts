import t from 'tap';
import { Fleet } from '../../testing/fleet.js';
import { STEP_SECONDS } from '../../testing/stepped.js';
import { AgentMetrics } from './agent-metrics.js';

/** Returns the values of one scrape by name and labels. */
async function values(metrics: AgentMetrics): Promise<Map<string, number>> {
  const { text } = await metrics.scrape();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const name = (short: string, labels = '') => `zerofleet_worker_${short}{${labels}pool="p"}`;

t.test('events are counted', async (t) => {
  const metrics = new AgentMetrics({ pool: 'p', slots: 8 });
  const ended = [1, 2, 3].map(() => metrics.rankStarted());
  metrics.stepped({ seconds: { ...STEP_SECONDS, total: 0.2 }, tokens: 100 });
  metrics.stepped({ seconds: { ...STEP_SECONDS, total: 0.4 }, tokens: 100 });
  const shard = { file: 'f', bytes: 1000, data_begin: 8, sha256: '', crc32c: '' };
  metrics.shardStored({ shard, cost: { stall_seconds: 0.01, write_seconds: 2 } });
  metrics.shardFailed();
  metrics.failed('rank_lost');
  metrics.failed('rank_lost');
  metrics.preempted('worker_draining');
  const now = await values(metrics);
  t.equal(now.get(name('slots')), 8);
  t.equal(now.get(name('running_ranks')), 3);
  t.equal(now.get(name('step_duration_seconds_count')), 2);
  t.equal(now.get(name('step_duration_seconds_sum'))?.toFixed(6), '0.600000');
  t.equal(now.get(name('tokens_total')), 200);
  t.equal(now.get(name('checkpoint_stall_seconds_sum')), 0.01);
  t.equal(now.get(name('checkpoint_bytes_total')), 1000);
  t.equal(now.get(name('checkpoint_write_seconds_total')), 2);
  t.equal(now.get(name('checkpoint_failures_total')), 1);
  t.equal(now.get(name('errors_total', 'code="rank_lost",')), 2);
  t.equal(now.get(name('preemptions_total', 'reason="worker_draining",')), 1);
  for (const end of ended) end();
  t.equal((await values(metrics)).get(name('running_ranks')), 0);
});

t.test('an agent counts the work of its jobs', async (t) => {
  const f = await Fleet.start({ ranks: { step_ms: 10, faults: [{ rank: 0, step: 7, kind: 'kill' }] } });
  t.teardown(() => f.close());
  const worker = await f.agent(4, {}, { ZEROFLEET_METRICS_PORT: '0' });
  const id = await f.submit({ steps: 10, every_steps: 5, ranks: 2 });
  await f.untilState(id, 'succeeded');
  const text = await (await fetch(worker.metricsUrl ?? 'http://none')).text();
  const value = (name: string) => Number(new RegExp(`^zerofleet_worker_${name} (.*)$`, 'm').exec(text)?.[1]);
  const all = 'pool="default"';
  t.equal(value(`slots\\{${all}\\}`), 4);
  t.equal(value(`running_ranks\\{${all}\\}`), 0, 'all of them ended');
  t.equal(value(`errors_total\\{code="rank_lost",${all}\\}`), 1);
  const steps = value(`step_duration_seconds_count\\{${all}\\}`);
  t.ok(steps >= 10 && steps <= 16, `${steps} steps, including repeated ones`);
  t.equal(value(`tokens_total\\{${all}\\}`), steps * 16 * 16);
  t.ok(value(`checkpoint_bytes_total\\{${all}\\}`) > 0);
  t.ok(value(`checkpoint_stall_seconds_count\\{${all}\\}`) >= 4, 'two ranks, two checkpoints');
});
