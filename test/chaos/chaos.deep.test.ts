/** A minute of chaos; `npm run test:chaos` has more of it. */
import t from 'tap';
import { runChaos } from './run.js';

t.setTimeout(900_000);

t.test('a minute in which everything is killed, stopped and cut off at random', async (t) => {
  const report = await runChaos({ seconds: 60, seed: Number(process.env.CHAOS_SEED ?? 20_261) });
  t.comment(JSON.stringify(report));
  const nothing = Object.fromEntries(Object.keys(report.findings).map((name) => [name, []]));
  t.same(report.findings, nothing, JSON.stringify(report, null, 2));
  t.ok(report.jobs > 0, 'jobs were acknowledged');
  const { kill_rank, stop_rank, kill_agent, stop_agent } = report.disturbances;
  t.ok(kill_rank + kill_agent > 0, 'something was killed');
  t.ok(stop_rank + stop_agent > 0, 'something was stopped');
  t.ok(report.resizes > 0, 'jobs were resized');
  t.ok(report.spread > 0, 'jobs trained on two agents');
});
