import t from 'tap';
import { createLogger } from '../../../platform/logging/logging.js';
import { startMetadataService } from '../../testing/metadata-service.js';
import { machineId, machineTopology, reportDrained } from './machine.js';

const log = createLogger({ level: 'silent', name: 'test' });

t.test('the machine id comes from the configuration or the metadata service', async (t) => {
  const metadata = await startMetadataService();
  t.teardown(() => metadata.close());
  const preemptionSource = metadata.url;
  t.equal(await machineId({ machine_id: null, preemption_source: preemptionSource }), null);
  t.equal(await machineId({ machine_id: 'rack-7', preemption_source: preemptionSource }), 'rack-7');
  t.same(metadata.answered, [], 'no request was made');
  await t.rejects(machineId({ machine_id: 'aws', preemption_source: preemptionSource }), {
    code: 'invalid_configuration',
    message: /does not return the instance-id of this instance \(not found\); set ZEROFLEET_MACHINE_ID/,
  });
  metadata.documents.set('instance-id', 'i-0123456789abcdef0\n');
  t.equal(await machineId({ machine_id: 'aws', preemption_source: preemptionSource }), 'i-0123456789abcdef0');
  await metadata.close();
  await t.rejects(machineId({ machine_id: 'aws', preemption_source: preemptionSource }), {
    code: 'invalid_configuration',
  });
});

t.test('the topology comes from the configuration or the metadata service', async (t) => {
  const metadata = await startMetadataService();
  t.teardown(() => metadata.close());
  const topologyOf = (topology: string[]) => machineTopology({ topology, preemption_source: metadata.url });
  t.same(await topologyOf([]), []);
  t.same(await topologyOf(['zone-a', 'rack-7']), ['zone-a', 'rack-7']);
  t.same(metadata.answered, [], 'no request was made');
  await t.rejects(topologyOf(['aws']), {
    code: 'invalid_configuration',
    message: /does not return the placement\/availability-zone .*; set ZEROFLEET_TOPOLOGY/,
  });
  metadata.documents.set('placement/availability-zone', 'eu-west-1b\n');
  t.same(await topologyOf(['aws']), ['eu-west-1b']);
});

t.test('a drained machine is reported until the job store accepts it', async (t) => {
  const reported: string[] = [];
  const store = {
    async reportDrained(machine: string) {
      reported.push(machine);
      if (reported.length < 2) throw new Error('away');
    },
  };
  const ending = new AbortController();
  await reportDrained(store, null, log, ending.signal);
  t.same(reported, []);
  await reportDrained(store, 'm', log, ending.signal);
  t.same(reported, ['m', 'm']);
  const away = { reportDrained: () => Promise.reject(new Error('away')) };
  const reporting = reportDrained(away, 'm', log, ending.signal);
  ending.abort();
  await reporting;
});
