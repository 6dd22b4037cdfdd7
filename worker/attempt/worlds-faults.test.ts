/** What is left of a job whose ranks run at two agents when one of these is killed or stopped. */
import t from 'tap';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, SHORT_SILENCES } from '../testing/fleet.js';

/** The places of each generation that trained. */
async function placesOf(f: Fleet, id: string): Promise<{ worker_id: string; slots: number }[][]> {
  const started = (await f.events(id)).filter(({ type }) => type === 'training.started');
  return started.map(({ data }) => data.places as { worker_id: string; slots: number }[]);
}

const spread = (places: { slots: number }[] | undefined) => places?.map(({ slots }) => slots);

for (const [who, signal] of [
  ['member', 'SIGKILL'],
  ['member', 'SIGSTOP'],
  ['leader', 'SIGKILL'],
  ['leader', 'SIGSTOP'],
] as const) {
  t.test(`${signal} of the ${who} costs no error, no committed step and leaves no rank`, async (t) => {
    const f = await Fleet.start({ ranks: { slow: { from: 11, ms: 300 } } });
    t.teardown(() => f.close());
    const agents = [await f.agentProcess(2, SHORT_SILENCES), await f.agentProcess(2, SHORT_SILENCES)];
    const id = await f.submit({ steps: 150, every_steps: 5, ranks: 4, max_errors: 0 });
    await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
    const [places = []] = await placesOf(f, id);
    const victim = places[who === 'leader' ? 0 : 1]?.worker_id ?? '';
    // A worker's id holds the id of its process.
    const agent = agents.find(({ pid }) => victim.includes(`-${pid}-`));
    t.ok(agent, 'the victim is known');
    agent?.kill(signal);
    await f.hurry();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 150));
    t.ok(job.epoch > 1, 'another attempt');
    t.strictSame(spread((await placesOf(f, id)).at(-1)), [2], 'on the worker that is left');
    if (who === 'member') {
      const leader = (await f.store.listWorkers()).find((worker) => worker.id === places[0]?.worker_id);
      t.match(leader?.avoided, [{ worker_id: victim, job_id: id }], 'the pair is not tried again at once');
    }
    // One that comes back has to see that its time is over.
    agent?.kill('SIGCONT');
    await f.untilNoRanks();
  });
}
