import { chmodSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import t, { type Test } from 'tap';
import { SlurmCommands } from './commands.js';

const JOB = {
  job_id: 20,
  name: 'zerofleet/own/p/t/0',
  user_name: userInfo().username,
  job_state: 'PENDING',
  state_reason: 'Resources',
  start_time: 0,
  end_time: 0,
  preempt_time: 0,
  restart_cnt: 0,
};

/** Commands whose programs are shell scripts, which note how they were called. */
function open(t: Test, programs: Record<string, string>) {
  const dir = t.testdir(
    Object.fromEntries(
      Object.entries(programs).map(([name, script]) => [
        name,
        `#!/bin/sh\necho "$0 $*" >> "$NOTES"\n${script}\n`,
      ]),
    ),
  );
  for (const name of Object.keys(programs)) chmodSync(`${dir}/${name}`, 0o700);
  const env = { PATH: `${dir}:/usr/bin:/bin`, NOTES: `${dir}/notes` };
  const commands = new SlurmCommands(env);
  t.teardown(() => commands.close());
  const calls = () => readFileSync(env.NOTES, 'utf8').replaceAll(`${dir}/`, '').trim().split('\n');
  return { commands, calls, dir, env };
}

t.test('the queue is listed without the jobs of others', async (t) => {
  const jobs = [JOB, { ...JOB, job_id: 21, user_name: 'another' }, { ...JOB, name: 'zerofleet/other/p/t/0' }];
  const { commands, calls } = open(t, { squeue: `echo '${JSON.stringify({ jobs })}'` });
  t.match(await commands.jobs('own'), [{ id: 20 }]);
  t.same(calls(), [`squeue --json --states=all --user=${JOB.user_name}`]);
});

t.test('a job is submitted with its own environment', async (t) => {
  const { commands, calls, dir, env } = open(t, { sbatch: 'cat > "$SCRIPT"; echo "17;cluster"' });
  const submission = {
    options: ['--job-name=a b'],
    script: '#!/bin/sh\ntrue\n',
    env: { ...env, SCRIPT: `${dir}/script` },
  };
  t.equal(await commands.submit(submission), 17);
  t.same(calls(), ['sbatch --parsable --job-name=a b']);
  t.equal(readFileSync(`${dir}/script`, 'utf8'), submission.script);
});

t.test('errors have the message of the command', async (t) => {
  const { commands, env, dir } = open(t, {
    sbatch: 'echo "sbatch: error: Batch job submission failed: Invalid qos specification" >&2; exit 1',
    sacct: 'echo "Slurm accounting storage is disabled" >&2; exit 1',
    squeue: 'exec sleep 60',
  });
  const submission = { options: [], script: 'a script that sbatch does not read'.repeat(10_000), env };
  await t.rejects(commands.submit(submission), /^sbatch failed: .*Invalid qos specification$/);
  await t.rejects(commands.records([1]), /accounting storage is disabled/);
  await t.rejects(
    new SlurmCommands({ PATH: dir }).cancel([1]),
    /scancel is not on the PATH: install Slurm's client commands/,
  );
  await t.rejects(new SlurmCommands(env, 200).jobs('own'), /squeue did not end within 0.2 s/);
});

t.test('allocations end by their ids', async (t) => {
  const { commands, calls } = open(t, { scancel: '' });
  await commands.cancel([]);
  await commands.cancel([3, 4]);
  await commands.cancel([5], 'PENDING');
  await commands.terminateAgents([6, 7]);
  t.same(calls(), [
    'scancel --quiet 3 4',
    'scancel --quiet --state=PENDING 5',
    'scancel --quiet --batch --signal=TERM 6 7',
  ]);
});

t.test('an answer without a job id is refused', async (t) => {
  const { commands, env } = open(t, { sbatch: 'echo "Submitted batch job 3"' });
  await t.rejects(commands.submit({ options: [], script: '', env }), /sbatch printed no job id/);
});
