/** Connection to the API server: HTTPS with the cluster's certificate authority, and a token or client certificate. */
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { StringDecoder } from 'node:string_decoder';
import type { ClusterAccess } from './access.js';
import { errorOf, KubernetesError } from './errors.js';

type Method = 'GET' | 'POST' | 'DELETE';

/** Time for an answer. */
const ANSWER_MS = 8_000;
/** Bound of an answer: a page of a list is far smaller. */
const MAX_BODY_BYTES = 64 * 1024 ** 2;
/** Bound of a line of a watch. */
const MAX_LINE_CHARACTERS = 8 * 1024 ** 2;

export class Connection {
  private readonly agent: HttpAgent;

  /** @param onRequest called for each request with its verb, as roles name it */
  constructor(
    private readonly access: ClusterAccess,
    private readonly onRequest: (verb: string) => void,
  ) {
    const { ca, cert, key } = access;
    this.agent =
      access.server.protocol === 'https:'
        ? new HttpsAgent({ keepAlive: true, ca, cert, key })
        : new HttpAgent({ keepAlive: true });
  }

  get namespace(): string {
    return this.access.namespace;
  }

  /**
   * Sends a request and returns the JSON of its answer.
   * @throws KubernetesError
   */
  async json(verb: string, method: Method, path: string, body?: object): Promise<unknown> {
    const signal = AbortSignal.timeout(ANSWER_MS);
    try {
      const text = await textOf(await this.send(verb, { method, path, signal }, body));
      return JSON.parse(text);
    } catch (error) {
      throw asKubernetesError(error, signal.aborted ? `no answer in ${ANSWER_MS / 1000} seconds` : undefined);
    }
  }

  /**
   * Yields the lines of an answer as they come, until the server ends it.
   * @param idleMs time without a byte after which the connection counts as lost
   * @throws KubernetesError, also when `signal` is aborted
   */
  async *lines(
    verb: string,
    path: string,
    signal: AbortSignal,
    idleMs: number,
  ): AsyncGenerator<string, void> {
    try {
      const answer = await this.send(verb, { method: 'GET', path, signal, timeout: idleMs });
      const decoder = new StringDecoder('utf8');
      let rest = '';
      for await (const chunk of answer) {
        const lines = (rest + decoder.write(chunk as Buffer)).split('\n');
        rest = lines.pop() ?? '';
        if (rest.length > MAX_LINE_CHARACTERS) throw new Error('a line of the watch is too long');
        yield* lines;
      }
    } catch (error) {
      throw asKubernetesError(error);
    }
  }

  close(): void {
    this.agent.destroy();
  }

  /** Resolves with a successful answer, whose body has not been read. */
  private async send(verb: string, options: RequestOptions, body?: object): Promise<IncomingMessage> {
    this.onRequest(verb);
    const { server } = this.access;
    const token = await this.access.token();
    const text = body && JSON.stringify(body);
    const headers = {
      accept: 'application/json',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }),
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = server.protocol === 'https:' ? requestHttps : requestHttp;
      const path = `${server.pathname.replace(/\/$/, '')}${options.path}`;
      const sent = request(server, { ...options, path, headers, agent: this.agent }, (answer) => {
        waiting = answer;
        resolve(answer);
      });
      let waiting: ClientRequest | IncomingMessage = sent;
      sent.once('timeout', () =>
        waiting.destroy(new Error(`nothing came for ${(options.timeout ?? 0) / 1000} seconds`)),
      );
      sent.on('error', reject).end(text);
    });
    const { statusCode: status = 0 } = answer;
    if (status >= 300) throw errorOf(status, await textOf(answer));
    return answer;
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new Error('the answer is too long');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function asKubernetesError(error: unknown, instead?: string): KubernetesError {
  if (error instanceof KubernetesError) return error;
  return new KubernetesError(0, `the API server of the cluster: ${instead ?? (error as Error).message}`);
}
