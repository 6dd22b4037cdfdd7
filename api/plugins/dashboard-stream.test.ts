/** Stream reader of the dashboard, without a browser. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../platform/root.js';

interface DashboardClient {
  follow(
    path: string,
    options: {
      signal: AbortSignal;
      onMessages: (messages: { event: string }[]) => void;
      onLive: (live: boolean) => void;
    },
  ): Promise<void>;
}

t.test('a stream whose job has ended is closed, though the server keeps it open', async (t) => {
  const { follow } = (await import(
    pathToFileURL(join(projectRoot(), 'web', 'client.js')).href
  )) as DashboardClient;
  const text = 'id: 1\nevent: metric\ndata: {"step":1}\n\nevent: end\ndata: {"state":"succeeded"}\n\n';
  let closed = () => {};
  const left = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    cancel: closed,
  });
  const { fetch } = globalThis;
  t.teardown(() => Object.assign(globalThis, { fetch, localStorage: undefined }));
  Object.assign(globalThis, {
    fetch: async () => new Response(body),
    localStorage: { getItem: () => 'key' },
  });
  const seen: string[] = [];
  await follow('v1/jobs/job_1/stream', {
    signal: new AbortController().signal,
    onMessages: (messages) => seen.push(...messages.map(({ event }) => event)),
    onLive: () => undefined,
  });
  t.strictSame(seen, ['metric', 'end']);
  await left;
});
