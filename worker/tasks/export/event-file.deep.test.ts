/** The event file in a job's export: TensorBoard's own readers show each step once, also after a rank was killed. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import type { JobMetric, StreamEntry } from '../../../contracts/index.js';
import { stepsOf } from '../../../formats/testing/event-file.js';
import { projectRoot } from '../../../platform/process/root.js';
import { testPython } from '../../../platform/testing/python.js';
import { Fleet } from '../../testing/fleet.js';

const STEPS = 20;
const { program, missing } = testPython('tensorboard', 'numpy');
const isMetric = (entry: StreamEntry): entry is JobMetric => entry.kind === 'metric';

t.test('a job that repeated steps', async (t) => {
  const fleet = await Fleet.start({
    ranks: { step_ms: 20, faults: [{ rank: 0, step: 14, kind: 'kill' }] },
  });
  t.teardown(() => fleet.close());
  await fleet.agent();
  const id = await fleet.submit({ steps: STEPS, every_steps: 10, export: { tensorboard: true } });
  const job = await fleet.untilState(id, 'succeeded');
  const metrics = (await fleet.store.readStream(id, null, 1000, ['metric'])).filter(isMetric);
  t.ok(metrics.length > STEPS, `${metrics.length} metrics: steps were repeated`);
  const [name = '', ...others] = (job.export?.files ?? [])
    .map((file) => file.name)
    .filter((file) => file.startsWith('events.out.tfevents.'));
  t.same(others, []);
  const all = Array.from({ length: STEPS }, (_, i) => i + 1);
  const folder = join(fleet.objectsDir, job.export?.prefix ?? '');
  t.same(stepsOf(await fleet.objects.get(`${job.export?.prefix}/${name}`)), all);
  if (missing !== null) return t.comment(`not read by TensorBoard: ${missing}`);
  const script = join(projectRoot(), 'formats', 'metric-files', 'golden', 'read_events.py');
  const { stdout, stderr } = spawnSync(program, [script, folder], { encoding: 'utf8' });
  t.not(stdout, '', stderr);
  const newest = new Map(metrics.map(({ step, loss }) => [step, String(Math.fround(loss ?? Number.NaN))]));
  for (const reader of JSON.parse(stdout) as Record<string, [number, number, string][]>[])
    t.same(
      reader.loss?.map(([step, , value]) => [step, String(Number(value))]),
      all.map((step) => [step, newest.get(step)]),
    );
});
