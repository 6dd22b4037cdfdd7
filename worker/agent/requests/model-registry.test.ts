import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import { GPU_RESERVE_BYTES } from '../../../job-document/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { deferred } from '../../shared/deferred.js';
import type { ServeMessage } from '../../tasks/protocol.js';
import { GpuPool } from '../gpus/gpu-pool.js';
import { ModelProcessLost } from './model-process.js';
import { ModelRegistry } from './model-registry.js';
import type { Placement } from './placement.js';

const GIB = 2 ** 30;
const placement = (key: string) => ({ process_key: key, variant_key: key, source: {} }) as Placement;

/** A process that the test lets speak and end. */
interface FakeProcess {
  gpu: string | null;
  free_bytes: number | null;
  send(message: ServeMessage): void;
  fail(error: unknown): void;
}

function setup(t: Test, gpus: GpuPool | null = null) {
  const processes = new Map<string, FakeProcess>();
  let changes = 0;
  const models = new ModelRegistry({
    gpus,
    silence_ms: 60_000,
    onChange: () => {
      changes += 1;
    },
    run: (context, gpu, signal, { onStart, onMessage }) => {
      const ended = deferred<never>();
      signal.addEventListener('abort', () => ended.reject(signal.reason));
      onStart(() => undefined);
      processes.set(context.process_key, {
        gpu: gpu?.uuid ?? null,
        free_bytes: gpu?.free_bytes ?? null,
        send: onMessage,
        fail: ended.reject,
      });
      return ended.promise;
    },
  });
  // A process that is not ended is watched for a minute.
  t.teardown(() => models.close());
  const load = async (key: string, bytes: number) => {
    const model = models.find(placement(key));
    while (!processes.has(key)) await turn();
    processes.get(key)?.send({ event: 'loaded', bytes });
    await model.loaded;
    return model;
  };
  return { models, processes, load, changes: () => changes };
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
  const { models, processes, load } = setup(t);
  const first = models.find(placement('a'));
  const second = models.find(placement('b'));
  t.equal(models.find(placement('a')), first);
  await turn();
  t.strictSame([...processes.keys()], ['a']);
  processes.get('a')?.fail(new ZerofleetError('model_not_found', 'gone'));
  await t.rejects(first.loaded, { code: 'model_not_found' });
  t.equal(await load('b', 7), second);
  t.equal(models.cpuBytes, 7);
  processes.delete('a');
  await load('a', 5);
  t.equal(models.cpuBytes, 12, 'one that failed is loaded again');
  await models.close();
  t.equal(models.cpuBytes, 0);
});

t.test('the model that was not used for the longest time makes room; one in use does not', async (t) => {
  const { models, processes, load } = setup(t);
  const [a, b, c] = [await load('a', 1), await load('b', 2), await load('c', 4)];
  [b.usedAt, a.usedAt, c.usedAt] = [1, 2, 3];
  const using = b.withVariant(
    {
      variant_key: 'b',
      source: {} as never,
      is_adapter: false,
      adapter_bytes: 0,
      withCredentials: (use) => use(null),
    },
    new AbortController().signal,
    () => new Promise<never>(() => undefined),
  );
  t.ok(await models.makeRoom(c));
  t.equal(models.cpuBytes, 6, 'a is gone');
  t.notOk(await models.makeRoom(c), 'b is in use, and c keeps its own place');
  t.ok(await models.makeRoom(b));
  t.equal(models.cpuBytes, 2);
  processes.get('b')?.fail(new Error('killed'));
  await t.rejects(using, ModelProcessLost);
});

t.test('models that were not used for long are unloaded', async (t) => {
  const { models, load } = setup(t);
  const old = await load('a', 1);
  await load('b', 2);
  old.usedAt = performance.now() - 1_000_000;
  models.unloadUnused(500_000);
  await old.ended;
  t.equal(models.cpuBytes, 2);
});

t.test('a model gets the GPU with most memory left, which is not memory of the machine', async (t) => {
  const { models, processes, load } = setup(t, gpuPool(40, 80));
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
  t.equal(models.cpuBytes, 0);
  await models.close();
});

t.test('a GPU that fails a model is not used again; without any, models are refused', async (t) => {
  const gpus = gpuPool(40, 80);
  const { models, processes, load } = setup(t, gpus);
  const failure = new ZerofleetError('gpu_memory_fault', 'an uncorrectable ECC error');
  for (const key of ['a', 'b']) {
    const model = await load(key, 1);
    processes.get(key)?.fail(failure);
    await model.ended;
  }
  t.match(gpus.gpus, [{ problem: /uncorrectable/ }, { problem: /uncorrectable/ }]);
  await t.rejects(models.find(placement('c')).loaded, {
    code: 'device_unavailable',
    message: /uncorrectable/,
  });
});

t.test(
  'adapters count on the GPU of their model; unused ones make room, then models of this GPU',
  async (t) => {
    const { models, processes, load } = setup(t, gpuPool(40, 80));
    await load('a', 70 * GIB);
    await load('b', 30 * GIB);
    await load('c', 5 * GIB);
    const [a, c] = [models.find(placement('a')), models.find(placement('c'))];
    t.equal(processes.get('c')?.gpu, 'gpu-0');
    const use = (model: typeof a, key: string, adapterBytes: number) =>
      model.withVariant(
        {
          variant_key: key,
          source: {} as never,
          is_adapter: true,
          adapter_bytes: adapterBytes,
          withCredentials: (run) => run(null),
        },
        new AbortController().signal,
        async () => key,
      );
    const first = use(a, 'first', 4 * GIB);
    await turn();
    await t.rejects(use(a, 'second', 6 * GIB), { code: 'model_memory_in_use' });
    processes.get('a')?.send({ event: 'variant_loaded', variant: 1, bytes: 4 * GIB });
    await first;
    const room = models.makeRoom(a);
    processes.get('a')?.send({ event: 'variant_unloaded', variant: 1 });
    t.ok(await room);
    t.notOk(await models.makeRoom(a), 'models of another GPU stay');
    t.ok(await models.makeRoom(c), 'b is unloaded');
    await t.rejects(use(a, 'third', 100 * GIB), { code: 'model_does_not_fit' });
    await models.close();
  },
);
