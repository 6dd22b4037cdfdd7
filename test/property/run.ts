/** Sends generated requests to a live server and checks every answer against the contract. */
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { loadContract } from '../../api/operations.js';
import { ContractChecker } from '../../api/testing/contract-checker.js';
import { HOSTILE_MODELS } from '../../api/testing/hostile-uploads.js';
import { ADMIN_KEY } from '../../api/testing/stack.js';
import { openaiRequests } from '../openai/requests.js';
import { wrongShape } from '../openai/shapes.js';
import { ApiProcess } from './api-process.js';
import { HOSTILE, type HostileUpload, hostileRequest } from './hostile.js';
import { type ApiDocument, type GeneratedRequest, requestsOf } from './requests.js';
import { ID_TOKEN } from './values.js';

interface RunOptions {
  requests: number;
  seed: number;
  /** True to include hostile uploads of full size and measure memory, which takes minutes. */
  measured?: boolean;
}

export interface PropertyReport {
  seed: number;
  requests: number;
  /** Number of answers by operation and status. */
  statuses: Record<string, Record<string, number>>;
  hostile_uploads: number;
  /** Answers above 499, except those for missing workers. */
  server_errors: number;
  /** Event loop delay of the API after the warm-up. */
  event_loop_delay_p99_ms: number;
  event_loop_delay_max_ms: number;
  /** Code with which the lease of a job that is held the whole time was lost; null if it was not. */
  lease_error: string | null;
  /** Memory of the idle API after a garbage collection: after the warm-up, and at the end. Null if not measured. */
  rss_mib: { before: number; after: number } | null;
  /** Each kind of finding once, with an example request. */
  findings: { problem: string; request: GeneratedRequest; answer: string }[];
}

/** Consecutive requests of one operation. */
const BATCH = 10;
/** Requests per hostile upload, besides one of each kind in full size. */
const REQUESTS_PER_HOSTILE = 500;
const MIB = 1024 * 1024;
/** Sizes of the hostile uploads that come once of each kind. The full ones once blocked the event loop for a minute. */
const SMALL_BYTES = 8 * MIB;
const FULL_BYTES = 64 * MIB;
const KINDS = Object.keys(HOSTILE_MODELS);
/** Kinds of which only the newest counts. */
const ONE_OF_EACH = new Set(['key', 'wh', 'dlv', 'session', 'share', 'parted', 'part']);
/** Of this many requests, one comes with a browser session and one with a share. */
const PER_OTHER_CREDENTIAL = 8;
/** Timeout of an answer and of a stream. */
const ANSWER_TIMEOUT_MS = 30_000;

interface Answer {
  statusCode: number;
  headers: IncomingMessage['headers'];
  body: string;
  json(): unknown;
}

export async function runRequests(options: RunOptions): Promise<PropertyReport> {
  const api = await ApiProcess.start();
  try {
    return await new Run(api, options).run();
  } finally {
    await api.close();
  }
}

class Run {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly checker: ContractChecker;
  private readonly ids = new Map<string, string[]>();
  private readonly findings = new Map<string, PropertyReport['findings'][number]>();
  private readonly statuses: PropertyReport['statuses'] = {};
  private readonly contract = loadContract();
  private readonly generators = [
    ...requestsOf(this.contract.document as unknown as ApiDocument).values(),
    ...openaiRequests().values(),
  ];
  private serverErrors = 0;
  private hostileCount = 0;
  private sent = 0;

  private hostile: Promise<void> = Promise.resolve();

  constructor(
    private readonly api: ApiProcess,
    private readonly options: RunOptions,
  ) {
    this.checker = ContractChecker.forContract(this.contract);
  }

  async run(): Promise<PropertyReport> {
    const { measured = false } = this.options;
    await this.warmUp();
    const rssBefore = measured ? await this.api.restingMib() : null;
    await this.api.watchDelay();
    const requests = await this.sendAll();
    await this.hostile;
    const { p99_ms, max_ms, lease_error } = await this.api.watched();
    const rssAfter = measured ? await this.api.restingMib() : null;
    this.agent.destroy();
    return {
      seed: this.options.seed,
      requests,
      hostile_uploads: this.hostileCount,
      statuses: this.statuses,
      server_errors: this.serverErrors,
      event_loop_delay_p99_ms: p99_ms,
      event_loop_delay_max_ms: max_ms,
      lease_error,
      rss_mib: rssBefore === null || rssAfter === null ? null : { before: rssBefore, after: rssAfter },
      findings: [...this.findings.values()],
    };
  }

  /** Sends each kind of hostile upload once, and requests of each operation, so that lazy initialization is done. */
  private async warmUp(): Promise<void> {
    await this.fill();
    const { seed, measured } = this.options;
    for (const kind of KINDS) await this.sendHostile({ kind, bytes: measured ? FULL_BYTES : SMALL_BYTES });
    for (const [index, generator] of this.generators.entries())
      for (const request of fc.sample(generator, { seed: seed - 1 - index, numRuns: BATCH }))
        await this.ask(this.withIds(request));
  }

  private async sendAll(): Promise<number> {
    const { requests, seed, measured } = this.options;
    const sampled = fc.sample(HOSTILE, { seed, numRuns: Math.ceil(requests / REQUESTS_PER_HOSTILE) });
    const full = measured ? KINDS.map((kind) => ({ kind, bytes: FULL_BYTES })) : [];
    const hostile = [...full, ...sampled];
    const requestsPerHostile = Math.ceil(requests / hostile.length);
    let sent = 0;
    for (let round = 0; sent < requests; round += 1) {
      await this.fill();
      for (const [index, generator] of this.generators.entries()) {
        const numRuns = Math.min(BATCH, requests - sent);
        if (numRuns === 0) break;
        for (const request of fc.sample(generator, { seed: seed + 1000 * round + index, numRuns })) {
          const next = sent % requestsPerHostile === 0 ? hostile.shift() : undefined;
          if (next) {
            // The other requests continue meanwhile.
            await this.hostile;
            this.hostile = this.sendHostile(next);
          }
          await this.ask(this.withIds(request));
          sent += 1;
        }
      }
    }
    return sent;
  }

  private async sendHostile(upload: HostileUpload): Promise<void> {
    this.hostileCount += 1;
    await this.ask(await hostileRequest(upload));
  }

  private async fill(): Promise<void> {
    const made = await this.api.fill({ wh: this.known('wh') });
    for (const [kind, ids] of Object.entries(made))
      this.ids.set(kind, ONE_OF_EACH.has(kind) ? ids : [...ids, ...this.known(kind)].slice(0, 20));
  }

  private known(kind: string): string[] {
    return this.ids.get(kind) ?? [];
  }

  private withIds(request: GeneratedRequest): GeneratedRequest {
    const put = (text: string) =>
      text.replaceAll(ID_TOKEN, (_, kind: string, n: string) => {
        const known = this.known(kind);
        return known[Number(n) % Math.max(1, known.length)] ?? `${kind}_${'0'.repeat(26)}`;
      });
    const { url, body } = request;
    // Long polls time out because nothing changes.
    const soon = url.replaceAll(/\bwait=\d+s/g, 'wait=1s').replaceAll('%40%40', '@@');
    const at = put(soon).replaceAll('@@', '%40%40');
    return { ...request, url: at, body: typeof body === 'string' ? put(body) : body };
  }

  private async ask(request: GeneratedRequest): Promise<void> {
    const answer = await this.send(request).catch((error: Error) => error);
    if (answer instanceof Error) return this.found(`no answer: ${answer.message}`, request, '');
    const statuses = this.statuses[request.operationId] ?? {};
    this.statuses[request.operationId] = statuses;
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
    // A missing worker is reported as such; any other status above 499 is a failure.
    const expected =
      answer.statusCode < 500 ||
      /"code":"(sample_timeout|job_store_unavailable|redis_full)"/.test(answer.body);
    if (!expected) {
      this.serverErrors += 1;
      this.found(`status ${answer.statusCode}`, request, answer.body);
    }
    const wrong = request.url.startsWith('/openai/') ? wrongOpenai(answer) : this.against(request, answer);
    if (wrong !== null) this.found(wrong, request, answer.body);
    if (answer.statusCode === 201) this.remember(answer.json());
  }

  /** Returns in what the answer differs from the contract, or null. */
  private against({ method, url }: GeneratedRequest, answer: Answer): string | null {
    try {
      this.checker.check({ method: method as 'GET', url }, answer);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Returns the headers of the credential that comes with the next request: mostly a key. */
  private credential(): Record<string, string> {
    const kind = this.sent++ % PER_OTHER_CREDENTIAL;
    const [session, share] = [this.known('session')[0], this.known('share')[0]];
    if (kind === 3 && session) return { cookie: session, 'x-zerofleet-console': '1' };
    return { authorization: `Bearer ${kind === 5 && share ? share : ADMIN_KEY}` };
  }

  private remember(made: unknown): void {
    const { id }: { id?: unknown } = Object(made);
    if (typeof id !== 'string') return;
    const [kind = ''] = id.split('_', 1);
    // The newest first: old ones expire.
    if (kind !== 'key') this.ids.set(kind, [id, ...this.known(kind)].slice(0, 20));
  }

  private found(problem: string, request: GeneratedRequest, answer: string): void {
    const [head = ''] = problem.split('\n', 1);
    const name = `${request.operationId}: ${head.slice(0, 200)}`;
    const body = request.body?.slice(0, 2000).toString('latin1');
    const short = { ...request, body, url: request.url.slice(0, 2000) };
    if (!this.findings.has(name))
      this.findings.set(name, { problem: name, request: short, answer: answer.slice(0, 1000) });
  }

  private async send({ method, url, headers, body }: GeneratedRequest): Promise<Answer> {
    const { hostname, port } = new URL(this.api.url);
    const request = httpRequest({
      method,
      hostname,
      port,
      path: url,
      headers: {
        ...this.credential(),
        ...headers,
        // Node omits it for methods that normally have no body.
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
      agent: this.agent,
      timeout: ANSWER_TIMEOUT_MS,
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    // A server that refuses an upload closes the connection after its answer, while the rest of the body is still being
    // written.
    request.on('error', () => {});
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const streams = String(response.headers['content-type']).startsWith('text/event-stream');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) {
      text += piece;
      // A stream of a running job has no end.
      if (streams) break;
    }
    const { statusCode = 0, headers: answered } = response;
    return { statusCode, headers: answered, body: text, json: () => JSON.parse(text) };
  }
}

/** Returns in what an answer of an OpenAI route differs from what the official client's types say, or null. */
function wrongOpenai({ statusCode, headers, json }: Answer): string | null {
  if (String(headers['content-type']).startsWith('application/json')) return wrongShape(statusCode, json());
  return statusCode >= 400 ? 'an error that is not JSON' : null;
}
