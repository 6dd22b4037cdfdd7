/**
 * A worker with GPUs, from their discovery to the weights, without a GPU: the driver's library is a stand-in, and ranks
 * compute on an emulated CUDA device. Agent, ranks, trainer and kernels are those of a GPU machine.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { testProgram } from '../../platform/testing/test-program.js';
import { Fleet } from '../../worker/testing/fleet.js';
import { SampleClient } from '../../worker/testing/samples.js';

const built = (path: string) => join(projectRoot(), 'native', 'build', path);
const programs = {
  rank: testProgram('test/e2e/emulated/rank-main'),
  task: testProgram('test/e2e/emulated/task-main'),
};
const isBuilt = existsSync(built('emulated/zerofleet.node'));
const options = isBuilt ? {} : { skip: 'the native core is not built for the emulated device' };

const FIRST = 'GPU-e3e3e3e3-0000-0000-0000-000000000000';
const SECOND = 'GPU-e3e3e3e3-0000-0000-0000-000000000001';
const NUMERICS = /^cuda-emulated-device-sm_80x2-cudart13\.0-plain\/\d+$/;
const STEPS = 5;
/** cudaErrorECCUncorrectable, from this kernel launch of a process on. */
const ECC_UNCORRECTABLE = 214;
const IN_A_STEP = 500;

/** A fleet on a machine with two GPUs, and an agent without GPU settings, apart from the given ones. */
async function start(
  t: { teardown(end: () => Promise<void>): void },
  env: Record<string, string> = {},
  settings: Record<string, string> = {},
) {
  const fleet = await Fleet.start({
    programs,
    text: 'The quick brown fox jumps over the lazy dog. '.repeat(40),
  });
  const before = { ...process.env };
  t.teardown(async () => {
    await fleet.close();
    process.env = before;
  });
  const driver = join(fleet.dir, 'driver.txt');
  await writeFile(driver, `${FIRST} 81920\n${SECOND} 81920\n`);
  const machine = { LD_LIBRARY_PATH: built('fake_nvml'), ZF_FAKE_NVML: driver, ZF_EMULATED_GPUS: '2' };
  Object.assign(process.env, machine, env);
  const agent = await fleet.agent(4, {}, { ZEROFLEET_SLOTS: '', ...settings });
  return { fleet, driver, agent };
}

t.test('a job trains on a GPU, and a pause in between changes no bit', options, async (t) => {
  const { fleet } = await start(t);
  const [worker] = await fleet.store.listWorkers();
  t.match(worker, {
    slots: 2,
    numerics: NUMERICS,
    gpus: [
      { uuid: FIRST, name: 'NVIDIA Fake G1', memory_bytes: 80 * 2 ** 30, driver: '580.65.06', problem: null },
      { uuid: SECOND, problem: null },
    ],
  });
  const straight = await fleet.submit({ steps: STEPS, every_steps: 100 });
  const expected = await fleet.untilState(straight, 'succeeded');
  t.match(expected.export?.state_digest, /^[0-9a-f]{32}$/);

  const broken = await fleet.submit({ steps: STEPS, every_steps: 1 });
  await fleet.until(broken, (job) => job.progress.step >= 1);
  await fleet.store.requestPause(broken);
  const paused = await fleet.untilState(broken, 'paused');
  t.ok(paused.progress.step < STEPS, 'midway');
  await fleet.store.resumeJob(broken, {});
  const resumed = await fleet.untilState(broken, 'succeeded');
  t.equal(resumed.export?.state_digest, expected.export?.state_digest);
});

t.test(
  'a GPU with failing memory is marked unhealthy, and the job ends on another one with the same bits',
  options,
  async (t) => {
    const { fleet, driver } = await start(t, {
      ZF_EMULATED_FAULT: `${FIRST} ${ECC_UNCORRECTABLE} ${IN_A_STEP}`,
    });
    await writeFile(driver, `${FIRST} 81920 ecc xid=48\n${SECOND} 81920\n`);
    const moved = await fleet.submit({ steps: STEPS, every_steps: 1, max_errors: 0 });
    const job = await fleet.untilState(moved, 'succeeded');
    const lost = (await fleet.events(moved)).find(({ type }) => type === 'rank.lost')?.data;
    t.match(lost, { rank: 0, code: 'gpu_memory_fault', host: hostname() });
    t.match(
      lost?.message,
      new RegExp(`^rank 0 on ${hostname()} failed: .*cudaErrorECCUncorrectable.*; Xid 48: .*${FIRST}`),
    );
    const [worker] = await fleet.store.listWorkers();
    t.match(worker, { slots: 1, gpus: [{ problem: /^3 memory errors/ }, { problem: null }] });

    const straight = await fleet.submit({ steps: STEPS, every_steps: 100 });
    const expected = await fleet.untilState(straight, 'succeeded');
    t.equal(job.export?.state_digest, expected.export?.state_digest);
  },
);

t.test(
  "a job that is larger than the GPU's memory fails immediately with the GPU's name",
  options,
  async (t) => {
    const { fleet } = await start(t, { ZF_EMULATED_MEMORY_MIB: '1' });
    const id = await fleet.submit({ steps: STEPS, max_errors: 3 });
    const { failure } = await fleet.untilState(id, 'failed');
    t.match(failure, { code: 'out_of_memory', category: 'oom', retryable: false, host: hostname(), rank: 0 });
    t.match(failure?.message, new RegExp(`bytes on cuda:0.*${FIRST}`));
    t.equal((await fleet.store.listWorkers())[0]?.slots, 2, 'the GPU is not the root cause');
  },
);

/** A checkpoint of a short training, and who asks it. */
async function trained(fleet: Fleet) {
  const id = await fleet.submit({ steps: STEPS, every_steps: 100 });
  await fleet.untilState(id, 'succeeded');
  const [checkpoint] = (await fleet.store.listCheckpoints(id)).data;
  if (checkpoint === undefined) throw new Error('there is no checkpoint');
  const samples = new SampleClient(fleet);
  return { samples, checkpoint };
}

t.test('a GPU answers: alone and among others the same, and as the CPU computes it', options, async (t) => {
  const { fleet, agent } = await start(t, {}, { ZEROFLEET_ANSWER_GPUS: '1' });
  t.match(await fleet.store.listWorkers(), [{ slots: 1, answer_gpus: [{ uuid: SECOND }] }]);
  const { samples, checkpoint } = await trained(fleet);
  const ask = async (prompt: string) => {
    const reply = await samples.ask(checkpoint, { prompt, max_tokens: 12, logprobs: 0 });
    if (!reply.ok) throw new Error(reply.error.message);
    return reply.sample.choices[0];
  };
  const alone = await ask('The quick');
  const among = await Promise.all(['The quick', 'a', 'The quick brown fox', 'jumps over'].map(ask));
  t.strictSame(among[0], alone);

  await agent.close();
  await fleet.agent(1, {}, { ZEROFLEET_DEVICE: 'cpu' });
  const computed = await ask('The quick');
  t.equal(computed?.text, alone?.text);
  for (const [index, { token, logprob }] of computed?.logprobs.entries() ?? []) {
    const other = alone?.logprobs[index];
    t.equal(other?.token, token);
    t.ok(Math.abs((other?.logprob ?? 0) - logprob) < 0.02, `${other?.logprob} and ${logprob}`);
  }
});

t.test('a GPU that fails while it answers is marked, and the request is refused', options, async (t) => {
  const { fleet } = await start(
    t,
    { ZF_EMULATED_FAULT: `${SECOND} ${ECC_UNCORRECTABLE} 40` },
    { ZEROFLEET_ANSWER_GPUS: '1' },
  );
  const { samples, checkpoint } = await trained(fleet);
  t.match(await samples.ask(checkpoint), {
    ok: false,
    error: { code: 'device_unavailable', message: /no GPU of this worker can answer: .*ECC/ },
  });
  const [worker] = await fleet.store.listWorkers();
  t.match(worker, {
    slots: 1,
    gpus: [{ problem: null }],
    answer_gpus: [{ problem: /gpu_memory_fault|ECC/ }],
  });
});
