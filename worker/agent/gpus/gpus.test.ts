/** Tests of a worker with simulated GPUs: driver, CUDA and ranks are fakes. */
import { rename, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { WorkerRecord } from '../../../state/index.js';
import type { DescribedGpu } from '../../testing/fake-core.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';

type Gpus = DescribedGpu[];
const TWO: Gpus = [
  { uuid: 'GPU-one', problem: null },
  { uuid: 'GPU-two', problem: null },
];

/** Fleet whose machine has GPUs. */
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
      delete process.env.ZF_TEST_CUDA_PROBLEM;
      await fleet.close();
    });
    const file = join(fleet.dir, 'gpus.json');
    process.env.ZF_TEST_GPUS = file;
    const started = new GpuFleet(fleet, file);
    await started.setGpus(gpus);
    return started;
  }

  /** Sets the GPUs that the driver reports. */
  async setGpus(gpus: Gpus): Promise<void> {
    // Atomic replacement: ranks read the file at any time.
    await writeFile(`${this.file}.new`, JSON.stringify(gpus));
    await rename(`${this.file}.new`, this.file);
  }

  /** Starts an agent without ZEROFLEET_SLOTS. */
  agent(env: Record<string, string> = {}) {
    return this.fleet.agent(4, {}, { ZEROFLEET_SLOTS: '', ...env });
  }

  /** Waits until the only worker passes the test. */
  async worker(test: (worker: WorkerRecord) => boolean): Promise<WorkerRecord> {
    for (const deadline = Date.now() + 40_000; ; await delay(20)) {
      const [worker] = await this.fleet.store.listWorkers();
      if (worker && test(worker)) return worker;
      if (Date.now() > deadline) throw new Error(`timeout; the worker is ${JSON.stringify(worker)}`);
    }
  }

  async lines(id: string): Promise<string[]> {
    const entries = await this.fleet.store.readStream(id, null, 1000, ['log']);
    return entries.flatMap((entry) => (entry.kind === 'log' ? [entry.message] : []));
  }
}

t.test('there is a slot for each GPU, and each rank sees only its own', async (t) => {
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
    t.equal(started.length, 1, 'the log names the GPU of a rank');
  }
});

t.test(
  'a GPU that fails under a rank becomes unhealthy, and the job continues without an error',
  async (t) => {
    const gpus = await GpuFleet.start(t, TWO, {
      ranks: { step_ms: 20, faults: [{ rank: 1, step: 6, kind: 'lose_gpu' }] },
    });
    const { fleet } = gpus;
    await gpus.agent();
    const id = await fleet.submit({ steps: 10, every_steps: 4, ranks: 2, max_errors: 0 });
    await gpus.setGpus([TWO[0]!, { uuid: 'GPU-two', problem: 'it is lost', xids: [79] }]);
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
    const worker = await gpus.worker(({ gpus }) => gpus[1]?.problem === 'it is lost');
    t.equal(worker.slots, 1, 'the driver was inspected at once');
    t.equal(worker.gpus[0]?.problem, null);
  },
);

t.test('a fault of our own kernel fails the job at once, and the GPU stays healthy', async (t) => {
  const gpus = await GpuFleet.start(t, TWO, {
    ranks: { faults: [{ rank: 0, step: 2, kind: 'bad_kernel' }] },
  });
  const { fleet } = gpus;
  await gpus.agent();
  const id = await fleet.submit({ steps: 10, max_errors: 3 });
  const job = await fleet.untilState(id, 'failed');
  t.match(job.failure, { code: 'gpu_fault', category: 'internal', retryable: false, host: hostname() });
  t.match(job.failure?.message, /\(GPU-(one|two)\)/);
  t.equal((await gpus.worker(() => true)).slots, 2);
});

t.test('a memory error of a GPU counts neither as a kernel fault nor as an error of the job', async (t) => {
  const gpus = await GpuFleet.start(t, [TWO[0]!], {
    ranks: { step_ms: 20, faults: [{ rank: 0, step: 6, kind: 'bad_kernel' }] },
  });
  const { fleet } = gpus;
  await gpus.agent();
  const id = await fleet.submit({ steps: 10, every_steps: 4, max_errors: 0 });
  await gpus.setGpus([{ ...TWO[0]!, xids: [31, 48] }]);
  const worker = await gpus.worker(({ slots }) => slots === 0);
  t.match(
    worker.gpus[0]?.problem,
    /^a rank failed on it: gpu_memory_fault: as the test asked; Xid 31: .*; Xid 48: uncorrectable double-bit ECC error/,
  );
  await fleet.untilState(id, 'queued'); // for another GPU
  t.match((await fleet.events(id)).find(({ type }) => type === 'rank.lost')?.data, {
    code: 'gpu_memory_fault',
    message: /; Xid 48: /,
  });
});

t.test('an agent selects its device by the configuration and the hardware', async (t) => {
  const gpus = await GpuFleet.start(t, [{ uuid: 'GPU-one', problem: 'broken' }, TWO[1]!]);
  const refused = async (env: Record<string, string>, code: string, message: RegExp) =>
    t.rejects(gpus.agent(env), { code, message });
  await refused(
    { ZEROFLEET_SLOTS: '3' },
    'invalid_configuration',
    /ZEROFLEET_SLOTS is 3, but there are 2 GPUs for ranks/,
  );
  await refused(
    { ZEROFLEET_ANSWER_GPUS: '2' },
    'invalid_configuration',
    /ZEROFLEET_ANSWER_GPUS is 2 of 2 GPUs, and ranks need at least one/,
  );
  await refused(
    { ZEROFLEET_ANSWER_GPUS: '1', ZEROFLEET_DEVICE: 'cpu' },
    'invalid_configuration',
    /ZEROFLEET_ANSWER_GPUS is 1, but this worker uses no GPU/,
  );
  await gpus.setGpus([{ uuid: 'GPU-one', problem: 'broken' }]);
  for (const device of ['auto', 'cuda'])
    await refused({ ZEROFLEET_DEVICE: device }, 'device_unavailable', /GPU-one: broken/);
  await gpus.setGpus([]);
  await refused({ ZEROFLEET_DEVICE: 'cuda' }, 'device_unavailable', /no GPU was found: check nvidia-smi/);
  process.env.ZF_TEST_CUDA_PROBLEM = 'the driver supports CUDA up to 12.2';
  await refused({ ZEROFLEET_DEVICE: 'cuda' }, 'device_unavailable', /no GPU was found: .* CUDA up to 12\.2/);
  await gpus.setGpus([TWO[0]!]);
  await refused({}, 'device_unavailable', /GPU-one: CUDA does not list it: .* CUDA up to 12\.2/);
  delete process.env.ZF_TEST_CUDA_PROBLEM;
  await gpus.setGpus([]);
  t.strictSame(await gpus.fleet.store.listWorkers(), []);

  const on = async (env: Record<string, string>) => {
    const agent = await gpus.agent(env);
    const [worker] = await gpus.fleet.store.listWorkers();
    await agent.close();
    return { slots: worker?.slots, numerics: worker?.numerics, gpus: worker?.gpus.length };
  };
  t.strictSame(await on({}), { slots: 4, numerics: 'fake/1', gpus: 0 }, 'no GPU');
  await gpus.setGpus(TWO);
  t.strictSame(await on({ ZEROFLEET_DEVICE: 'cpu' }), { slots: 4, numerics: 'fake/1', gpus: 0 });
  t.strictSame(await on({ ZEROFLEET_SLOTS: '1' }), { slots: 1, numerics: 'fake-gpu/1', gpus: 2 });
  await gpus.setGpus([{ uuid: 'GPU-one', problem: 'broken' }, TWO[1]!]);
  t.strictSame(await on({}), { slots: 1, numerics: 'fake-gpu/1', gpus: 2 }, 'one of them unhealthy');
});

t.test('GPUs that answer are no slots; their problems are announced', async (t) => {
  const gpus = await GpuFleet.start(t, TWO);
  await gpus.agent({ ZEROFLEET_ANSWER_GPUS: '1' });
  t.match(await gpus.worker(() => true), {
    slots: 1,
    gpus: [{ uuid: 'GPU-one', problem: null }],
    answer_gpus: [{ uuid: 'GPU-two', problem: null }],
  });
});
