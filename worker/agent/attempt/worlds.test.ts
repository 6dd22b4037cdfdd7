/** Tests of jobs with ranks on two agents. */
import t, { type Test } from 'tap';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(t: Test, options: FleetOptions = { ranks: { step_ms: 20 } }): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

/** Returns the placement of each generation that trained. */
async function placementsOf(f: Fleet, id: string): Promise<{ worker_id: string; slots: number }[][]> {
  const started = (await f.events(id)).filter(({ type }) => type === 'training.started');
  return started.map(({ data }) => data.placements as { worker_id: string; slots: number }[]);
}

const spread = (placements: { slots: number }[] | undefined) => placements?.map(({ slots }) => slots);

t.test('a job that fits on no single worker runs on two, with the same digest', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  await f.agent(2);
  const id = await f.submit({ steps: 30, every_steps: 10, ranks: 4 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 30));
  t.strictSame((await placementsOf(f, id)).map(spread), [[2, 2]]);
  t.strictSame(await f.steps(id), upTo(30));
  await f.untilNoRanks();
});

t.test('a job on two workers is evaluated on several datasets, and one of them ends it', async (t) => {
  const evalLosses: Record<number, number>[] = [{}, { 4: 3, 8: 2, 12: 2.5, 16: 2 }];
  const f = await fleet(t, { ranks: { step_ms: 5, eval_losses: evalLosses } });
  await f.agent(2);
  await f.agent(2);
  const [code, text] = await Promise.all(
    ['code', 'text'].map((word) => f.addDataset(Buffer.from(word.repeat(50)))),
  );
  const datasets = [
    { name: 'code', dataset: `${code}` },
    { name: 'text', dataset: `${text}` },
  ];
  const earlyStopping = { metric: 'eval_loss/code', patience: 2 };
  const train = { evaluation: { every_steps: 4, datasets }, early_stopping: earlyStopping };
  const id = await f.submit({
    steps: 100,
    every_steps: 50,
    ranks: 4,
    train,
    data: { validation_fraction: 0.1 },
  });
  const job = await f.untilState(id, 'succeeded');
  t.match(job, { reason: 'early_stopping', progress: { step: 16 }, export: { step: 8 } });
  t.strictSame((await placementsOf(f, id)).map(spread), [[2, 2]]);
  const { data } = await f.store.listCheckpoints(id);
  t.strictSame(data.find(({ step }) => step === 8)?.eval_losses, { validation: 6 / 8, code: 2, text: 6 / 8 });
  await f.untilNoRanks();
});

t.test('each agent counts its own ranks, whichever agent leads them', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  const agents: Awaited<ReturnType<typeof f.agent>>[] = [];
  for (const slots of [2, 1]) agents.push(await f.agent(slots, {}, { ZEROFLEET_METRICS_PORT: '0' }));
  const running = () =>
    Promise.all(
      agents.map(async ({ metricsUrl }) => {
        const text = await (await fetch(metricsUrl ?? 'http://none')).text();
        return Number(/^zerofleet_worker_running_ranks\{.*\} (\d+)$/m.exec(text)?.[1]);
      }),
    );
  const id = await f.submit({ steps: 100_000, every_steps: 1000, ranks: 3 });
  await f.until(id, ({ progress, world_size }) => world_size === 3 && progress.step > 0);
  t.strictSame(await running(), [2, 1]);
  await f.store.requestCancel(id);
  await f.untilState(id, 'cancelled');
  await f.untilNoRanks();
  while ((await running()).some((ranks) => ranks > 0));
});

t.test('a rank that dies on the other agent is reported like a local one', async (t) => {
  const faults = [{ rank: 3, step: 10, kind: 'exit' as const }];
  const f = await fleet(t, { ranks: { step_ms: 20, faults } });
  await f.agent(2);
  await f.agent(2);
  const id = await f.submit({ steps: 20, every_steps: 5, ranks: 4, max_errors: 1 });
  t.equal((await f.untilState(id, 'succeeded')).export?.state_digest, fakeStateDigest(1, 20));
  const lost = (await f.events(id)).find(({ type }) => type === 'rank.lost');
  t.match(lost?.data, { rank: 3, code: 'rank_lost', exit_code: 3 });
});

t.test('a draining member lets the job save and continue without it', async (t) => {
  const f = await fleet(t, { ranks: { slow: { from: 11, ms: 300 } } });
  const first = await f.agent(2);
  const second = await f.agent(2);
  const id = await f.submit({ steps: 100, every_steps: 1000, ranks: 4, max_errors: 0 });
  await f.until(id, (job) => job.progress.step >= 10);
  const [placements = []] = await placementsOf(f, id);
  t.strictSame(spread(placements), [2, 2]);
  const member = first.id === placements[1]?.worker_id ? first : second;
  await member.close();
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 100));
  t.strictSame(await f.steps(id), upTo(100), 'no step was repeated');
  t.strictSame((await placementsOf(f, id)).map(spread), [[2, 2], [2]]);
});
