/**
 * Sweeps on two slots, while agents and a server are killed. The runs have the digests of the same jobs alone, and the
 * best run is right.
 */
import t from 'tap';
import type { Zerofleet } from '../../clients/typescript/index.js';
import type { Job, JobSpec, Sweep } from '../../contracts/index.js';
import { until } from '../../platform/testing/waiting.js';
import { agentProcess, rankProcesses } from '../support/processes.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 36;
const RATES = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3];
const SEEDS = [1, 2];

function documentOf(dataset: string): JobSpec {
  const { data, train, ...job } = smallJob({ name: 'sweep', dataset, steps: STEPS, ranks: 1 });
  return {
    ...job,
    data: { ...data, validation_fraction: 0.1 },
    train: {
      ...train,
      evaluation: { every_steps: 4 },
      lr_schedule: { type: 'cosine', warmup_steps: 3, min_lr: 0 },
    },
    resources: { ranks: { min: 1, max: 1 } },
  };
}

const SPACE = {
  'train.optimizer.lr': { values: RATES },
  'train.seed': { values: SEEDS },
};

const lossAt = async (client: Zerofleet, id: string, step: number): Promise<number> => {
  for await (const { step: at, eval_losses } of client.jobs.metrics(id))
    if (at === step && eval_losses?.validation != null) return eval_losses.validation;
  throw new Error(`${id} has no evaluation at step ${step}`);
};

const ended = async (client: Zerofleet, id: string): Promise<Job> => client.jobs.until(id, () => false);

async function endOf(
  client: Zerofleet,
  id: string,
  disturb: (sweep: Sweep) => void = () => {},
): Promise<Sweep> {
  let sweep = await client.sweeps.get(id);
  await until(async () => {
    sweep = await client.sweeps.get(id);
    disturb(sweep);
    return sweep.ended_at !== null;
  });
  return sweep;
}

t.test('12 runs on 2 slots with a killed agent are the same as by themselves', async (t) => {
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '2' } });
  const { client } = stack;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const spec = documentOf(dataset);

  const alone = new Map<string, { losses: number[]; digest: string | undefined }>();
  for (const lr of RATES)
    for (const seed of SEEDS) {
      const train = { ...spec.train, seed, optimizer: { ...spec.train?.optimizer, lr } };
      const { id } = await client.jobs.create({ ...spec, train } as JobSpec);
      const job = await ended(client, id);
      t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
      const losses = await Promise.all([4, 12, STEPS].map((step) => lossAt(client, id, step)));
      alone.set(`${lr} ${seed}`, { losses, digest: job.latest_checkpoint?.state_digest });
    }
  const aloneOf = ({ values }: Sweep['runs'][number]) =>
    alone.get(`${values['train.optimizer.lr']} ${values['train.seed']}`);

  t.test('a grid', async (t) => {
    let killed = false;
    const { id } = await client.sweeps.create({ spec, space: SPACE, max_concurrent: 2 });
    const sweep = await endOf(client, id, ({ runs }) => {
      const [agent, rank] = [agentProcess(stack.pid), rankProcesses(stack.pid)[0]];
      if (killed || !agent || !rank || !runs.some(({ state }) => state === 'succeeded')) return;
      process.kill(agent.pid, 'SIGKILL');
      killed = true;
    });
    t.ok(killed, 'the agent was killed');
    t.match(sweep, { state: 'succeeded', problem: null });
    t.equal(sweep.runs.length, 12);
    for (const run of sweep.runs) {
      t.equal(run.state, 'succeeded', run.name);
      t.same(run.evaluations, [{ step: STEPS, value: aloneOf(run)?.losses[2] }], run.name);
      const job = await client.jobs.get(run.job_id);
      t.equal(job.latest_checkpoint?.state_digest, aloneOf(run)?.digest, run.name);
    }
    const losses = sweep.runs.map((run) => aloneOf(run)?.losses[2] ?? 0);
    t.equal(sweep.best, sweep.runs[losses.indexOf(Math.min(...losses))]?.job_id);
  });

  t.test('successive halving', async (t) => {
    let kills = 0;
    const { id } = await client.sweeps.create({
      ...{ spec, space: SPACE, max_concurrent: 2 },
      ...{ method: 'successive_halving', min_steps: 4, factor: 3 },
    });
    const sweep = await endOf(client, id, ({ runs }) => {
      const [agent, rank] = [agentProcess(stack.pid), rankProcesses(stack.pid)[0]];
      const rung = Math.max(...runs.map((run) => run.rung));
      if (kills > rung || kills === 2 || !agent || !rank) return;
      process.kill(agent.pid, 'SIGKILL');
      kills += 1;
    });
    t.ok(kills > 0, 'an agent was killed');
    t.match(sweep, {
      state: 'succeeded',
      rungs: [
        { step: 4, runs: 12 },
        { step: 12, runs: 4 },
        { step: null, runs: 1 },
      ],
    });
    const best = (at: number, among: readonly Sweep['runs'][number][], count: number) =>
      new Set(
        [...among]
          .sort((a, b) => (aloneOf(a)?.losses[at] ?? 0) - (aloneOf(b)?.losses[at] ?? 0))
          .slice(0, count),
      );
    const second = best(0, sweep.runs, 4);
    const third = best(1, [...second], 1);
    for (const run of sweep.runs) {
      const rung = third.has(run) ? 2 : second.has(run) ? 1 : 0;
      t.match(run, { rung, state: rung === 2 ? 'succeeded' : 'stopped' }, run.name);
      const steps = [4, 12, STEPS].slice(0, rung + 1);
      t.same(
        run.evaluations,
        steps.map((step, i) => ({ step, value: aloneOf(run)?.losses[i] })),
        run.name,
      );
    }
    const [winner] = [...third];
    t.equal(sweep.best, winner?.job_id);
    const job = await client.jobs.get(winner?.job_id ?? '');
    t.equal(job.latest_checkpoint?.state_digest, winner && aloneOf(winner)?.digest, 'pauses change nothing');
  });
});
