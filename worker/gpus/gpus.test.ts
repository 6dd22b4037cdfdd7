/** A worker with GPUs, as far as their driver, CUDA and the ranks say so: none of the three is real here. */
import { rename, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { WorkerRecord } from '../../state/index.js';
import type { DescribedGpu } from '../testing/fake-core.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';

type Gpus = DescribedGpu[];
const TWO: Gpus = [
  { uuid: 'GPU-one', problem: null },
  { uuid: 'GPU-two', problem: null },
];

/** A fleet whose machine has GPUs. */
class GpuFleet {
  private constructor(
    readonly fleet: Fleet,
    private readonly file: string,
  ) {}

  static async start(
    t: { teardown(end: () => Promise<void>): void },
    gpus: Gpus,
    options: FleetOptions = {},
  ): Promise<GpuFleet> {
    const fleet = await Fleet.start(options);
    t.teardown(async () => {
      delete process.env.ZF_TEST_GPUS;
      await fleet.close();
    });
    const file = join(fleet.dir, 'gpus.json');
    process.env.ZF_TEST_GPUS = file;
    const started = new GpuFleet(fleet, file);
    await started.find(gpus);
    return started;
  }

  /** What the driver says from now on. */
  async find(gpus: Gpus): Promise<void> {
    // At once: ranks read it at any time.
    await writeFile(`${this.file}.new`, JSON.stringify(gpus));
    await rename(`${this.file}.new`, this.file);
  }

  /** An agent that is told nothing of slots. */
  agent(env: Record<string, string> = {}) {
    return this.fleet.agent(4, {}, { ZEROFLEET_SLOTS: '', ...env });
  }

  /** The only worker, once it is as asked. */
  async worker(test: (worker: WorkerRecord) => boolean): Promise<WorkerRecord> {
    for (const deadline = Date.now() + 40_000; ; await delay(20)) {
      const [worker] = await this.fleet.store.listWorkers();
      if (worker && test(worker)) return worker;
      if (Date.now() > deadline) throw new Error(`waited in vain; the worker is ${JSON.stringify(worker)}`);
    }
  }

  async lines(id: string): Promise<string[]> {
    const entries = await this.fleet.store.readStream(id, null, 1000, ['log']);
    return entries.flatMap((entry) => (entry.kind === 'log' ? [entry.message] : []));
  }
}

t.test('there is a slot for each GPU, and each rank sees its own alone', async (t) => {
  const gpus = await GpuFleet.start(t, TWO, { ranks: { print: ['CUDA_VISIBLE_DEVICES'] } });
  const { fleet } = gpus;
  await gpus.agent();
  t.match(await gpus.worker(() => true), {
    slots: 2,
    numerics: 'fake-gpu/1',
    gpus: [
      { uuid: 'GPU-one', name: 'Fake GPU', memory_bytes: 80 * 2 ** 30, driver: '580.65.06', problem: null },
      { uuid: 'GPU-two', problem: null },
    ],
  });
  const id = await fleet.submit({ steps: 8, ranks: 4 });
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 8));
  const lines = await gpus.lines(id);
  for (const uuid of ['GPU-one', 'GPU-two']) {
    t.equal(lines.filter((line) => line === `CUDA_VISIBLE_DEVICES=${uuid}`).length, 1, uuid);
    const started = lines.filter(
      (line) => line.startsWith(`started on ${hostname()}`) && line.endsWith(uuid),
    );
    t.equal(started.length, 1, 'the log says which GPU a rank has');
  }
});

t.test(
  'a GPU that fails under a rank is taken out, and the job goes on without an error of its own',
  async (t) => {
    const gpus = await GpuFleet.start(t, TWO, {
      ranks: { step_ms: 20, faults: [{ rank: 1, step: 6, what: 'lose_gpu' }] },
    });
    const { fleet } = gpus;
    await gpus.agent();
    const id = await fleet.submit({ steps: 10, every_steps: 4, ranks: 2, max_errors: 0 });
    await gpus.find([TWO[0]!, { uuid: 'GPU-two', problem: 'it is lost', xids: [79] }]);
    const job = await fleet.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 10));
    t.match((await fleet.events(id)).find(({ type }) => type === 'rank.lost')?.data, {
      rank: 1,
      code: 'gpu_lost',
      host: hostname(),
      message: new RegExp(
        `^rank 1 on ${hostname()} failed: as the test asked; Xid 79: the GPU has fallen off the bus \\(GPU-two\\)`,
      ),
    });
    const told = await gpus.worker(({ gpus }) => gpus[1]?.problem === 'it is lost');
    t.equal(told.slots, 1, 'the driver was asked at once, and knows more');
    t.equal(told.gpus[0]?.problem, null);
  },
);

t.test('what our own kernel did wrong fails the job at once, and no GPU is to blame', async (t) => {
  const gpus = await GpuFleet.start(t, TWO, {
    ranks: { faults: [{ rank: 0, step: 2, what: 'bad_kernel' }] },
  });
  const { fleet } = gpus;
  await gpus.agent();
  const id = await fleet.submit({ steps: 10, max_errors: 3 });
  const job = await fleet.untilState(id, 'failed');
  t.match(job.failure, { code: 'gpu_fault', category: 'internal', retryable: false, host: hostname() });
  t.match(job.failure?.message, /\(GPU-(one|two)\)/);
  t.equal((await gpus.worker(() => true)).slots, 2);
});

t.test('an error that comes from the memory of a GPU is none of our kernel, and of no job', async (t) => {
  const gpus = await GpuFleet.start(t, [TWO[0]!], {
    ranks: { step_ms: 20, faults: [{ rank: 0, step: 6, what: 'bad_kernel' }] },
  });
  const { fleet } = gpus;
  await gpus.agent();
  const id = await fleet.submit({ steps: 10, every_steps: 4, max_errors: 0 });
  await gpus.find([{ ...TWO[0]!, xids: [31, 48] }]);
  const told = await gpus.worker(({ slots }) => slots === 0);
  t.match(
    told.gpus[0]?.problem,
    /^a rank failed on it: gpu_memory_fault: as the test asked; Xid 31: .*; Xid 48: an error of two bits in its memory/,
  );
  await fleet.untilState(id, 'queued'); // for another GPU
  t.match((await fleet.events(id)).find(({ type }) => type === 'rank.lost')?.data, {
    code: 'gpu_memory_fault',
    message: /; Xid 48: /,
  });
});

t.test('what an agent computes on is what it was told, and what there is', async (t) => {
  const gpus = await GpuFleet.start(t, [{ uuid: 'GPU-one', problem: 'broken' }, TWO[1]!]);
  const refused = async (env: Record<string, string>, code: string, message: RegExp) =>
    t.rejects(gpus.agent(env), { code, message });
  await refused(
    { ZEROFLEET_SLOTS: '3' },
    'invalid_configuration',
    /ZEROFLEET_SLOTS is 3, and there are 2 GPUs/,
  );
  await gpus.find([{ uuid: 'GPU-one', problem: 'broken' }]);
  for (const device of ['auto', 'cuda'])
    await refused({ ZEROFLEET_DEVICE: device }, 'device_unavailable', /GPU-one: broken/);
  await gpus.find([]);
  await refused({ ZEROFLEET_DEVICE: 'cuda' }, 'device_unavailable', /no GPU was found: look at nvidia-smi/);
  t.strictSame(await gpus.fleet.store.listWorkers(), []);

  const on = async (env: Record<string, string>) => {
    const agent = await gpus.agent(env);
    const [worker] = await gpus.fleet.store.listWorkers();
    await agent.close();
    return { slots: worker?.slots, numerics: worker?.numerics, gpus: worker?.gpus.length };
  };
  t.strictSame(await on({}), { slots: 4, numerics: 'fake/1', gpus: 0 }, 'no GPU');
  await gpus.find(TWO);
  t.strictSame(await on({ ZEROFLEET_DEVICE: 'cpu' }), { slots: 4, numerics: 'fake/1', gpus: 0 });
  t.strictSame(await on({ ZEROFLEET_SLOTS: '1' }), { slots: 1, numerics: 'fake-gpu/1', gpus: 2 });
  await gpus.find([{ uuid: 'GPU-one', problem: 'broken' }, TWO[1]!]);
  t.strictSame(await on({}), { slots: 1, numerics: 'fake-gpu/1', gpus: 2 }, 'one of them broken');
});
