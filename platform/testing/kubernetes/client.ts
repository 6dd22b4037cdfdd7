import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';

/** Client of a test's API server, with all rights. */
export class AdminClient {
  private readonly agent: Agent;

  /** @param caFile PEM, which the server may not have written yet */
  constructor(
    readonly url: string,
    readonly token: string,
    caFile: string,
  ) {
    this.agent = new Agent({ keepAlive: true, ca: readFileSync(caFile) });
  }

  get = (path: string) => this.json('GET', path);
  post = (path: string, body: object) => this.json('POST', path, body);
  put = (path: string, body: object) => this.json('PUT', path, body);
  patch = (path: string, body: object) => this.json('PATCH', path, body);
  delete = (path: string, body?: object) => this.json('DELETE', path, body);

  /** Calls `take` for each event of a watch until the server or `signal` ends it. */
  async watch(
    path: string,
    signal: AbortSignal,
    take: (event: { type: string; object: KubeObject }) => void,
  ): Promise<void> {
    const answer = await this.send('GET', path, undefined, signal);
    for await (const line of createInterface({ input: answer })) take(JSON.parse(line));
  }

  close(): void {
    this.agent.destroy();
  }

  private async json(method: string, path: string, body?: object): Promise<KubeObject> {
    const answer = await this.send(method, path, body);
    let text = '';
    for await (const chunk of answer.setEncoding('utf8')) text += chunk;
    const { statusCode = 0 } = answer;
    if (statusCode >= 300) throw new AdminError(statusCode, `${method} ${path}: ${text}`);
    return JSON.parse(text);
  }

  private send(method: string, path: string, body?: object, signal?: AbortSignal): Promise<IncomingMessage> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${this.token}`,
      'content-type': type,
      'content-length': Buffer.byteLength(text),
    };
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent: this.agent, ...(signal && { signal }) };
      request(this.url + path, options, resolve)
        .once('error', reject)
        .end(text);
    });
  }
}

export class AdminError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Fields of the API server's objects that tests read. */
export interface KubeObject {
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    namespace?: string;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: PodSpec;
  status?: {
    phase?: string;
    startTime?: string;
    token?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    containerStatuses?: object[];
  };
  /** Entries of a ConfigMap or Secret. */
  data?: Record<string, string>;
  items?: KubeObject[];
}

interface PodSpec {
  nodeName?: string;
  containers?: {
    image: string;
    command?: string[];
    env?: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[];
    envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  }[];
}
