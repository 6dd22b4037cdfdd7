/** Thread side of a `StreamThread`. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { ownBuffers, sentError } from './messages.js';
import type { FromStream, ToStream } from './stream-messages.js';

type Transform = (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;

/** Transforms any number of streams at once until this thread is ended. A step of one delays the others. */
export function serveStreams(transform: Transform): void {
  parentPort?.on('message', ({ port }: { port: MessagePort }) =>
    port.once('message', () => void serve(port, transform)),
  );
}

async function serve(port: MessagePort, transform: Transform): Promise<void> {
  try {
    for await (const bytes of transform(inputOf(port))) await exchange(port, { kind: 'piece', bytes });
    port.postMessage({ kind: 'end' } satisfies FromStream);
  } catch (error) {
    port.postMessage({ kind: 'error', error: sentError(error) } satisfies FromStream);
  }
}

async function* inputOf(port: MessagePort): AsyncGenerator<Uint8Array> {
  for (;;) {
    const answer = await exchange(port, { kind: 'read' });
    if (answer.kind !== 'input' || answer.bytes === null) return;
    yield answer.bytes;
  }
}

function exchange(port: MessagePort, message: FromStream): Promise<ToStream> {
  return new Promise((resolve) => {
    port.once('message', resolve);
    port.postMessage(message, ownBuffers(message));
  });
}
