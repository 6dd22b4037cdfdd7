import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { jobOf, NOW, policyOf, World } from '../testing/world.js';
import { CloudWatchPublisher } from './cloudwatch.js';

const log = createLogger({ level: 'silent', name: 'test' });

interface Put {
  Namespace: string;
  MetricData: { MetricName: string; Value: number; Dimensions: { Name: string; Value: string }[] }[];
}

t.test('publishes metrics of all pools once a minute; failures are counted', async (t) => {
  const puts: Put[] = [];
  const targets: string[] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    targets.push(String(request.headers['x-amz-target']));
    const isZipped = request.headers['content-encoding'] === 'gzip';
    if (status === 200) puts.push(JSON.parse(String(isZipped ? gunzipSync(body) : body)));
    const error = JSON.stringify({ __type: 'com.amazonaws.cloudwatch#AccessDenied', message: 'no' });
    response
      .writeHead(status, { 'content-type': 'application/x-amz-json-1.0' })
      .end(status === 200 ? '{}' : error);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const client = new CloudWatchClient({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
  });
  let now = NOW;
  const failures: string[] = [];
  const metrics = { failed: (call: string) => void failures.push(call) };
  const publisher = new CloudWatchPublisher({ client, namespace: 'Zf', metrics, log, clock: () => now });
  t.teardown(() => publisher.close());
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 6 }), jobOf('b', { need: 100 })];
  const { report } = world.tick();
  const reports = new Map([
    ['one', report],
    ['two', report],
  ]);
  await publisher.publish(new Map());
  t.equal(puts.length, 0);
  await publisher.publish(reports);
  now += 59_000;
  await publisher.publish(reports);
  t.equal(puts.length, 1);
  t.match(targets[0], /PutMetricData$/);
  t.equal(puts[0]?.Namespace, 'Zf');
  const value = (pool: string, name: string) =>
    puts[0]?.MetricData.find(
      ({ MetricName, Dimensions }) =>
        MetricName === name && Dimensions[0]?.Name === 'Pool' && Dimensions[0].Value === pool,
    )?.Value;
  t.equal(value('one', 'DesiredRanks'), 6);
  t.equal(value('two', 'MachinesStarting'), 2);
  t.equal(value('two', 'JobsRefused'), 1);
  now += 1_000;
  status = 403;
  await publisher.publish(reports);
  t.same(failures, ['cloudwatch']);
});
