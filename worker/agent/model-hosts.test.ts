import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import { GPU_RESERVE_BYTES } from '../../job-document/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { deferred } from '../shared/deferred.js';
import type { HostMessage } from '../tasks/protocol.js';
import { GpuPool } from './gpus/gpu-pool.js';
import { HostLost } from './hosted-model.js';
import { ModelHosts } from './model-hosts.js';
import type { Placement } from './placement.js';

const GIB = 2 ** 30;
const placement = (key: string) => ({ host_key: key, variant_key: key, source: {} }) as Placement;

/** A process that the test lets speak and end. */
interface Played {
  gpu: string | null;
  free_bytes: number | null;
  say(message: HostMessage): void;
  fail(error: unknown): void;
}

function setup(gpus: GpuPool | null = null) {
  const processes = new Map<string, Played>();
  let changes = 0;
  const hosts = new ModelHosts({
    gpus,
    silence_ms: 60_000,
    onChange: () => {
      changes += 1;
    },
    run: (of, gpu, signal, { onStart, onMessage }) => {
      const ended = deferred<never>();
      signal.addEventListener('abort', () => ended.reject(signal.reason));
      onStart(() => undefined);
      processes.set(of.host_key, {
        gpu: gpu?.uuid ?? null,
        free_bytes: gpu?.free_bytes ?? null,
        say: onMessage,
        fail: ended.reject,
      });
      return ended.promise;
    },
  });
  const load = async (key: string, bytes: number) => {
    const model = hosts.find(placement(key));
    while (!processes.has(key)) await turn();
    processes.get(key)?.say({ host: 'loaded', bytes });
    await model.loaded;
    return model;
  };
  return { hosts, processes, load, changes: () => changes };
}

const gpuPool = (...sizes: number[]) =>
  new GpuPool({
    limit: null,
    log: createLogger({ level: 'silent', name: 'test' }),
    found: sizes.map((gib, index) => ({
      uuid: `gpu-${index}`,
      name: 'A GPU',
      memory_bytes: gib * GIB,
      driver: '580',
      problem: null,
      numerics: 'cuda-a/1',
    })),
  });

t.test('models are loaded one after the other, each once', async (t) => {
  const { hosts, processes, load } = setup();
  const first = hosts.find(placement('a'));
  const second = hosts.find(placement('b'));
  t.equal(hosts.find(placement('a')), first);
  await turn();
  t.strictSame([...processes.keys()], ['a']);
  processes.get('a')?.fail(new ZerofleetError('model_not_found', 'gone'));
  await t.rejects(first.loaded, { code: 'model_not_found' });
  t.equal(await load('b', 7), second);
  t.equal(hosts.cpu_bytes, 7);
  processes.delete('a');
  await load('a', 5);
  t.equal(hosts.cpu_bytes, 12, 'one that failed is loaded again');
  await hosts.close();
  t.equal(hosts.cpu_bytes, 0);
});

t.test('the model that was not used for the longest time makes room; one in use does not', async (t) => {
  const { hosts, processes, load } = setup();
  const [a, b, c] = [await load('a', 1), await load('b', 2), await load('c', 4)];
  [b.used_at, a.used_at, c.used_at] = [1, 2, 3];
  const using = b.withVariant(
    {
      variant_key: 'b',
      source: {} as never,
      over: false,
      adapter_bytes: 0,
      withCredentials: (use) => use(null),
    },
    new AbortController().signal,
    () => new Promise<never>(() => undefined),
  );
  t.ok(await hosts.makeRoom(c));
  t.equal(hosts.cpu_bytes, 6, 'a is gone');
  t.notOk(await hosts.makeRoom(c), 'b is in use, and c keeps its own place');
  t.ok(await hosts.makeRoom(b));
  t.equal(hosts.cpu_bytes, 2);
  processes.get('b')?.fail(new Error('killed'));
  await t.rejects(using, HostLost);
});

t.test('models that were not used for long are unloaded', async (t) => {
  const { hosts, load } = setup();
  const old = await load('a', 1);
  await load('b', 2);
  old.used_at = performance.now() - 1_000_000;
  hosts.unloadUnused(500_000);
  await old.ended;
  t.equal(hosts.cpu_bytes, 2);
});

t.test('a model gets the GPU with most memory left, which is not memory of the machine', async (t) => {
  const { hosts, processes, load } = setup(gpuPool(40, 80));
  await load('a', 50 * GIB);
  await load('b', 5 * GIB);
  await load('c', 1);
  t.same(
    [...processes.values()].map(({ gpu, free_bytes }) => [gpu, (free_bytes ?? 0) + GPU_RESERVE_BYTES]),
    [
      ['gpu-1', 80 * GIB],
      ['gpu-0', 40 * GIB],
      ['gpu-0', 35 * GIB],
    ],
  );
  t.equal(hosts.cpu_bytes, 0);
  await hosts.close();
});

t.test('a GPU that fails a model is not used again; without any, models are refused', async (t) => {
  const gpus = gpuPool(40, 80);
  const { hosts, processes, load } = setup(gpus);
  const failure = new ZerofleetError('gpu_memory_fault', 'an uncorrectable ECC error');
  for (const key of ['a', 'b']) {
    const model = await load(key, 1);
    processes.get(key)?.fail(failure);
    await model.ended;
  }
  t.match(gpus.gpus, [{ problem: /uncorrectable/ }, { problem: /uncorrectable/ }]);
  await t.rejects(hosts.find(placement('c')).loaded, {
    code: 'device_unavailable',
    message: /uncorrectable/,
  });
});

t.test(
  'adapters count on the GPU of their model; unused ones make room, then models of this GPU',
  async (t) => {
    const { hosts, processes, load } = setup(gpuPool(40, 80));
    await load('a', 70 * GIB);
    await load('b', 30 * GIB);
    await load('c', 5 * GIB);
    const [a, c] = [hosts.find(placement('a')), hosts.find(placement('c'))];
    t.equal(processes.get('c')?.gpu, 'gpu-0');
    const use = (model: typeof a, key: string, adapter_bytes: number) =>
      model.withVariant(
        {
          variant_key: key,
          source: {} as never,
          over: true,
          adapter_bytes,
          withCredentials: (run) => run(null),
        },
        new AbortController().signal,
        async () => key,
      );
    const first = use(a, 'first', 4 * GIB);
    await turn();
    await t.rejects(use(a, 'second', 6 * GIB), { code: 'model_memory_in_use' });
    processes.get('a')?.say({ host: 'variant', variant: 1, bytes: 4 * GIB });
    await first;
    const room = hosts.makeRoom(a);
    processes.get('a')?.say({ host: 'forgotten', variant: 1 });
    t.ok(await room);
    t.notOk(await hosts.makeRoom(a), 'models of another GPU stay');
    t.ok(await hosts.makeRoom(c), 'b is unloaded');
    await t.rejects(use(a, 'third', 100 * GIB), { code: 'model_does_not_fit' });
    await hosts.close();
  },
);
