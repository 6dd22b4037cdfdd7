import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { ownBuffers, receivedError } from './messages.js';
import type { FromStream, ToStream } from './stream-messages.js';

/** Transforms streams of bytes in a thread that exists while there are streams. */
export class StreamThread {
  private worker: Worker | null = null;
  private streams = 0;

  /** @param module main module of the thread, which calls serveStreams(): a path, or a URL */
  constructor(private readonly module: () => string | URL) {}

  /**
   * Yields the transformed pieces; reads the body no faster than they are taken.
   * @throws errors of the body and of the transformation
   */
  async *transform(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const pieces = body[Symbol.asyncIterator]();
    const port = this.open();
    let hasEnded = false;
    try {
      let answer = await exchange(port, { kind: 'next' });
      while (answer.kind !== 'end') {
        if (answer.kind === 'error') throw receivedError(answer.error);
        if (answer.kind === 'piece') {
          yield answer.bytes;
          answer = await exchange(port, { kind: 'next' });
        } else {
          const next = await pieces.next();
          hasEnded = next.done === true;
          // A copy: the network reuses the piece's buffer.
          answer = await exchange(port, {
            kind: 'input',
            bytes: next.done ? null : new Uint8Array(next.value),
          });
        }
      }
    } finally {
      this.close(port);
      if (!hasEnded) await pieces.return?.();
    }
  }

  private open(): MessagePort {
    // Process settings, such as a test runner's loaders, must not run again in a thread.
    this.worker ??= new Worker(this.module(), { env: {}, execArgv: [] }).on('error', () => {
      // Its ports close, which ends the streams. The next stream has a new thread.
      this.worker = null;
    });
    this.streams += 1;
    const { port1, port2 } = new MessageChannel();
    this.worker.postMessage({ port: port2 }, [port2]);
    return port1;
  }

  private close(port: MessagePort): void {
    port.close();
    this.streams -= 1;
    if (this.streams > 0) return;
    void this.worker?.terminate();
    this.worker = null;
  }
}

function exchange(port: MessagePort, message: ToStream): Promise<FromStream> {
  return new Promise((resolve, reject) => {
    const lost = () => reject(new Error('the thread of the stream has ended'));
    port.once('close', lost);
    port.once('message', (answer: FromStream) => {
      port.off('close', lost);
      resolve(answer);
    });
    port.postMessage(message, ownBuffers(message));
  });
}
