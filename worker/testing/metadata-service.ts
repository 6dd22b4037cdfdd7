import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

/** Stand-in for EC2's instance metadata service, version 2, on loopback. */
export interface MetadataService {
  readonly url: string;
  /** Values by path below `/latest/meta-data/`. */
  readonly documents: Map<string, string>;
  /** `METHOD path status` of all replies, in order. */
  readonly answered: string[];
  /** Invalidates all tokens; new ones can be requested. */
  forgetTokens(): void;
  close(): Promise<void>;
}

const TOKEN_HEADER = 'x-aws-ec2-metadata-token';
const DATA = '/latest/meta-data/';

export async function startMetadataService(): Promise<MetadataService> {
  const documents = new Map<string, string>();
  const answered: string[] = [];
  const tokens = new Set<string>();

  function answer({ method, url = '', headers }: IncomingMessage): [status: number, text: string] {
    if (url === '/latest/api/token') {
      if (method !== 'PUT') return [405, ''];
      if (!/^\d+$/.test(String(headers[`${TOKEN_HEADER}-ttl-seconds`]))) return [400, ''];
      const token = randomUUID();
      tokens.add(token);
      return [200, token];
    }
    if (!tokens.has(String(headers[TOKEN_HEADER]))) return [401, ''];
    const text = url.startsWith(DATA) ? documents.get(url.slice(DATA.length)) : undefined;
    return text === undefined ? [404, ''] : [200, text];
  }

  const server = createServer((request, response) => {
    const [status, text] = answer(request);
    answered.push(`${request.method} ${request.url} ${status}`);
    response.writeHead(status).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    documents,
    answered,
    forgetTokens: () => tokens.clear(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
