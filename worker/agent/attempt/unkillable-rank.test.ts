/** Tests of a rank in uninterruptible sleep that survives SIGKILL. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { unkillableProcesses } from '../../testing/child-processes.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, SHORT_SILENCES } from '../../testing/fleet.js';

t.test(
  'its job continues on another worker, and its own worker takes no new work until the process ends',
  async (t) => {
    const f = await Fleet.start({ ranks: { faults: [{ rank: 1, step: 10, kind: 'hang' }] } });
    t.teardown(() => f.close());
    const { fork, release } = unkillableProcesses();
    t.teardown(release);
    const timing = { silence_ms: SHORT_SILENCES.silence_ms, kill_ms: 200 };
    const first = await f.agent(4, timing, { ZEROFLEET_MACHINE_ID: 'machine-1' }, { fork });
    const id = await f.submit({ steps: 12, every_steps: 5, ranks: 2, max_errors: 0 });
    await f.until(id, ({ reason }) => reason === 'node_lost');
    const workerOf = async () => (await f.store.listWorkers()).find((worker) => worker.id === first.id);
    const problem = /^rank [01], process \d+, still exists 0.2 s after SIGKILL/;
    t.match(await workerOf(), { draining: true, problem });
    await f.untilState(id, 'queued');
    const lost = (await f.events(id)).find(({ type }) => type === 'node.lost');
    t.match(lost?.data, { code: 'node_lost', worker_id: first.id, message: /after SIGKILL/ });

    const isDrained = async () => (await f.store.drainedMachines()).includes('machine-1');
    while (!(await isDrained())) await sleep(20);
    await f.agent(2);
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 12));
    t.match(job, { epoch: 2, attempt: 2 });

    release();
    while ((await workerOf())?.problem !== null) await sleep(20);
    t.match(await workerOf(), { draining: false });
  },
);
