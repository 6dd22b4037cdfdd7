import t from 'tap';
import { gpuRankBytes, offloadedBytes } from '../../job-document/index.js';
import { testSpec } from '../../state/testing/jobs.js';
import { testGpu, testWorker } from '../../state/testing/workers.js';
import { budgetOf, misfitOf } from './gpu-fit.js';

const spec = testSpec(`ds_${'0'.repeat(26)}`, { resources: { ranks: { min: 1, max: 2, preferred: 1 } } });
const need = gpuRankBytes(spec, 2);
const worker = (...memories: number[]) =>
  testWorker('a', memories.length, {
    gpus: memories.map((memoryBytes, i) => testGpu(`GPU-${i}`, { memory_bytes: memoryBytes })),
  });

t.test('a job is refused only if all workers have GPUs', async (t) => {
  const small = worker(need - 1, need - 1);
  t.equal(misfitOf(spec, []), null, 'no worker');
  t.equal(misfitOf(spec, [small, testWorker('b', 1)]), null, 'a CPU worker accepts any job');
  t.match(misfitOf(spec, [small, testWorker('b', 1, { draining: true })]), { code: 'insufficient_memory' });
  t.equal(misfitOf(spec, [{ ...small, draining: true }]), null);
  t.equal(misfitOf(spec, [worker(need, need)]), null);
});

t.test('unhealthy GPUs do not count', async (t) => {
  const healthy = worker(need, need);
  t.equal(misfitOf(spec, [healthy]), null);
  const hot = healthy.gpus.map((gpu) => ({ ...gpu, problem: 'hot' }));
  t.equal(misfitOf(spec, [{ ...healthy, gpus: hot }]), null, 'no healthy GPU is left to compare with');
  t.match(misfitOf(spec, [{ ...healthy, gpus: hot }, worker(2 ** 20)]), { code: 'insufficient_memory' });
});

t.test('offloaded state must fit into host memory', async (t) => {
  const offloading = { ...spec, zero: { ...spec.zero, offload: 'cpu' as const } };
  const bytesOn = (ranks: number) => offloadedBytes(offloading, ranks, 0);
  t.ok(bytesOn(1) > bytesOn(2) && bytesOn(2) > 0);
  const hosts = (...memories: number[]) =>
    memories.map((memoryBytes, i) => ({ ...worker(need), id: `w${i}`, memory_bytes: memoryBytes }));
  t.equal(misfitOf(offloading, hosts(bytesOn(1))), null);
  t.equal(misfitOf(offloading, hosts(bytesOn(1) - 1)), null, 'a second host may register');
  t.match(misfitOf(offloading, hosts(bytesOn(2) - 1)), {
    code: 'insufficient_memory',
    message: /each of 2 ranks keeps .* in the memory of its host.*what would help/,
    details: { world_size: 2, bytes: bytesOn(2), host_memory_bytes: bytesOn(2) - 1 },
  });
  t.equal(misfitOf(offloading, hosts(bytesOn(2), bytesOn(2))), null, 'on two hosts each has half of it');
  t.match(misfitOf(offloading, hosts(bytesOn(2), bytesOn(2) - 1)), { code: 'insufficient_memory' });
  t.equal(misfitOf(spec, hosts(1)), null, 'without offload nothing lies there');
});

t.test('the message has the numbers and the remedies', async (t) => {
  const misfit = misfitOf(spec, [worker(2 ** 30, 2 ** 29)]);
  t.match(
    misfit?.message,
    /^each of 2 ranks needs 1\.\d\d GiB .* the GPUs of pool default have 1\.00 GiB; what/,
  );
  t.match(misfit?.message, /what would help: a smaller model, or larger GPUs$/);
  t.match(misfit?.details, { world_size: 2, bytes: need, gpu_memory_bytes: 2 ** 30, remedies: [] });
});

t.test('the memory that a rank has on any worker', async (t) => {
  const GIB = 2 ** 30;
  const host = (id: string, memoryBytes: number, more = {}) =>
    testWorker(id, 2, { memory_bytes: memoryBytes, ...more });
  t.equal(budgetOf([]), null);
  t.equal(budgetOf([host('a', GIB, { draining: true })]), null);
  const share = (bytes: number) => ({ device: 'cpu', bytes: bytes / 2 - GIB / 4 });
  t.same(budgetOf([host('a', 8 * GIB), host('b', 4 * GIB)]), share(4 * GIB), 'the smallest share of a slot');
  t.same(budgetOf([worker(80 * GIB, 40 * GIB)]), { device: 'cuda', bytes: 39 * GIB });
  t.same(budgetOf([worker(80 * GIB), host('b', 4 * GIB)]), share(4 * GIB), 'a rank may be one of a CPU');
  const hot = { ...worker(GIB), gpus: [testGpu('GPU-0', { problem: 'hot' })] };
  t.equal(budgetOf([hot]), null);
});
