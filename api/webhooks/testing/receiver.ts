import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WebhookMessage } from '../../../contracts/index.js';

interface ReceivedMessage {
  headers: IncomingHttpHeaders;
  body: string;
  message: WebhookMessage;
}

interface Receiver {
  url: string;
  received: readonly ReceivedMessage[];
  /** Answers with these statuses in sequence, then with 204. */
  answerWith(...statuses: number[]): void;
  /** Resolves once `condition` holds; it is evaluated after each message. */
  until(condition: (received: readonly ReceivedMessage[]) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** An HTTP server on loopback that stores received messages. */
export async function startReceiver(): Promise<Receiver> {
  const received: ReceivedMessage[] = [];
  const statuses: number[] = [];
  let wake: () => void = () => undefined;
  const server = createServer(async (request, reply) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    reply.writeHead(statuses.shift() ?? 204).end();
    received.push({ headers: request.headers, body, message: JSON.parse(body) });
    wake();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    answerWith: (...more) => void statuses.push(...more),
    async until(condition) {
      while (!condition(received)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
