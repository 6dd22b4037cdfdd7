import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import t from 'tap';
import { poolPolicies } from '../../platform/config/autoscale-pools.js';
import { machineOf, nameOf, parseName } from './names.js';
import { submissionOf } from './submission.js';

const AGENT = { command: ['node', "it's"], env: { A: 'b' }, log_dir: '/logs' };

function submit(slurm?: object) {
  const type = { name: 'm', slots: 4, max: 2, ...(slurm && { slurm }) };
  const [policy] = poolPolicies(JSON.stringify([{ pool: 'gpu', types: [type] }]));
  if (!policy?.types[0]) throw new Error('no type');
  return submissionOf(policy, policy.types[0], 'name', AGENT);
}

t.test('the options of a type become those of sbatch', async (t) => {
  const { options, env } = submit();
  t.same(options, [
    '--job-name=name',
    '--dependency=singleton',
    '--nodes=1',
    '--ntasks=1',
    '--signal=B:TERM@120',
    '--no-requeue',
    '--open-mode=append',
    '--output=/logs/%j.log',
    '--export=ALL',
  ]);
  t.same(env, {
    A: 'b',
    ZEROFLEET_DEVICE: 'cpu',
    ZEROFLEET_POOL: 'gpu',
    ZEROFLEET_SLOTS: '4',
    ZEROFLEET_PREEMPTION_SOURCE: 'slurm',
  });
  const full = submit({
    account: 'physics',
    partition: 'a,b',
    qos: 'long',
    reservation: 'course',
    constraint: 'a100&ib',
    gres: 'gpu:a100:4',
    cpus: 32,
    memory_mb: 65536,
    time_minutes: 240,
    time_min_minutes: 30,
    drain_seconds: 300,
    requeue: true,
    arguments: ['--exclusive', '--mail-type=NONE'],
    log_dir: '/shared/logs',
  });
  t.same(full.options.slice(4), [
    '--signal=B:TERM@300',
    '--requeue',
    '--open-mode=append',
    '--output=/shared/logs/%j.log',
    '--export=ALL',
    '--account=physics',
    '--partition=a,b',
    '--qos=long',
    '--reservation=course',
    '--constraint=a100&ib',
    '--gres=gpu:a100:4',
    '--cpus-per-task=32',
    '--mem=65536M',
    '--time=240',
    '--time-min=30',
    '--exclusive',
    '--mail-type=NONE',
  ]);
  t.notOk('ZEROFLEET_DEVICE' in full.env, 'it has GPUs of its own');
  t.notOk('ZEROFLEET_DEVICE' in submit({ arguments: ['--gpus-per-node=2'] }).env);
});

t.test('the script starts the agent in place of the shell', async (t) => {
  const dir = t.testdir();
  const command = [
    '/bin/sh',
    '-c',
    'echo "$SETUP $ZEROFLEET_MACHINE_ID $ZEROFLEET_DATA_DIR $1"',
    'sh',
    "it's",
  ];
  const run = (slurm: object, env: Record<string, string>) =>
    execFileSync('/bin/sh', {
      input: submit({ command, ...slurm }).script,
      env: { PATH: '/usr/bin:/bin', ...env },
    })
      .toString()
      .trim();
  const user = process.getuid?.();
  t.equal(
    run({ setup: ['export SETUP=done'] }, { SLURM_JOB_ID: '17', TMPDIR: dir }),
    `done slurm-17 ${dir}/zerofleet-${user} it's`,
  );
  t.equal(
    run({ data_dir: `${dir}/a b` }, { SLURM_JOB_ID: '17', SLURM_RESTART_COUNT: '2' }).trim(),
    `slurm-17-2 ${dir}/a b it's`,
  );
  t.equal(machineOf(17, 0), 'slurm-17');
  t.equal(machineOf(17, 2), 'slurm-17-2');
  mkdirSync(`${dir}/tmp`);
  t.equal(
    run({}, { SLURM_JOB_ID: '1', SLURM_TMPDIR: `${dir}/tmp`, TMPDIR: dir }),
    `slurm-1 ${dir}/tmp/zerofleet-${user} it's`,
  );
});

t.test('names are those of one installation', async (t) => {
  const identity = { pool: 'default', type: 'a.b_c', number: 12 };
  t.equal(nameOf('here', identity), 'zerofleet/here/default/a.b_c/12');
  t.same(parseName('here', nameOf('here', identity)), identity);
  t.equal(parseName('there', nameOf('here', identity)), null);
  for (const name of ['', 'bash', 'zerofleet/here/a/b', 'zerofleet/here/a/b/c', 'zerofleet/here/a/b/1/2'])
    t.equal(parseName('here', name), null);
});
