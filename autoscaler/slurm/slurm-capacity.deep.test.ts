/** The capacity against a real Slurm: slurmctld, slurmd and munged. Jobs on it are in test/e2e/slurm.deep.test.ts. */
import { existsSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import { startSlurm, type TestSlurm, whyNoSlurm } from '../../platform/testing/slurm.js';
import { until } from '../../platform/testing/waiting.js';
import type { EndCause } from './causes.js';
import { SlurmCommands } from './commands.js';
import { SlurmCapacity } from './slurm-capacity.js';

const skip = (await whyNoSlurm()) ?? false;
const log = createLogger({ level: 'silent', name: 'test' });
const NOTHING = { machines: [], wanted: { m: 0 }, problems: [] };
const TYPE = { name: 'm', slots: 1, max: 4 };

function policyOf(slurm: object = {}) {
  const type = { ...TYPE, slurm: { partition: 'main', arguments: ['--exclusive'], ...slurm } };
  const [policy] = poolPolicies(JSON.stringify([{ pool: 'default', types: [type] }]));
  if (!policy) throw new Error('no pool');
  return policy;
}

/** Agent that notes its machine and signals, and ends at SIGTERM. */
const AGENT = `
  import { appendFileSync } from 'node:fs';
  const { ZEROFLEET_MACHINE_ID: machine, ZEROFLEET_SLOTS: slots, OUT: out } = process.env;
  const note = (text) => appendFileSync(out + '/' + machine, text + ' ');
  process.on('SIGTERM', () => { note('SIGTERM'); process.exit(); });
  setInterval(() => undefined, 1_000);
  note('slots ' + slots);
`;

function opener(t: Test, slurm: TestSlurm) {
  const dir = t.testdir({ 'agent.mjs': AGENT });
  return (installation = 'test') => open(dir, slurm, installation);
}

function open(dir: string, slurm: TestSlurm, installation: string) {
  const env = { PATH: process.env.PATH, ...slurm.env };
  const ended: EndCause[] = [];
  const capacity = new SlurmCapacity({
    commands: new SlurmCommands(env),
    installation,
    agent: { command: [process.execPath, `${dir}/agent.mjs`], env: { ...env, OUT: dir }, log_dir: dir },
    log,
    onEnded: (_pool, _type, cause) => ended.push(cause),
  });
  const notes = (machine: string) => {
    const path = `${dir}/${machine}`;
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  };
  const view = async (policy: PoolPolicy) => {
    await capacity.refresh([policy]);
    return capacity.view(policy);
  };
  return { capacity, ended, notes, view };
}

t.test('a real Slurm', { skip }, async (t) => {
  const slurm = await startSlurm({ nodes: 2, kill_seconds: 5 });
  t.teardown(() => slurm.stop());
  const policy = policyOf();
  const open = opener(t, slurm);

  t.test('allocations start, are found by another autoscaler, and end one by one', async (t) => {
    const { capacity, notes, ended, view } = open();
    t.same(await view(policy), NOTHING);
    await capacity.want(policy, 'm', 3);
    t.match(await view(policy), { wanted: { m: 3 } });
    await until(async () => (await view(policy)).machines.length === 2);
    t.match(await view(policy), { wanted: { m: 3 } }, 'the third waits for a node');
    const [first, second] = (await view(policy)).machines.map(({ id }) => id);
    await until(() => [first, second].every((id) => notes(id ?? '') === 'slots 1'));

    const other = open();
    t.match(await other.view(policy), { wanted: { m: 3 } });
    await other.capacity.want(policy, 'm', 3);
    t.match(await other.view(policy), { wanted: { m: 3 } }, 'none is started twice');
    t.same(await open('second').view(policy), NOTHING);

    await other.capacity.want(policy, 'm', 2);
    t.match(await other.view(policy), { wanted: { m: 2 } }, 'the request is withdrawn');
    t.equal((await other.view(policy)).machines.length, 2, 'machines stay');
    await other.capacity.retire(policy, first ?? '');
    await other.capacity.retire(policy, first ?? '');
    t.match(await other.view(policy), { wanted: { m: 1 } });
    await until(async () => (await other.view(policy)).machines.length === 1);
    t.equal(notes(first ?? ''), 'slots 1 SIGTERM');
    await other.capacity.retire(policy, second ?? '');
    await until(async () => (await other.view(policy)).machines.length === 0);
    t.same(other.ended, [], 'it has ended them itself');
    t.same(ended, []);
  });

  t.test('two requests of one name never run at once', async (t) => {
    const { capacity, view } = open();
    await capacity.want(policy, 'm', 1);
    await until(async () => (await view(policy)).machines.length === 1);
    const name = '--job-name=zerofleet/test/default/m/0';
    await slurm.run('sbatch', name, '--dependency=singleton', '--output=/dev/null', '--wrap=sleep 60');
    await until(async () => (await view(policy)).wanted.m === 2);
    t.match(await slurm.run('squeue', '--noheader', '--states=PENDING', '--format=%r'), /Dependency/);
    await capacity.want(policy, 'm', 1);
    await until(async () => (await view(policy)).wanted.m === 1);
    t.equal((await view(policy)).machines.length, 1);
    await slurm.run('scancel', '--partition=main');
  });

  t.test('the causes of ends are told apart', async (t) => {
    const { capacity, ended, notes, view } = open();
    await until(async () => (await view(policy)).machines.length === 0);
    const start = async () => {
      await capacity.want(policy, 'm', 1);
      await until(async () => (await view(policy)).machines.length === 1);
      const machine = (await view(policy)).machines[0]?.id ?? '';
      await until(() => notes(machine) === 'slots 1');
      return machine;
    };
    const gone = () => until(async () => (await view(policy)).machines.length === 0);
    ended.length = 0;

    const cancelled = await start();
    await slurm.run('scancel', cancelled.slice(6));
    await gone();
    t.same(ended, ['cancelled']);

    const preempted = await start();
    const urgent = ['--partition=urgent', '--nodes=2', '--exclusive', '--output=/dev/null', '--wrap=sleep 3'];
    await slurm.run('sbatch', ...urgent);
    await gone();
    await until(() => ended.length === 2);
    t.same(ended, ['cancelled', 'preempted']);
    t.equal(notes(preempted), 'slots 1 SIGTERM');

    await start();
    const node = (await slurm.run('squeue', '--noheader', '--states=RUNNING', '--format=%N')).trim();
    await slurm.killNode(node);
    await gone();
    t.same(ended, ['cancelled', 'preempted', 'node_failed']);
    await slurm.startNode(node);
  });

  t.test(
    'allocations that Slurm refuses, or that fail at their start, are not tried at once again',
    async (t) => {
      const refused = open('refused');
      const nowhere = policyOf({ partition: 'nowhere' });
      await refused.view(nowhere);
      await t.rejects(refused.capacity.want(nowhere, 'm', 2), /sbatch failed: .*[Ii]nvalid partition/);
      t.match(await refused.view(nowhere), {
        machines: [],
        wanted: { m: 2 },
        problems: [{ type: 'm', code: 'configuration', message: /[Ii]nvalid partition/ }],
      });
      await refused.capacity.want(nowhere, 'm', 2);

      const failing = open('failing');
      const broken = policyOf({ command: ['/bin/false'] });
      await failing.capacity.want(broken, 'm', 1);
      await until(async () => {
        await failing.view(broken);
        return failing.ended.length === 1;
      });
      t.same(failing.ended, ['failed']);
      await failing.capacity.want(broken, 'm', 1);
      t.match(await failing.view(broken), {
        machines: [],
        wanted: { m: 1 },
        problems: [
          { type: 'm', code: 'configuration', message: /ended at its start \(FAILED, NonZeroExitCode\)/ },
        ],
      });
      t.equal((await slurm.run('squeue', '--noheader')).trim(), '', 'nothing is submitted meanwhile');
    },
  );
});
