import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { AgentMessage, LocalMessage, RankMessage } from '../../contracts/rank-protocol.js';
import { checkpointKey, REFERENCE_FILE } from '../../formats/checkpoint/layout.js';
import { fakeCore } from '../testing/fake-core.js';
import { fakeParamTable } from '../testing/fake-state.js';
import { type StartFields, startMessage, testSpec } from '../testing/start-message.js';
import type { RankChannel } from './channel.js';
import { runRank } from './run-rank.js';

/** Agent that starts the rank and relays its rendezvous keys. */
class Agent implements RankChannel {
  readonly received: RankMessage[] = [];
  private readonly handlers: ((message: AgentMessage | LocalMessage) => void)[] = [];

  async send(message: RankMessage): Promise<void> {
    this.received.push(message);
    if (message.kind === 'publish') this.post({ kind: 'deliver', key: message.key, value: message.value });
    if (message.kind === 'stopped') this.post({ kind: 'exit' });
  }

  onMessage(handler: (message: AgentMessage | LocalMessage) => void): void {
    this.handlers.push(handler);
  }

  onDisconnect(): void {}

  post(message: AgentMessage): void {
    for (const handler of this.handlers) handler(message);
  }
}

async function run(t: Test, core: ReturnType<typeof fakeCore>, start: StartFields = {}) {
  const agent = new Agent();
  const code = runRank(agent, core);
  const objectStore = { url: pathToFileURL(t.testdir()).href, s3_endpoint: null };
  agent.post(startMessage({ object_store: objectStore, ...start }));
  return { code: await code, received: agent.received };
}

t.test('a rank reports its error although its trainer never closes', async (t) => {
  const beforeStep = async (step: number) => {
    if (step === 3) throw Object.assign(new Error('scripted error'), { code: 'token_out_of_vocab' });
  };
  let closed = 0;
  const onClose = () => {
    closed++;
    return new Promise<void>(() => undefined);
  };
  const { code, received } = await run(t, fakeCore({ beforeStep, onClose }));
  t.equal(code, 1);
  t.equal(closed, 1);
  t.match(received.at(-1), { kind: 'failed', step: 2, error: { code: 'token_out_of_vocab' } });
});

t.test(
  'a save has the reference of the objective, whose file rank 0 stores before it reports the shard',
  async (t) => {
    const spec = testSpec();
    spec.train.objective = { type: 'dpo', beta: 0.1, label_smoothing: 0, reference: 'initial' };
    const { received } = await run(t, fakeCore(), { spec });
    const shard = received.find((message) => message.kind === 'shard');
    t.match(shard?.save.reference, { bytes: 16, objective: 'dpo', sha256: /^[0-9a-f]{64}$/ });
    const { job_id } = startMessage();
    const file = join(t.testdirName, checkpointKey(job_id, shard?.save.directory ?? ''), REFERENCE_FILE);
    const [seed] = new Float64Array(new Uint8Array(readFileSync(file)).buffer);
    t.equal(seed, spec.train.seed);
  },
);

t.test('a finished rank reports it and exits when it is told to', async (t) => {
  const { code, received } = await run(t, fakeCore());
  t.equal(code, 0);
  t.match(received.at(-1), { kind: 'stopped', step: 20, flags: 0 });
});

t.test('heartbeats have the resident set on the CPU, on a GPU what the trainer has allocated', async (t) => {
  const measured = (received: RankMessage[]) =>
    received.flatMap((message) => (message.kind === 'heartbeat' ? [message] : []));
  const status = () => readFileSync('/proc/self/status', 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status())?.[1]);
  const rarely = { heartbeat_ms: 600_000 };
  const [first, afterStep] = measured((await run(t, fakeCore(), rarely)).received);
  t.match([first, afterStep], [{ step: 0 }, { step: 1 }], 'one follows the first step');
  if (process.platform === 'linux') {
    const share = (afterStep?.memory_bytes ?? 0) / 1024 / kilobytes('VmRSS');
    t.ok(share > 0.5 && share < 2, `${share} of what the kernel tells`);
  }
  const core = { ...fakeCore(), cudaDevices: () => [{ uuid: 'GPU-1', fingerprint: 'fake-gpu/1' }] };
  const gpu = measured((await run(t, core, { ...rarely, device: 'cuda' })).received);
  const numel = fakeParamTable().reduce((sum, param) => sum + param.numel, 0);
  t.strictSame(
    gpu.map(({ memory_bytes }) => memory_bytes),
    [0, 4 * numel],
  );
  t.same([first?.gpu_busy, gpu.at(-1)?.gpu_busy], [null, 0.5], 'only a GPU is measured as one');
});

t.test(
  'a rank on the CPU binds to the NUMA node of its local number before it creates its trainer',
  async (t) => {
    const calls: unknown[] = [];
    const core = {
      ...fakeCore(),
      stayOnNode: (...node: number[]) => calls.push(node) > 0,
      createTrainer: () => {
        calls.push('trainer');
        throw new Error('scripted end');
      },
    };
    await run(t, core, { rank: 5, world_size: 8, local_ranks: 4, threads: 3 });
    t.strictSame(calls, [[1, 4, 3], 'trainer']);
    calls.length = 0;
    await run(t, core, { device: 'cuda' });
    t.notOk(calls.some(Array.isArray), 'a GPU rank is not bound');
  },
);
