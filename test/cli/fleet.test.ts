/** The command line against the real API, in this process: workers, pools, keys, projects and usage. */
import t from 'tap';
import { smallSpec } from '../../api/testing/stack.js';
import type { Estimate, PoolPod } from '../../contracts/index.js';
import { testGpu, testWorker } from '../../state/testing/workers.js';
import { start } from './command-line.js';

const podOf = (name: string, fields: Partial<PoolPod>): PoolPod => ({
  ...{ name, type: 'p5', node: 'n1', phase: 'ended', reason: null, message: null, log: null },
  ...fields,
});

t.test('pools and workers show their devices and problems', async (t) => {
  const { stack, zerofleet } = await start(t);
  const gpus = [testGpu('GPU-1'), testGpu('GPU-2', { problem: 'uncorrected memory errors' })];
  const worker = testWorker('w1', 2, {
    pool: 'gpu',
    numerics: 'cuda-sm90/1',
    gpus,
    answer_gpus: [testGpu('GPU-3', { problem: 'lost' })],
  });
  await stack.store.announceWorker(worker, 600_000);
  await stack.store.announceWorker(testWorker('w2', 4), 600_000);
  const problems = [{ type: 'p5', code: 'no_capacity' as const, message: 'there is no \x1b[31mp5' }];
  const types = [{ type: 'p5', running: 1, starting: 0, requested: 3, terminating: 0 }];
  const pods = [
    podOf('gpu-p5-1', { reason: 'Error', message: 'exit code 1', log: 'starting\nRedis is \x1b[31maway' }),
    podOf('gpu-p5-0', { phase: 'running', node: 'n2' }),
  ];
  await stack.store.noteMachines('gpu', { types, problems, pods });
  const on = '2 × NVIDIA H100 80GB HBM3';
  t.match(await zerofleet(['pools']), {
    out: new RegExp(
      `default .* CPU +– +–\ngpu .* ${on} \\(1 with a problem\\) +cuda-sm90/1 +1, 3 requested\ngpu: machines of the type p5 cannot be launched \\(no_capacity\\): there is no p5\n\nPOD .*\ngpu-p5-1 +p5 +n1 +ended +Error: exit code 1\ngpu-p5-0 +p5 +n2 +running *\n\nlog of gpu-p5-1:\n  starting\n  Redis is away$`,
    ),
  });
  t.match(await zerofleet(['workers']), {
    out: new RegExp(
      `w2 .* CPU +CPU +–.*\nw1 .* ${on} +1 × NVIDIA H100 80GB HBM3 +cuda-sm90/1.*\nGPU-2 of w1: uncorrected memory errors\nGPU-3 of w1: lost\ngpu: .* there is no p5$`,
    ),
  });

  const stdin = JSON.stringify(smallSpec(`ds_${'0'.repeat(26)}`));
  const estimate = (...options: string[]) => zerofleet(['estimate', '-', ...options], { stdin });
  t.match(await estimate(), { code: 0, out: /^RANKS +PER RANK/, err: '' });
  const ofGpu = await estimate('--device', 'cuda');
  t.match(ofGpu, { code: 0, out: /^RANKS +PER RANK/, err: /^a GPU needs 1\.1 GB more/ });
  t.not(ofGpu.out, (await estimate('--device', 'cpu')).out);
  t.equal((JSON.parse((await estimate('-d', 'cuda', '--json')).out) as Estimate).device, 'cuda');
  t.match(await estimate('-d', 'tpu'), { code: 2, err: /Allowed choices are cpu, cuda/ });
});

t.test('API keys', async (t) => {
  const { stack, zerofleet } = await start(t);
  const made = await zerofleet([
    'keys',
    'create',
    'ci',
    '--scope',
    'jobs:read',
    'jobs:write',
    '--expires',
    '2999-01-31',
  ]);
  t.match(made, { code: 0, out: /^zf_[\w-]{43}$/, err: /^key_\w{26}: store the secret now/ });
  const id = made.err.slice(0, 30);
  t.match(await zerofleet(['keys']), { out: /key_\w+ +ci +default +jobs:read jobs:write +2999-01-31T/ });
  const rotated = await zerofleet(['keys', 'rotate', id, '--overlap', '0', '--json']);
  const { secret } = JSON.parse(rotated.out) as { secret: string };
  t.equal(await stack.store.findApiKey(made.out), null);
  t.not(await stack.store.findApiKey(secret), null);
  t.match(await zerofleet(['keys', 'revoke', id]), { code: 0 });
  t.equal(await stack.store.findApiKey(secret), null);
  t.match(await zerofleet(['keys', 'create', 'x', '--scope', 'job:read']), {
    code: 2,
    err: /Did you mean jobs:read/,
  });
  t.match(await zerofleet(['keys', 'create', 'x', '--scope', 'admin', '--expires', 'soon']), { code: 2 });
  t.match(await zerofleet(['keys', 'revoke', id]), { code: 1, err: /api_key_not_found/ });
  const audit = await zerofleet(['audit', '--resource', id]);
  t.match(audit.out.split('\n').slice(1), [
    /test +revokeApiKey +key_\w+ +refused: api_key_not_found$/,
    /revokeApiKey .* succeeded$/,
    /rotateApiKey .* succeeded$/,
    /createApiKey .* succeeded$/,
  ]);
  t.equal((await zerofleet(['audit', '-n', '1', '--json'])).out.split('"request_id"').length, 2);
});

t.test('projects and their usage', async (t) => {
  const { stack, zerofleet } = await start(t, { currency: 'EUR' });
  await stack.createJob();
  t.match(await zerofleet(['projects', 'quota', 'team-b', '--max-jobs', '5', '--max-storage', '1e12']), {
    code: 0,
    out: /^team-b +\{"max_jobs":5,"max_ranks":null,"max_storage_bytes":1000000000000\}$/,
  });
  t.match(await zerofleet(['projects']), {
    out: /^PROJECT +JOBS +RANKS +STORAGE\ndefault +1 +2 +840 B\nteam-b +0 of 5 +0 +0 B of 1\.0 TB$/,
  });
  const today = new Date().toISOString().slice(0, 10);
  t.match(await zerofleet(['usage', '--from', today]), {
    out: /RANK TIME +COST \(EUR\) +TOKENS\n.*\ntogether +1 .*\nnow: 1 queued\n +2 ranks, 840 B stored/,
  });
  t.match(await zerofleet(['usage', '--from', 'monday']), { code: 1, err: /invalid_parameter/ });
});
