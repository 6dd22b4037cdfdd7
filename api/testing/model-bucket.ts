/** A server that may copy from a bucket with a model. */
import type { Test } from 'tap';
import type { Model, Page } from '../../contracts/index.js';
import { modelFolder } from '../../formats/testing/models.js';
import type { SourceObject } from '../../platform/content-sources.js';
import { DatasetSources } from '../../platform/dataset-sources.js';
import { type Fate, S3StandIn } from '../../platform/testing/s3-stand-in.js';
import type { JobStore } from '../../state/index.js';
import { smallSpec, startTestStack, type TestStack } from './stack.js';

export const FOLDER_TEXT = 'to be or not to be, that is the question. '.repeat(20);
export const FOLDER_URI = 's3://zoo/open/tiny';

export interface StartedWithFolder {
  bucket: S3StandIn;
  stack: TestStack;
  /** Requests that the bucket received. */
  asked: string[];
  put(folder: string, files: ReadonlyMap<string, Buffer>): void;
  post(
    initFrom: object | string,
    more?: { key?: string; url?: string; spec?: object; model?: object },
  ): ReturnType<TestStack['request']>;
  models(): Promise<Model[]>;
}

interface Options {
  fate?: (name: string) => Fate;
  store?: (store: JobStore) => JobStore;
  /** Called before the weights are read. */
  reading?: () => Promise<unknown>;
}

export async function startWithFolder(
  t: Test,
  { fate, store, reading }: Options = {},
): Promise<StartedWithFolder> {
  // Here and not at the import, since the next file of the process begins with the first environment.
  process.env.AWS_ACCESS_KEY_ID = 'test';
  process.env.AWS_SECRET_ACCESS_KEY = 'test';
  const bucket = new S3StandIn();
  const asked: string[] = [];
  const door = await bucket.open((name) => {
    asked.push(name);
    return fate?.(name) ?? 'served';
  });
  const allowed = [{ bucket: 'zoo', prefix: 'open/' }];
  const real = new DatasetSources({ allowed, s3Endpoint: door.endpoint });
  const withHook = (name: string, object: SourceObject): SourceObject => {
    if (!name.endsWith('.safetensors')) return object;
    return {
      ...object,
      async *read() {
        await reading?.();
        yield* object.read();
      },
    };
  };
  const stack = await startTestStack({
    sources: {
      find: (uri) => real.find(uri),
      async list(uri) {
        const folder = await real.list(uri);
        return { ...folder, find: async (name) => withHook(name, await folder.find(name)) };
      },
    },
    limits: { model_bytes: 1_000_000 },
    ...(store && { wrap: (parts) => ({ store: store(parts.store) }) }),
  });
  t.teardown(async () => {
    await stack.close();
    await real.close();
    door.close();
  });
  const put = (folder: string, files: ReadonlyMap<string, Buffer>) => {
    for (const [name, bytes] of files) bucket.objects.set(`${folder}/${name}`, bytes);
  };
  put('open/tiny', modelFolder({ shards: 2 }));
  const { id } = await stack.upload(FOLDER_TEXT);
  return {
    bucket,
    stack,
    asked,
    put,
    post: (initFrom, { key, url = '/v1/jobs', spec = {}, model = {} } = {}) =>
      stack.request({
        method: 'POST',
        url,
        payload: { ...smallSpec(id), model: { init_from: initFrom, ...model }, ...spec },
        ...(key && { headers: { 'idempotency-key': key } }),
      }),
    models: async () => (await stack.request({ url: '/v1/models' })).json<Page<Model>>().data,
  };
}
