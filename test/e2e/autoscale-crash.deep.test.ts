/** A killed autoscaler takes its agents with it, but no work is lost; another one continues. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import { programsOf, startAutoscaledStack } from '../support/autoscaled-stack.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

const POLL_MS = 100;

t.test('a killed autoscaler', async (t) => {
  const stack = await startAutoscaledStack(t, { slots: 2, max: 1 });
  const { client } = stack;
  const find = (program: string) => programsOf(stack, program)[0];
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const spec = largerSteps(smallJob({ name: 'goes on', dataset, steps: 60, ranks: 1, every_steps: 1000 }));
  const { id } = await client.jobs.create(spec);
  await client.jobs.until(id, ({ progress }) => progress.step >= 3, { interval_ms: POLL_MS });

  const killed = find('autoscaler/main.js') ?? Number.NaN;
  const agent = find('worker/agent/main.js');
  process.kill(killed, 'SIGKILL');
  const queued = await client.jobs.until(id, ({ state }) => state === 'queued', { interval_ms: POLL_MS });
  t.equal(queued.reason, 'worker_draining', 'the agent saved and released its job');
  t.ok((queued.latest_checkpoint?.step ?? 0) >= 3);
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.lost_work_seconds, 0);
  const started = (await collect(client.jobs.events(id))).filter(({ type }) => type === 'training.started');
  t.equal(started.length, 2);
  while (find('worker/agent/main.js') !== undefined) await sleep(POLL_MS);
  t.not(find('autoscaler/main.js'), killed, 'another autoscaler manages the pool');
  t.ok(agent, 'and it ended the agent that it had started');
  t.equal(await stack.stop(), 0);
});
