import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { startMetadataService } from '../testing/metadata-service.js';
import { askForEnd, machineOf } from './machine.js';

const log = createLogger({ level: 'silent', name: 'test' });

t.test('the machine is what the configuration says, or the metadata service', async (t) => {
  const metadata = await startMetadataService();
  t.teardown(() => metadata.close());
  const preemption_source = metadata.url;
  t.equal(await machineOf({ machine_id: null, preemption_source }), null);
  t.equal(await machineOf({ machine_id: 'rack-7', preemption_source }), 'rack-7');
  t.same(metadata.answered, [], 'nobody was asked');
  await t.rejects(machineOf({ machine_id: 'aws', preemption_source }), {
    code: 'invalid_configuration',
    message: /does not say which instance this is \(not found\); set ZEROFLEET_MACHINE_ID/,
  });
  metadata.documents.set('instance-id', 'i-0123456789abcdef0\n');
  t.equal(await machineOf({ machine_id: 'aws', preemption_source }), 'i-0123456789abcdef0');
  await metadata.close();
  await t.rejects(machineOf({ machine_id: 'aws', preemption_source }), { code: 'invalid_configuration' });
});

t.test('the end of a machine is asked for until the job store takes it', async (t) => {
  const asked: string[] = [];
  const store = {
    async reportDrained(machine: string) {
      asked.push(machine);
      if (asked.length < 2) throw new Error('away');
    },
  };
  const ending = new AbortController();
  await askForEnd(store, null, log, ending.signal);
  t.same(asked, []);
  await askForEnd(store, 'm', log, ending.signal);
  t.same(asked, ['m', 'm']);
  const away = { reportDrained: () => Promise.reject(new Error('away')) };
  const asking = askForEnd(away, 'm', log, ending.signal);
  ending.abort();
  await asking;
});
