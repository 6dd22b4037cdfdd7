import t from 'tap';
import type { CudaDevice, Gpu, NativeCore } from '../shared/native/adapter.js';
import { fakeCore } from '../testing/fake-core.js';
import { inspectMachine, visible } from './inspect-machine.js';

const LISTED = [
  { index: 0, uuid: 'GPU-aaaa0000' },
  { index: 1, uuid: 'GPU-bbbb0000' },
  { index: 2, uuid: 'GPU-bbbb1111' },
  { index: 3, uuid: null },
];

const indexes = (value: string | undefined) => visible(LISTED, value).map(({ index }) => index);

t.test('CUDA_VISIBLE_DEVICES is read as CUDA reads it', async (t) => {
  t.same(indexes(undefined), [0, 1, 2, 3]);
  t.same(indexes(''), []);
  t.same(indexes('2,0'), [2, 0]);
  t.same(indexes('GPU-bbbb1,GPU-aaaa0000'), [2, 0], 'prefixes of UUIDs');
  t.same(indexes('1, 0'), [1, 0]);
  t.same(indexes('1,7,0'), [1], 'up to the first unknown device');
  t.same(indexes('-1,0'), []);
  t.same(indexes('GPU-'), [], 'an ambiguous prefix selects none');
});

function gpu(index: number, uuid: string | null, problem: string | null = null): Gpu {
  const sizes = { memory_bytes: 1024, free_bytes: 512 };
  const versions = { compute_capability: '9.0', driver: '580', cuda_driver: '13.1' };
  return { index, uuid, name: 'A GPU', ...sizes, ...versions, problem };
}

function core(gpus: Gpu[], devices: CudaDevice[] | null): NativeCore {
  return { ...fakeCore(), gpus: () => gpus, cudaDevices: () => devices };
}

t.test('the reports of the driver and of CUDA are combined', async (t) => {
  const here = core(
    [gpu(0, 'GPU-a'), gpu(1, 'GPU-b'), gpu(2, 'GPU-c', 'it is lost'), gpu(3, null, 'no handle')],
    [{ uuid: 'GPU-a', fingerprint: 'cuda-a/1' }],
  );
  const report = inspectMachine(here, { gpus: true, cuda: true });
  t.equal(report.has_cuda, true);
  t.equal(report.num_cuda_devices, 1);
  t.equal(report.cpu_numerics, 'fake/1');
  t.same(
    report.gpus.map(({ uuid, numerics, problem }) => [uuid, numerics, problem]),
    [
      ['GPU-a', 'cuda-a/1', null],
      ['GPU-b', null, 'CUDA does not list it'],
      ['GPU-c', null, 'it is lost'],
      ['index-3', null, 'no handle'],
    ],
  );
  const later = inspectMachine(here, { gpus: true, cuda: false });
  t.same(
    later.gpus.map(({ problem }) => problem),
    [null, null, 'it is lost', 'no handle'],
    'the driver alone',
  );
  t.equal(later.num_cuda_devices, null);
});

t.test('a driver that is too old for the CUDA runtime is the reason why CUDA lists no GPU', async (t) => {
  const problem = 'the driver supports CUDA up to 12.2, and this build has the runtime of CUDA 13.0';
  const here = { ...core([gpu(0, 'GPU-a')], []), cudaProblem: () => problem };
  const report = inspectMachine(here, { gpus: true, cuda: true });
  t.equal(report.cuda_problem, problem);
  t.equal(report.gpus[0]?.problem, `CUDA does not list it: ${problem}`);
  t.equal(inspectMachine(here, { gpus: true, cuda: false }).cuda_problem, null);
});

t.test('an agent on the CPU queries no GPU', async (t) => {
  const fails = core([], []);
  fails.gpus = () => {
    throw new Error('asked');
  };
  t.same(inspectMachine(fails, { gpus: false, cuda: false }).gpus, []);
});
