/** Tests of a job on two agents when one of them is killed or stopped. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, SHORT_SILENCES } from '../../testing/fleet.js';

/** Returns the placement of each generation that trained. */
async function placementsOf(f: Fleet, id: string): Promise<{ worker_id: string; slots: number }[][]> {
  const started = (await f.events(id)).filter(({ type }) => type === 'training.started');
  return started.map(({ data }) => data.placements as { worker_id: string; slots: number }[]);
}

/** Returns the placement of the first generation that trained on both agents. */
async function untilSpread(f: Fleet, id: string) {
  for (;;) {
    const found = (await placementsOf(f, id)).find(({ length }) => length === 2);
    if (found !== undefined) return found;
    await delay(50);
  }
}

const spread = (placements: { slots: number }[] | undefined) => placements?.map(({ slots }) => slots);

for (const [role, signal] of [
  ['member', 'SIGKILL'],
  ['member', 'SIGSTOP'],
  ['leader', 'SIGKILL'],
  ['leader', 'SIGSTOP'],
] as const) {
  t.test(`${signal} of the ${role} costs no error, no committed step and leaves no rank`, async (t) => {
    const f = await Fleet.start({ ranks: { slow: { from: 11, ms: 300 } } });
    t.teardown(() => f.close());
    const agents = [await f.agentProcess(1, SHORT_SILENCES), await f.agentProcess(1, SHORT_SILENCES)];
    const id = await f.submit({ steps: 40, every_steps: 5, ranks: 2, max_errors: 0 });
    await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
    // A job may begin on the agent that was there first, and grow.
    const placements = await untilSpread(f, id);
    const victim = placements[role === 'leader' ? 0 : 1]?.worker_id ?? '';
    // A worker's id contains its process id.
    const agent = agents.find(({ pid }) => victim.includes(`-${pid}-`));
    t.ok(agent, 'the agent is found');
    agent?.kill(signal);
    await f.speedUp();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 40));
    t.ok(job.epoch > 1, 'another attempt');
    t.strictSame(spread((await placementsOf(f, id)).at(-1)), [1], 'on the other worker');
    if (role === 'member') {
      const leader = (await f.store.listWorkers()).find((worker) => worker.id === placements[0]?.worker_id);
      t.match(leader?.avoided, [{ worker_id: victim, job_id: id }], 'the pair is avoided');
    }
    // A resumed agent has to find that its lease has expired.
    agent?.kill('SIGCONT');
    await f.untilNoRanks();
  });
}
