/**
 * A connection that repeats prepared requests with minimal CPU time: on two cores the client's work slows the server
 * that it measures. It supports only the answers of the benchmarked servers: HTTP/1.1 with Content-Length, one answer
 * at a time.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

/** Serializes a request. */
export function requestBytes(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): Buffer {
  const { host, pathname, search } = new URL(url);
  const all = { host, ...headers, ...(body && { 'content-length': String(Buffer.byteLength(body)) }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

export class HttpConnection {
  private waiting: Waiting | null = null;
  /** Received pieces of the answer. */
  private pieces: Buffer[] = [];
  private missing = 0;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', (piece: Buffer) => this.take(piece));
    socket.on('error', (error) => this.waiting?.reject(error));
    socket.on('close', () => this.waiting?.reject(new Error('the server has closed the connection')));
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new HttpConnection(socket);
  }

  /** Resolves when the whole answer has arrived; a status of 300 or above is an error. */
  ask(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close(): void {
    this.waiting = null;
    this.socket.destroy();
  }

  private take(piece: Buffer): void {
    this.pieces.push(piece);
    if (this.missing > 0) this.missing -= piece.length;
    else this.missing = missingOf(Buffer.concat(this.pieces));
    if (this.missing > 0) return;
    const { pieces, waiting } = this;
    this.pieces = [];
    this.missing = 0;
    // "HTTP/1.1 200": the first digit decides.
    const status = pieces[0]?.[9] ?? 0;
    if (status < '3'.charCodeAt(0)) waiting?.resolve();
    else waiting?.reject(new Error(`the answer was ${Buffer.concat(pieces).toString().slice(0, 1000)}`));
  }
}

/** Number of missing bytes, at least one while the head is incomplete. */
function missingOf(answer: Buffer): number {
  const end = answer.indexOf(HEAD_END);
  if (end < 0) return 1;
  const head = answer.toString('latin1', 0, end);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without a length: ${head}`);
  return end + HEAD_END.length + Number(length) - answer.length;
}
