import t from 'tap';
import { createLogger } from '../../../platform/logging/logging.js';
import { type MetadataService, startMetadataService } from '../../testing/metadata-service.js';
import { AwsMetadata } from './aws-metadata.js';

const SPOT = 'spot/instance-action';
const SCALING = 'autoscaling/target-lifecycle-state';
const log = createLogger({ level: 'silent', name: 'test' });
const source = ({ url }: { url: string }) => new AwsMetadata({ url, poll_ms: 5, log });

async function service(t: { teardown(end: () => Promise<void>): void }): Promise<MetadataService> {
  const started = await startMetadataService();
  t.teardown(() => started.close());
  return started;
}

/** Resolves once the service has answered `line` that often. */
async function answeredTimes({ answered }: MetadataService, line: string, times: number): Promise<void> {
  while (answered.filter((each) => each === line).length < times)
    await new Promise((resolve) => setImmediate(resolve));
}

t.test('an interruption of a spot instance, with its time', async (t) => {
  const metadata = await service(t);
  const noticed = source(metadata).watch(new AbortController().signal);
  await answeredTimes(metadata, `GET /latest/meta-data/${SPOT} 404`, 3);
  metadata.documents.set(SPOT, '{"action": "terminate", "time": "2026-11-21T23:30:00Z"}');
  t.same(await noticed, { cause: 'spot terminate', terminates_at: Date.parse('2026-11-21T23:30:00Z') });
  t.equal(metadata.answered.filter((line) => line.startsWith('PUT')).length, 1, 'one token for all requests');
  t.equal(metadata.answered[0], 'PUT /latest/api/token 200');
});

t.test('an autoscaling group that terminates the instance', async (t) => {
  const metadata = await service(t);
  metadata.documents.set(SCALING, 'InService');
  const noticed = source(metadata).watch(new AbortController().signal);
  await answeredTimes(metadata, `GET /latest/meta-data/${SCALING} 200`, 2);
  metadata.documents.set(SCALING, 'Terminated');
  t.same(await noticed, { cause: 'autoscaling scale-in', terminates_at: null });
});

t.test('an expired token is replaced', async (t) => {
  const metadata = await service(t);
  const noticed = source(metadata).watch(new AbortController().signal);
  await answeredTimes(metadata, `GET /latest/meta-data/${SPOT} 404`, 1);
  metadata.forgetTokens();
  await answeredTimes(metadata, 'PUT /latest/api/token 200', 2);
  metadata.documents.set(SPOT, '{"action": "stop", "time": "soon"}');
  t.same(await noticed, { cause: 'spot stop', terminates_at: null }, 'an invalid time is ignored');
});

t.test('requests to an unavailable or faulty service are retried', async (t) => {
  const metadata = await service(t);
  metadata.documents.set(SPOT, 'not JSON');
  const watching = new AbortController();
  const noticed = source(metadata).watch(watching.signal);
  await answeredTimes(metadata, `GET /latest/meta-data/${SPOT} 200`, 2);
  metadata.documents.set(SPOT, '{"action": "hibernate", "time": "2026-11-21T23:30:00Z"}');
  t.match(await noticed, { cause: 'spot hibernate' });
  await metadata.close();
  const away = source(metadata).watch(watching.signal);
  watching.abort();
  t.equal(await away, null, 'and the watch can be ended');
});
