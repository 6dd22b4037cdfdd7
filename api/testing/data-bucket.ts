/** Bucket whose objects are data of jobs, and a stack that may read it. */
import type { Test } from 'tap';
import type { Dataset, Page } from '../../contracts/index.js';
import { DatasetSources } from '../../platform/dataset-sources.js';
import { type Fate, S3StandIn } from '../../platform/testing/s3-stand-in.js';
import type { JobStore } from '../../state/index.js';
import { smallSpec, startTestStack, type TestStack } from './stack.js';

export const TEXT = Buffer.from('to be or not to be, that is the question. '.repeat(20));
export const URI = 's3://texts/open/play.txt';

interface Started {
  bucket: S3StandIn;
  stack: TestStack;
  /** Requests that the bucket received. */
  requested: string[];
  post(data: object, more?: { key?: string; url?: string; train?: object }): ReturnType<TestStack['request']>;
  datasets(): Promise<Dataset[]>;
}

/** Starts them; the bucket has TEXT at URI. */
export async function startWithData(
  t: Test,
  options: { fate?: (name: string) => Fate; store?: (store: JobStore) => JobStore } = {},
): Promise<Started> {
  const bucket = new S3StandIn();
  bucket.objects.set('open/play.txt', TEXT);
  const requested: string[] = [];
  const door = await bucket.open((name) => {
    requested.push(name);
    return options.fate?.(name) ?? 'served';
  });
  const allowed = [{ bucket: 'texts', prefix: 'open/' }];
  const sources = new DatasetSources({ allowed, s3Endpoint: door.endpoint });
  const { store: change } = options;
  const stack = await startTestStack({
    sources,
    limits: { dataset_bytes: 100_000 },
    ...(change && { wrap: ({ store }) => ({ store: change(store) }) }),
  });
  t.teardown(async () => {
    await stack.close();
    await sources.close();
    door.close();
  });
  return {
    bucket,
    stack,
    requested,
    post: (data, { key, url = '/v1/jobs', train = {} } = {}) =>
      stack.request({
        method: 'POST',
        url,
        payload: { ...smallSpec(''), data, train: { steps: 10, ...train } },
        ...(key && { headers: { 'idempotency-key': key } }),
      }),
    datasets: async () => (await stack.request({ url: '/v1/datasets' })).json<Page<Dataset>>().data,
  };
}
