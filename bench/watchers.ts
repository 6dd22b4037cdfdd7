import { Agent, type ClientRequest, request as httpRequest } from 'node:http';
import { createParser } from 'eventsource-parser';

interface Watchers {
  /** Milliseconds from the timestamp of each event to its arrival, one per watcher and event. */
  readonly latencies: readonly number[];
  /** Resolves when every watcher has received this many events in total. */
  received(events: number): Promise<void>;
  close(): void;
}

/** Opens `count` streams of a job, each on its own connection; resolves when all answers have begun. */
export async function openWatchers(
  url: string,
  headers: Record<string, string>,
  options: { count: number; event_type: string },
): Promise<Watchers> {
  const latencies: number[] = [];
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const requests: ClientRequest[] = [];
  const waiting: { total: number; resolve: () => void }[] = [];
  const onEvent = (at: string) => {
    latencies.push(Date.now() - Date.parse(at));
    for (const waiter of waiting) if (latencies.length >= waiter.total) waiter.resolve();
  };
  const open = () =>
    new Promise<void>((resolve, reject) => {
      const parser = createParser({
        onEvent: ({ data }) => {
          const entry = JSON.parse(data) as { type?: string; at: string };
          if (entry.type === options.event_type) onEvent(entry.at);
        },
      });
      const request = httpRequest(url, { agent, headers }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`the stream was answered with ${answer.statusCode}`));
        answer.setEncoding('utf8');
        answer.on('data', (text: string) => {
          parser.feed(text);
          resolve();
        });
        answer.on('error', () => undefined);
      });
      request.on('error', reject);
      request.end();
      requests.push(request);
    });
  await Promise.all(Array.from({ length: options.count }, open));
  return {
    latencies,
    received: (events) =>
      new Promise((resolve) => {
        const total = events * options.count;
        if (latencies.length >= total) resolve();
        else waiting.push({ total, resolve });
      }),
    close: () => {
      for (const request of requests) request.destroy();
      agent.destroy();
    },
  };
}
