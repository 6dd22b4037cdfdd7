import { type EventEmitter, once } from 'node:events';

/**
 * Sends a request, leaves it at the event `reading`, and repeats it before the event `go on` lets the server continue.
 * @returns the reply to the repetition
 */
export async function repeatAfterLeaving(
  url: string,
  request: { headers: Record<string, string>; body: string },
  events: EventEmitter,
): Promise<Response> {
  const leaving = new AbortController();
  const reading = once(events, 'reading');
  const first = fetch(url, { method: 'POST', ...request, signal: leaving.signal });
  const left = first.then(
    () => false,
    () => true,
  );
  await reading;
  leaving.abort();
  if (!(await left)) throw new Error('the request was answered before its client left');
  const second = fetch(url, { method: 'POST', ...request });
  events.emit('go on');
  return second;
}
