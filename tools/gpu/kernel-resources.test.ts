import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';

const hasTools =
  spawnSync('python3', ['--version']).status === 0 && spawnSync('c++', ['--version']).status === 0;
const skip = hasTools ? false : 'python3 or a compiler is not installed';

interface Kernel {
  kernel: string;
  arch: number;
  registers: number;
  may_spill: boolean;
  threads: number;
  shared_bytes: number;
  dynamic_shared_bytes: number;
  blocks_per_multiprocessor: number | null;
}

// nvcc names the unnamed namespace of a source after its file.
const UNNAMED = '_GLOBAL__N__5f1e3a2c_24_attention_mma_forward_cu_1';
const FORWARD = `_ZN9zerofleet4cuda${UNNAMED.length}${UNNAMED}18mma_forward_kernelINS_4bf16ELi128EEEvv`;
const PLAIN = '_ZN9zerofleet4cuda12_GLOBAL__N_120plain_forward_kernelIfLi2EEEvv';

// Host code of FORWARD's launch: its object has the symbol that native/kernels/common/cuda/dynamic_shared.cuh makes.
const LAUNCH = `
namespace zerofleet { struct bf16 {}; namespace cuda {
template <auto* kKernel, unsigned long kNumBytes>
[[gnu::noinline]] void allow_dynamic_shared(const char*) { kKernel(); }
namespace { template <class T, int kWidth> void mma_forward_kernel() {} }
void launch() { allow_dynamic_shared<mma_forward_kernel<bf16, 128>, 69632>("attention"); }
} }`;

/** Output of ptxas -v about one kernel. */
function about(symbol: string, arch: string, registers: number, spills: number, used = ''): string {
  return `ptxas info    : Compiling entry function '${symbol}' for '${arch}'
ptxas info    : Function properties for ${symbol}
    ${spills} bytes stack frame, ${spills} bytes spill stores, ${2 * spills} bytes spill loads
ptxas info    : Used ${registers} registers, used 1 barriers${used}\n`;
}

async function python(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return promisify(execFile)('python3', args).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

async function folder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'zf-kernel-resources-'));
  t.teardown(() => rm(path, { recursive: true }));
  return path;
}

/** Runs the program on a build with this output of ptxas and this host code. `kernels` is empty if it made no table. */
async function resources(t: Test, log: string, source = LAUNCH) {
  const build = await folder(t);
  await mkdir(join(build, 'objects'));
  await writeFile(join(build, 'objects', 'a.cu.o.ptxas'), log);
  await writeFile(join(build, 'a.cc'), source);
  await promisify(execFile)('c++', [
    '-std=c++20',
    '-c',
    '-o',
    join(build, 'objects', 'a.cu.o'),
    join(build, 'a.cc'),
  ]);
  const done = await python(join(projectRoot(), 'tools', 'gpu', 'kernel_resources.py'), build);
  const table = await readFile(join(build, 'kernel-resources.json'), 'utf8').catch(() => '[]');
  const kernels = JSON.parse(table) as Kernel[];
  return { ...done, kernels };
}

t.test(
  'a kernel is described for each architecture, with its blocks per multiprocessor',
  { skip },
  async (t) => {
    const log = about(FORWARD, 'sm_80', 255, 0) + about(FORWARD, 'sm_90a', 168, 0, ', 2048 bytes smem');
    const { code, kernels, stdout } = await resources(t, log + about(PLAIN, 'sm_80', 33, 8));
    t.equal(code, 0, 'attention without tensor cores may spill');
    t.match(kernels, [
      {
        kernel: 'mma_forward_kernel<bf16, 128>',
        arch: 80,
        registers: 255,
        threads: 128,
        dynamic_shared_bytes: 69632,
        blocks_per_multiprocessor: 2, // by registers, and by shared memory
      },
      { arch: 90, shared_bytes: 2048, blocks_per_multiprocessor: 3 }, // 12 warps fit; 72 KiB of 228
      {
        kernel: 'plain_forward_kernel<float, 2>',
        threads: 256,
        may_spill: true,
        blocks_per_multiprocessor: 6,
      }, // 48 warps of 40 registers
    ]);
    t.match(stdout, '| `mma_forward_kernel<bf16, 128>` | 80 | 255 | 0 / 0 | 128 | 69632 | 2 |');
    t.match(stdout, '| `plain_forward_kernel<float, 2>` | 80 | 33 | 8 / 16 |');
  },
);

t.test('a build whose launches are not those of its kernels has no table', { skip }, async (t) => {
  const unknown = await resources(t, about(PLAIN, 'sm_80', 33, 8));
  t.match(unknown, { code: 1, kernels: [] });
  t.match(unknown.stderr, 'launches of kernels that ptxas did not report: mma_forward_kernel<bf16, 128>');
  const none = await resources(t, about(FORWARD, 'sm_80', 255, 0), '');
  t.match(none, { code: 1, kernels: [] });
  t.match(none.stderr, 'has no launch with dynamic shared memory');
});

t.test('any other kernel that spills is an error', { skip }, async (t) => {
  const { code, stderr } = await resources(t, about(FORWARD, 'sm_90', 255, 12));
  t.equal(code, 1);
  t.match(
    stderr,
    'mma_forward_kernel<bf16, 128> spills registers for sm_90: 12 bytes of stores, 24 bytes of loads',
  );
});

t.test('the compiler launcher keeps the figures, and passes on everything else', { skip }, async (t) => {
  const path = await folder(t);
  const nvcc = join(path, 'nvcc');
  const text = `${about(FORWARD, 'sm_80', 255, 0)}a.cu(3): warning: unused\n`;
  await writeFile(nvcc, `#!/bin/sh\ncat >&2 <<'END'\n${text}END\nexit $FAKE_CODE\n`);
  await chmod(nvcc, 0o755);
  const launcher = join(projectRoot(), 'native', 'cmake', 'ptxas_log.py');
  const run = (code: string, object: string) =>
    python(
      '-c',
      `import os, sys; os.execve(sys.executable, [sys.executable, *sys.argv[1:]], {**os.environ, "FAKE_CODE": "${code}"})`,
      launcher,
      nvcc,
      '-c',
      'a.cu',
      '-o',
      join(path, object),
    );
  const done = await run('0', 'a.o');
  t.match(done, { code: 0, stderr: /^a\.cu\(3\): warning: unused\n$/ });
  t.equal(await readFile(join(path, 'a.o.ptxas'), 'utf8'), about(FORWARD, 'sm_80', 255, 0));
  t.equal((await run('3', 'b.o')).code, 3);
  await t.rejects(readFile(join(path, 'b.o.ptxas')), { code: 'ENOENT' });
});
