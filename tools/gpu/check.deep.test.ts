// The GPU check without its build: stand-in programs produce the output of a GPU machine.
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import {
  buildFolder,
  check,
  checkArgs,
  DIGESTS,
  environment,
  resultIn,
  root,
  script,
  skip,
} from './testing/fake-build.js';

const schemaOf = async () =>
  new Ajv2020({ strict: false }).compile(
    JSON.parse(await readFile(join(root, 'bench', 'results', 'result.schema.json'), 'utf8')) as object,
  );

t.test('a check reports passed, failed and skipped stages', { skip }, async (t) => {
  const folder = await buildFolder(
    t,
    `${DIGESTS}\nprint(json.dumps({"part": "copy", "bytes_per_second": 1e9}))`,
  );
  const { code, stdout, result } = await check(folder, '--stage', 'tests,exact,kernels,training,sanitizer');
  const validate = await schemaOf();
  t.ok(validate(result), JSON.stringify(validate.errors));
  t.equal(code, 1, 'a failed stage fails the check');
  t.equal(result.device, 'emulated');
  const [devices] = result.stages.tests ?? [];
  t.match(devices, {
    status: 'failed',
    cases: { passed: 2, failed: 1, skipped: 4 },
    failed_cases: ['sums are exact'],
  });
  t.match(result.stages.exact?.at(-1), { status: 'passed', equal: true, compared: 1 });
  t.match(
    [...(result.stages.kernels ?? []), ...(result.stages.training ?? [])].map(
      ({ name, status }) => `${name} ${status}`,
    ),
    [
      'kernels: gpt2-tiny passed',
      'kernels: llama-tiny passed',
      'training: gpt2-tiny passed',
      'PyTorch: gpt2-tiny not_run',
    ],
  );
  t.match(result.stages.sanitizer, [{ status: 'not_run', why: 'there is no GPU' }]);
  t.match(stdout, /NOT RUN +build: not asked for/);
  t.match(stdout, /There was no GPU/);
});

t.test('digests that differ between two runs fail, and so do timeouts', { skip }, async (t) => {
  const folder = await buildFolder(
    t,
    `if args[0] == "exact":
  print(json.dumps({"part": "digests", "family": "gpt2", "digests": [str(time.time_ns())], "equal": True}))
else:
  print(json.dumps({"part": "copy"}), flush=True)
  if args[0] == "kernels": time.sleep(600)`,
  );
  const exact = await check(folder, '--stage', 'exact');
  t.match(exact.result.stages.exact?.at(-1), { status: 'failed', equal: false, why: 'they differ' });
  t.equal(exact.code, 1);
  const slow = await check(folder, '--stage', 'kernels', '--config', 'gpt2-tiny', '--limit', '8');
  t.match(slow.result.stages.kernels?.[0], { status: 'timed_out', measurements: [{ part: 'copy' }] });
  t.same(slow.files, exact.files, 'stages of one day and commit share one file');
  t.ok(slow.result.stages.exact, 'earlier stages are kept');
});

t.test('programs that were not built are not run', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'zf-gpu-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const { code, result } = await check(folder, '--stage', 'tests,training');
  t.match(result.stages.tests, [{ status: 'not_run', why: /not built/ }]);
  t.match(result.stages.training, [{ status: 'not_run', why: /not built/ }]);
  t.equal(code, 0);
});

t.test('after a failed build nothing of an earlier one is tested', { skip }, async (t) => {
  const folder = await buildFolder(t, DIGESTS);
  const { code, result } = await check(folder, '--stage', 'build,exact', '--cmake=-Gnonsense');
  t.equal(code, 1);
  t.match(result.stages.build, [{ name: 'configure', status: 'failed' }]);
  t.notOk(result.stages.exact);
});

t.test("a result's row goes into the table of bench/results/README.md once", { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'zf-gpu-table-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const document = join(folder, 'README.md'),
    file = join(folder, 'result.json');
  await copyFile(join(root, 'bench', 'results', 'README.md'), document);
  const step = { name: 'all cases', status: 'passed', cases: { passed: 7, failed: 0, skipped: 1 } };
  const result = {
    date: '2030-01-02',
    commit: 'abc',
    device: 'Test GPU',
    machine: { gpus: [{}] },
    stages: { tests: [step] },
  };
  const add = () => promisify(execFile)('python3', [script('table.py'), file, '--document', document]);
  await writeFile(file, JSON.stringify(result));
  await add();
  await add();
  const rows = (await readFile(document, 'utf8'))
    .split('\n')
    .filter((line) => line.startsWith('| Test GPU '));
  t.same(rows, ['| Test GPU | 2030-01-02 | abc | tests: all cases: 7 passed, 0 failed |']);
  await writeFile(file, JSON.stringify({ ...result, device: 'emulated' }));
  await t.rejects(add(), { message: /no GPU/ });
});

const CASES = [
  '{"part": "training", "config": "gpt2-tiny", "family": "gpt2", "layers": 2, "params": 1000, "leaves": 2, "sequence_length": 32, "tokens_per_step": 128, "operations_per_token": 6000}',
  ...[
    ...['qkv.forward', 'qkv.dx', 'qkv.dw', 'attention_out.forward', 'attention_out.dx', 'attention_out.dw'],
    ...['mlp_in_gelu.forward', 'mlp_in.dx', 'mlp_in.dw', 'mlp_out.forward', 'mlp_out_gelu.dx', 'mlp_out.dw'],
    ...[
      'attention.forward',
      'attention.backward',
      'layernorm.forward',
      'layernorm.backward',
      'bias_gradient',
    ],
    ...['head.forward', 'head.dx', 'head.dw', 'cross_entropy', 'loss_head', 'embedding.forward'],
    'embedding.backward',
  ].map(
    (op) =>
      `{"part": "case", "config": "gpt2-tiny", "op": "${op}", "shape": "${op.startsWith('attention.') ? '4 × 32 × 2 × 32' : '64 × 64 × 64'}", "bytes": 9600000, "operations": 0}`,
  ),
];

t.test('what was measured stands beside what was predicted, and outliers are marked', { skip }, async (t) => {
  const folder = await buildFolder(
    t,
    `if args[0] == "cases": print(${JSON.stringify(CASES.join('\n'))})
if args[0] == "kernels":
  print(json.dumps({"part": "copy"}))
  for op, microseconds in (("bias_gradient", 5.0), ("layernorm.forward", 50.0), ("no_case", 1.0)):
    print(json.dumps({"part": "kernel", "config": "gpt2-tiny", "op": op, "shape": "64 × 64", "microseconds": microseconds}))
if args[0] == "train":
  print(json.dumps({"part": "copy"}))
  print(json.dumps({"part": "train", "config": "gpt2-tiny", "tokens_per_second": 1000, "peak_bytes": 2e9}))`,
  );
  const { stdout, result } = await check(folder, '--stage', 'kernels,training', '--config', 'gpt2-tiny');
  const validate = await schemaOf();
  t.ok(validate(result), JSON.stringify(validate.errors));
  // 9.6 MB at 0.8 of 4.8 TB/s are 2.5 µs, and a launch takes 3.
  t.match(result.stages.kernels?.[0]?.measurements, [
    { part: 'copy' },
    { op: 'bias_gradient', predicted_microseconds: 5.5, times_predicted: 0.909, outlier: false },
    { op: 'layernorm.forward', predicted_microseconds: 5.5, outlier: true },
    { op: 'no_case', predicted_microseconds: undefined },
  ]);
  t.match(stdout, /kernel +shape +µs +predicted +times/);
  t.match(stdout, /layernorm\.forward +64 × 64 +50\.0 +5\.5 +9\.09 +– +OUTLIER/);
  t.match(stdout, /gpt2-tiny +1,000 +[\d,]+ +[\d,.]+ +– +2\.00 GB +OUTLIER/);
  t.match(stdout, /ok +kernels: kernels: gpt2-tiny: 1 far from what was predicted/);
});

/** As of an H200, which is asked for its load as well. */
const NVIDIA_SMI = `#!/bin/sh
case "$*" in *compute_cap*) echo "0, NVIDIA H200, GPU-1, 580.1, 143771, 9.0, 1980, 3201, 700, Enabled, Disabled" ;; esac
`;

t.test(
  'a GPU has its committed predictions; $OUT, emptied between calls, gets all results',
  { skip },
  async (t) => {
    const folder = await buildFolder(
      t,
      `print(json.dumps({"part": "copy"}))
print(json.dumps({"part": "kernel", "config": "gpt2", "op": "qkv.forward", "microseconds": 1e4}))`,
    );
    const programs = join(folder, 'programs');
    await mkdir(programs);
    await writeFile(join(programs, 'nvidia-smi'), NVIDIA_SMI);
    await chmod(join(programs, 'nvidia-smi'), 0o755);
    const args = checkArgs(folder).filter((option) => option !== '--emulated');
    for (const [stage, out] of [
      ['kernels', join(folder, 'first')],
      ['training', join(folder, 'second')],
    ] as const) {
      await promisify(execFile)(
        'python3',
        [...args, '--stage', stage, '--config', 'gpt2', '--commit', 'abc'],
        { env: { ...environment, PATH: `${programs}:${process.env.PATH}`, OUT: out } },
      );
    }
    const { result, files } = await resultIn(join(folder, 'second'));
    t.match(files, [/^nvidia-h200-\d{4}-\d\d-\d\d-abc\.json$/]);
    t.match(result, { device: 'NVIDIA H200', commit: 'abc', stages: { training: [{ status: 'passed' }] } });
    const [, kernel] = result.stages.kernels?.[0]?.measurements ?? [];
    t.match(kernel, { predicted_microseconds: Number, outlier: true });
  },
);
