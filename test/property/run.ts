/** Sends generated requests to a live server and holds every answer against the contract. */
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { ulid } from 'ulid';
import { ContractChecker } from '../../api/testing/contract-checker.js';
import { ADMIN_KEY, startTestStack, type TestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { S3DatasetSources } from '../../platform/dataset-sources.js';
import { modelFolder, TINY_TOKENIZER } from '../../platform/testing/models.js';
import { S3StandIn } from '../../platform/testing/s3-stand-in.js';
import { type ApiDocument, type GeneratedRequest, requestsOf } from './requests.js';
import { ID_TOKEN, OPEN_BUCKET, OPEN_KEYS } from './values.js';

export interface PropertyReport {
  seed: number;
  requests: number;
  /** How often each operation was answered with each status. */
  statuses: Record<string, Record<string, number>>;
  /** Each kind of finding once, with a request that shows it. */
  findings: { problem: string; request: GeneratedRequest; answer: string }[];
}

/** Of one operation in a row; then the next. */
const BATCH = 10;
/** No answer, and no stream, is waited for longer. */
const PATIENCE_MS = 30_000;

interface Answer {
  statusCode: number;
  headers: IncomingMessage['headers'];
  body: string;
  json(): unknown;
}

export async function runRequests(options: { requests: number; seed: number }): Promise<PropertyReport> {
  const bucket = await openBucket();
  const stack = await startTestStack({
    sources: bucket.sources,
    limits: { requests_per_minute: 1_000_000_000, sample_timeout_ms: 50 },
  });
  try {
    return await new Run(stack, options).run();
  } finally {
    await stack.close();
    await bucket.close();
  }
}

/** A bucket with something of each kind that a document may name by URI. */
async function openBucket(): Promise<{ sources: S3DatasetSources; close(): Promise<void> }> {
  process.env.AWS_ACCESS_KEY_ID ??= 'test';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'test';
  const { text, lines, model, tokenizer } = OPEN_KEYS;
  const content = 'to be or not to be, that is the question. '.repeat(20);
  const bucket = new S3StandIn();
  bucket.objects.set(text, Buffer.from(content));
  bucket.objects.set(lines, Buffer.from(`${JSON.stringify({ text: content })}\n`.repeat(20)));
  bucket.objects.set(tokenizer, Buffer.from(JSON.stringify(TINY_TOKENIZER)));
  for (const [name, bytes] of modelFolder()) bucket.objects.set(`${model}/${name}`, bytes);
  const door = await bucket.open();
  const allowed = [{ bucket: OPEN_BUCKET, prefix: '' }];
  const sources = new S3DatasetSources({ allowed, s3Endpoint: door.endpoint });
  return {
    sources,
    async close() {
      await sources.close();
      door.close();
    },
  };
}

class Run {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #checker: ContractChecker;
  readonly #ids = new Map<string, string[]>();
  readonly #findings = new Map<string, PropertyReport['findings'][number]>();
  readonly #statuses: PropertyReport['statuses'] = {};

  constructor(
    private readonly stack: TestStack,
    private readonly options: { requests: number; seed: number },
  ) {
    this.#checker = new ContractChecker(stack.app.services.contract);
  }

  async run(): Promise<PropertyReport> {
    const base = await this.stack.listen();
    const { document } = this.stack.app.services.contract;
    const generators = requestsOf(document as unknown as ApiDocument);
    const { requests, seed } = this.options;
    let sent = 0;
    for (let round = 0; sent < requests; round += 1) {
      await this.#fill();
      for (const [index, generator] of [...generators.values()].entries()) {
        const numRuns = Math.min(BATCH, requests - sent);
        if (numRuns === 0) break;
        for (const request of fc.sample(generator, { seed: seed + 1000 * round + index, numRuns })) {
          await this.#ask(base, this.#withIds(request));
          sent += 1;
        }
      }
    }
    this.#agent.destroy();
    return { seed, requests: sent, statuses: this.#statuses, findings: [...this.#findings.values()] };
  }

  /** Something of each kind, in states that requests alone do not bring about. */
  async #fill(): Promise<void> {
    const { store, createJob } = this.stack;
    const [queued, running, ended] = [await createJob(), await createJob(), await createJob()];
    await claimAndTrain(store, running.id, { steps: 3 });
    await claimAndTrain(store, ended.id, { steps: 2, finish: true });
    const checkpoints = (await store.listCheckpoints(running.id)).data;
    const key = await store.putApiKey(`zf_${ulid()}`, { name: 'other', scopes: ['jobs:read'] });
    this.#ids.set('job', [queued.id, running.id, ended.id, ...this.#known('job')].slice(0, 20));
    this.#ids.set('ckpt', [...checkpoints.map(({ id }) => id), ...this.#known('ckpt')].slice(0, 20));
    this.#ids.set('ds', [queued.spec.data.dataset, ...this.#known('ds')].slice(0, 20));
    this.#ids.set('key', [key.id]);
    await this.#fillWebhook();
  }

  async #fillWebhook(): Promise<void> {
    const { store } = this.stack;
    const [webhook_id, id, created_at] = [`wh_${ulid()}`, `dlv_${ulid()}`, new Date().toISOString()];
    const webhook = {
      id: webhook_id,
      url: 'https://hooks.example.com/',
      description: '',
      events: ['*'],
      created_at,
    };
    const secret = { secret: 'whsec_AA==', created_at, expires_at: null };
    // One fills the place of another: there may be a hundred.
    for (const old of this.#known('wh')) await store.deleteWebhook('default', old);
    await store.createWebhook('default', { ...webhook, jobs: 'all' }, secret);
    const data = { job_id: this.#known('job')[0] ?? '', seq: 1, details: {} };
    const message = { type: 'job.created', timestamp: created_at, data };
    await store.addDelivery({ id, webhook_id, message_id: 'msg_1', message, created_at });
    this.#ids.set('wh', [webhook_id]);
    this.#ids.set('dlv', [id]);
  }

  #known(kind: string): string[] {
    return this.#ids.get(kind) ?? [];
  }

  #withIds(request: GeneratedRequest): GeneratedRequest {
    const put = (text: string) =>
      text.replaceAll(ID_TOKEN, (_, kind: string, n: string) => {
        const known = this.#known(kind);
        return known[Number(n) % Math.max(1, known.length)] ?? `${kind}_${'0'.repeat(26)}`;
      });
    const { url, body } = request;
    // Nothing changes while the run waits for a change.
    const soon = url.replaceAll(/\bwait=\d+s/g, 'wait=1s').replaceAll('%40%40', '@@');
    const at = put(soon).replaceAll('@@', '%40%40');
    return { ...request, url: at, body: body === undefined ? body : put(body) };
  }

  async #ask(base: string, request: GeneratedRequest): Promise<void> {
    const answer = await this.#send(base, request).catch((error: Error) => error);
    if (answer instanceof Error) return this.#found(`no answer: ${answer.message}`, request, '');
    const statuses = this.#statuses[request.operationId] ?? {};
    this.#statuses[request.operationId] = statuses;
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
    // What no worker is there for is told as such; everything else above 499 is a fault.
    const expected =
      answer.statusCode < 500 || /"code":"(sample_timeout|job_store_unavailable)"/.test(answer.body);
    if (!expected) this.#found(`status ${answer.statusCode}`, request, answer.body);
    try {
      this.#checker.check({ method: request.method as 'GET', url: request.url }, answer);
    } catch (error) {
      this.#found(error instanceof Error ? error.message : String(error), request, answer.body);
    }
    if (answer.statusCode === 201) this.#remember(answer.json());
  }

  #remember(made: unknown): void {
    const { id }: { id?: unknown } = Object(made);
    if (typeof id !== 'string') return;
    const [kind = ''] = id.split('_', 1);
    // The newest first: the old ones end and go.
    if (kind !== 'key') this.#ids.set(kind, [id, ...this.#known(kind)].slice(0, 20));
  }

  #found(problem: string, request: GeneratedRequest, answer: string): void {
    const [head = ''] = problem.split('\n', 1);
    const name = `${request.operationId}: ${head.slice(0, 200)}`;
    const short = { ...request, body: request.body?.slice(0, 2000), url: request.url.slice(0, 2000) };
    if (!this.#findings.has(name))
      this.#findings.set(name, { problem: name, request: short, answer: answer.slice(0, 1000) });
  }

  async #send(base: string, { method, url, headers, body }: GeneratedRequest): Promise<Answer> {
    const { hostname, port } = new URL(base);
    const request = httpRequest({
      method,
      hostname,
      port,
      path: url,
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        ...headers,
        // Node leaves it out where a method has no body as a rule.
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
      agent: this.#agent,
      timeout: PATIENCE_MS,
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const streams = String(response.headers['content-type']).startsWith('text/event-stream');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) {
      text += piece;
      // A stream of a job that runs has no end.
      if (streams) break;
    }
    const { statusCode = 0, headers: answered } = response;
    return { statusCode, headers: answered, body: text, json: () => JSON.parse(text) };
  }
}
