import t, { type Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { policyOf } from '../testing/world.js';
import { LocalCapacity } from './local.js';

/** Agent that records its environment and exits on SIGTERM, or when the file `die` appears. */
const AGENT = `
  import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
  const { ZEROFLEET_DATA_DIR: dir, ZEROFLEET_MACHINE_ID, ZEROFLEET_POOL, ZEROFLEET_SLOTS } = process.env;
  mkdirSync(dir, { recursive: true });
  writeFileSync(dir + '/record', [process.pid, ZEROFLEET_MACHINE_ID, ZEROFLEET_POOL, ZEROFLEET_SLOTS].join(' '));
  process.on('SIGTERM', () => process.exit());
  process.on('disconnect', () => process.exit());
  setInterval(() => { if (existsSync(dir + '/die')) process.exit(1); }, 10);
`;
const policy = policyOf({ types: [{ name: 'm', slots: 3, max: 4, price_per_hour: 0 }] });
const log = createLogger({ level: 'silent', name: 'test' });

function open(t: Test): { capacity: LocalCapacity; dir: string } {
  const dir = t.testdir({ 'agent.mjs': AGENT });
  const capacity = new LocalCapacity({
    program: `${dir}/agent.mjs`,
    env: { ...process.env },
    data_dir: dir,
    log,
  });
  t.teardown(() => capacity.close());
  return { capacity, dir };
}

async function untilThere<T>(read: () => Promise<T> | T, is: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (is(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

t.test('agents are started with their environment, and stopped one by one', async (t) => {
  const { capacity, dir } = open(t);
  t.same(await capacity.view(policy), { machines: [], wanted: { m: 0 }, problems: [] });
  await capacity.want(policy, 'm', 2);
  await capacity.want(policy, 'm', 2);
  const { machines, wanted } = await capacity.view(policy);
  t.equal(machines.length, 2);
  t.same(wanted, { m: 2 });
  const { readFile } = await import('node:fs/promises');
  const record = await untilThere(
    () => readFile(`${dir}/agents/0/record`, 'utf8').catch(() => ''),
    (text) => text !== '',
  );
  t.match(record, new RegExp(`^\\d+ ${machines[0]?.id} default 3$`));
  const id = machines[0]?.id ?? '';
  await capacity.retire(policy, id);
  await capacity.retire(policy, id);
  t.match(await capacity.view(policy), { wanted: { m: 1 } });
  const left = await untilThere(
    () => capacity.view(policy),
    (view) => view.machines.length === 1,
  );
  t.same(left.machines, [machines[1]]);
  await capacity.want(policy, 'm', 2);
  const again = (await capacity.view(policy)).machines.map((machine) => machine.id);
  t.equal(again.length, 2);
  t.ok(
    again.some((each) => each.startsWith('local-0-') && each !== id),
    'in the directory of the agent that is gone',
  );
  await capacity.close();
  await capacity.close();
  const pid = Number(record.split(' ')[0]);
  t.throws(() => process.kill(pid, 0), 'no process is left');
});

t.test('an agent that exits is replaced', async (t) => {
  const { capacity, dir } = open(t);
  await capacity.want(policy, 'm', 1);
  const { machines } = await capacity.view(policy);
  const { rm, writeFile } = await import('node:fs/promises');
  const { existsSync } = await import('node:fs');
  await untilThere(() => existsSync(`${dir}/agents/0/record`), Boolean);
  await writeFile(`${dir}/agents/0/die`, '');
  await untilThere(
    () => capacity.view(policy),
    (view) => view.machines.length === 0,
  );
  t.match(await capacity.view(policy), { wanted: { m: 1 } });
  await rm(`${dir}/agents/0/die`);
  const after = await untilThere(
    () => capacity.view(policy),
    (view) => view.machines.length === 1,
  );
  t.not(after.machines[0]?.id, machines[0]?.id);
});
