import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { deferred } from '../common/deferred.js';
import { SilenceWatch } from '../supervisor/silence-watch.js';
import { encodeFrame, FrameReader } from './frames.js';
import { tlsReason } from './tls.js';

/** Before the other side has joined a world, nothing long can come from it. */
const NEWCOMER_BYTES = 4096;
/** The longest message is a rank's list of the ranges that it loaded. */
const MAX_BYTES = 16 * 1024 * 1024;
/** What waits to be sent; a side that does not read is no use. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** What was sent before the end may leave for so long; it never does where the TLS handshake was not completed. */
const LINGER_MS = 5_000;

export interface LinkWatch {
  ping_ms: number;
  silence_ms: number;
}

/** One TLS connection between two agents. Whatever goes wrong with it is its end, and `ended` says what it was. */
export class Link {
  /** Resolves with the reason, for people, when the connection is gone. */
  readonly ended: Promise<string>;

  private readonly reader = new FrameReader(NEWCOMER_BYTES);
  private readonly end = deferred<string>();
  private readonly queue: unknown[] = [];
  private handler: ((message: unknown) => void) | null = null;
  private silence: SilenceWatch | null = null;
  private pings: NodeJS.Timeout | undefined;
  private gone = false;

  constructor(private readonly socket: TLSSocket) {
    this.ended = this.end.promise;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.receive(chunk));
    socket.on('error', (error) => this.close(tlsReason(error)));
    socket.on('close', () => this.close('the connection was closed'));
  }

  /** Resolves, at the side that connected, when the other side has proven the world's token. Rejects when the link ends before. */
  async secured(): Promise<void> {
    await this.beforeEnd(once(this.socket, 'secureConnect'));
  }

  /** The other side has joined the world: it may send long messages. */
  trust(): void {
    this.reader.limit = MAX_BYTES;
  }

  /** From now on says regularly that this side lives, and ends the link when the other side is silent for too long. */
  watch({ ping_ms, silence_ms }: LinkWatch): void {
    if (this.gone) return;
    this.pings = setInterval(() => this.send({ kind: 'ping' }), ping_ms);
    this.silence = new SilenceWatch(silence_ms, silence_ms, (ms) =>
      this.close(`nothing was heard for ${ms} ms`),
    );
  }

  send(message: object): void {
    if (this.gone) return;
    this.socket.write(encodeFrame(message));
    if (this.socket.writableLength > MAX_UNSENT_BYTES) this.close('the other side does not read');
  }

  /** Every message from now on, those first that came before; an error that the handler throws ends the link. */
  onMessage(handler: (message: unknown) => void): void {
    this.handler = handler;
    this.deliver();
  }

  /** The next message alone. Rejects when the link ends before it comes. */
  async next(): Promise<unknown> {
    const message = deferred<unknown>();
    this.onMessage((value) => {
      this.handler = null;
      message.resolve(value);
    });
    return this.beforeEnd(message.promise);
  }

  /** Ends the link; what was sent before still leaves. Idempotent, the first reason counts. */
  close(reason: string): void {
    if (this.gone) return;
    this.gone = true;
    clearInterval(this.pings);
    this.silence?.close();
    if (this.socket.writableLength > MAX_UNSENT_BYTES) this.socket.destroy();
    else if (!this.socket.destroyed) this.destroySoon();
    this.end.resolve(reason);
  }

  private destroySoon(): void {
    const timer = setTimeout(() => this.socket.destroy(), LINGER_MS);
    this.socket.once('close', () => clearTimeout(timer));
    this.socket.destroySoon();
  }

  private beforeEnd<T>(event: Promise<T>): Promise<T> {
    return Promise.race([event, this.ended.then((reason) => Promise.reject(new Error(reason)))]);
  }

  private receive(chunk: Buffer): void {
    if (this.gone) return;
    this.silence?.heard();
    this.reader.push(chunk);
    try {
      for (let message = this.reader.next(); message !== undefined; message = this.reader.next()) {
        if (!isPing(message)) this.queue.push(message);
      }
    } catch (error) {
      this.close((error as Error).message);
    }
    this.deliver();
  }

  private deliver(): void {
    try {
      while (this.handler && this.queue.length > 0) this.handler(this.queue.shift());
    } catch (error) {
      this.close((error as Error).message);
    }
  }
}

function isPing(message: unknown): boolean {
  return (message as { kind?: unknown } | null)?.kind === 'ping';
}
