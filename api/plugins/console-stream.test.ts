/** Stream reader of the dashboard, without a browser. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';

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

const END = 'event: end\ndata: {"state":"succeeded"}\n\n';

/** Follows a stream; each connection gets one of the bodies. @returns the messages, and the `Last-Event-ID` of each connection */
async function followed(t: { teardown(end: () => void): void }, bodies: (string | ReadableStream)[]) {
  const { follow } = (await import(
    pathToFileURL(join(projectRoot(), 'web', 'client.js')).href
  )) as DashboardClient;
  const { fetch } = globalThis;
  t.teardown(() => Object.assign(globalThis, { fetch, localStorage: undefined }));
  const ids: (string | null)[] = [];
  Object.assign(globalThis, {
    fetch: async (_: string, { headers }: RequestInit) => {
      ids.push(new Headers(headers).get('last-event-id'));
      return new Response(bodies.shift());
    },
    localStorage: { getItem: () => 'key' },
  });
  const seen: string[] = [];
  await follow('v1/jobs/job_1/stream', {
    signal: new AbortController().signal,
    onMessages: (messages) => seen.push(...messages.map(({ event }) => event)),
    onLive: () => undefined,
  });
  return { seen, ids };
}

t.test('a stream whose job has ended is closed, though the server keeps it open', async (t) => {
  const text = `id: 3fa91c0b-1-660da8a518800\nevent: metric\ndata: {"step":1}\n\n${END}`;
  let closed = () => {};
  const left = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    cancel: closed,
  });
  t.strictSame((await followed(t, [body])).seen, ['metric', 'end']);
  await left;
});

t.test('after a reset nothing of before is asked for', async (t) => {
  const metric = 'id: 3fa91c0b-1-660da8a518800\nevent: metric\ndata: {"step":1}\n\n';
  const reset = 'id: \nevent: reset\ndata: {}\n\n';
  const { seen, ids } = await followed(t, [metric, reset, `: nothing\n\n${END}`]);
  t.strictSame(seen, ['metric', 'reset', 'end']);
  t.strictSame(ids, [null, '3fa91c0b-1-660da8a518800', null]);
});
