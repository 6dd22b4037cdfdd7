import t from 'tap';
import { createLogger } from '../../../platform/logging/logging.js';
import type { MachineGpu } from '../../tasks/inspect-machine.js';
import { GpuPool } from './gpu-pool.js';

const log = createLogger({ level: 'silent', name: 'test' });
const MINUTE_MS = 60_000;

function gpu(uuid: string, problem: string | null = null, numerics: string | null = 'cuda-a/1'): MachineGpu {
  return { uuid, name: 'A GPU', memory_bytes: 1024, driver: '580', problem, numerics };
}

function pool(found: MachineGpu[], limit: number | null = null) {
  const clock = { ms: 0 };
  const gpus = new GpuPool({ found, limit, log, now: () => clock.ms });
  const problems = () => gpus.gpus.map(({ problem }) => problem);
  return { gpus, clock, problems };
}

t.test('each rank takes a GPU of its own and releases it', async (t) => {
  const { gpus } = pool([gpu('a'), gpu('b', 'broken'), gpu('c')]);
  t.equal(gpus.slots, 2);
  t.equal(gpus.take()?.uuid, 'a');
  t.equal(gpus.take()?.uuid, 'c');
  t.equal(gpus.take(), null);
  gpus.release('a', null);
  t.equal(gpus.slots, 2);
  t.equal(gpus.take()?.uuid, 'a');
});

t.test('a spare GPU replaces one that fails', async (t) => {
  const { gpus } = pool([gpu('a'), gpu('b'), gpu('c')], 2);
  t.equal(gpus.slots, 2);
  gpus.observe([gpu('a', 'broken'), gpu('b'), gpu('c')]);
  t.equal(gpus.slots, 2);
  gpus.observe([gpu('a', 'broken'), gpu('b', 'broken'), gpu('c')]);
  t.equal(gpus.slots, 1);
});

t.test(
  'a GPU on which a rank failed is unhealthy at once, and used again after the quarantine',
  async (t) => {
    const { gpus, clock, problems } = pool([gpu('a'), gpu('b')]);
    let changes = 0;
    let faults = 0;
    gpus.onChange(() => {
      changes += 1;
    });
    gpus.onFault(() => {
      faults += 1;
    });
    t.equal(gpus.take()?.uuid, 'a');
    gpus.release('a', 'gpu_lost');
    t.same([gpus.slots, changes, faults], [1, 1, 1]);
    t.same(problems(), ['a rank failed on it: gpu_lost', null]);
    t.equal(gpus.take()?.uuid, 'b');
    clock.ms = 9 * MINUTE_MS;
    gpus.observe([gpu('a'), gpu('b')]);
    t.equal(gpus.slots, 1);
    t.equal(changes, 1, 'no change, no notification');
    clock.ms = 10 * MINUTE_MS;
    gpus.observe([gpu('a'), gpu('b')]);
    t.equal(gpus.slots, 2);
    t.same(problems(), [null, null]);
    t.equal(changes, 2);
  },
);

t.test('inspection results apply, also to a GPU with a rank', async (t) => {
  const { gpus, problems } = pool([gpu('a'), gpu('b')]);
  gpus.take();
  gpus.observe([gpu('a', '3 memory errors', null), gpu('new', null, null)]);
  t.same(problems(), ['3 memory errors', 'the driver does not list it any more']);
  t.equal(gpus.slots, 0);
  gpus.release('a', null);
  t.equal(gpus.take(), null);
  gpus.observe([gpu('a', null, null), gpu('b', null, null)]);
  t.equal(gpus.slots, 2, 'it is used again after a reset');
});

t.test('the GPUs of one worker compute the same bits', async (t) => {
  const { gpus, problems } = pool([gpu('a', null, 'cuda-b/1'), gpu('b'), gpu('c'), gpu('d', 'broken', null)]);
  t.equal(gpus.numerics, 'cuda-a/1');
  t.equal(gpus.slots, 2);
  t.match(problems()[0], /computes as cuda-b\/1, and the other GPUs of this worker as cuda-a\/1/);
  t.same(problems().slice(1), [null, null, 'broken']);
});
