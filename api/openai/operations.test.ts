/** Every operation of the official client is supported or refused by name, and docs/openai.md has the table. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

interface Sent {
  method: string;
  path: string;
}

/** A parameter object that has every field. */
const anything = new Proxy(
  {},
  { get: (_, name) => (typeof name === 'string' ? 'a' : undefined), ownKeys: () => [] },
);
/** Arguments of the client's methods: with ids in the path first, then parameters. */
const ARGUMENTS: unknown[][] = [
  ['a', { x: 1 }],
  ['a', anything],
  ['a', 'a', anything],
  [anything],
  ['a', {}, anything],
];

/** Methods that consist of calls of others. */
const COMPOSED =
  /^(runTools|\w*[sS]tream|parse|poll|waitForProcessing|\w+Poll|upload|unwrap|verifySignature)$/;

/** Requests of all methods of the client's resources, by name. */
async function operationsOf(): Promise<Map<string, Sent>> {
  let sent: Sent | null = null;
  const client = new OpenAI({
    apiKey: 'key',
    baseURL: 'http://inside.invalid',
    maxRetries: 0,
    fetch: async (url, init) => {
      const { protocol, pathname: path } = new URL(String(url));
      // With a data URL the client finds out what fetch can do.
      if (protocol !== 'data:') sent ??= { method: (init?.method ?? 'GET').toUpperCase(), path };
      return new Response('{"data":[]}', { headers: { 'content-type': 'application/json' } });
    },
  });
  const requestOf = async (call: (...args: unknown[]) => unknown): Promise<Sent | null> => {
    sent = null;
    for (const args of ARGUMENTS) {
      try {
        const answer = Promise.resolve(call(...args)).catch(() => undefined);
        await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 20))]);
      } catch {
        // These are not its arguments.
      }
      if (sent !== null) break;
    }
    return sent;
  };
  const found = new Map<string, Sent>();
  const walk = async (resource: object, name: string): Promise<void> => {
    for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(resource))) {
      const call = (resource as Record<string, unknown>)[method];
      if (method === 'constructor' || method.startsWith('_') || COMPOSED.test(method)) continue;
      if (typeof call !== 'function') continue;
      const request = await requestOf(call.bind(resource));
      if (request !== null) found.set(`${name}.${method}`, request);
    }
    await walkAll(resource, `${name}.`);
  };
  const walkAll = async (parent: object, before: string): Promise<void> => {
    for (const [name, value] of Object.entries(parent))
      if (!name.startsWith('_') && value?._client === client) await walk(value, `${before}${name}`);
  };
  await walkAll(client, '');
  return found;
}

/** Lines of the table: resources with a supported method, then the shortest prefixes of resources without one. */
function tableOf(operations: ReadonlyMap<string, boolean>): string {
  const names = [...operations.keys()].sort();
  const [rows, refused] = [new Set<string>(), new Set<string>()];
  for (const name of names) {
    const resource = name.slice(0, name.lastIndexOf('.'));
    const methods = (supported: boolean) =>
      names
        .filter((other) => other.slice(0, other.lastIndexOf('.')) === resource)
        .filter((other) => operations.get(other) === supported)
        .map((other) => `\`${other.slice(resource.length + 1)}\``)
        .join(', ') || '–';
    const prefixes = resource.split('.').map((_, i, parts) => parts.slice(0, i + 1).join('.'));
    const whole = prefixes.find((prefix) =>
      names.every((other) => !other.startsWith(`${prefix}.`) || !operations.get(other)),
    );
    if (whole === undefined) rows.add(`| \`${resource}\` | ${methods(true)} | ${methods(false)} |\n`);
    else refused.add(`\`${whole}\``);
  }
  return `${[...rows].join('')}| ${[...refused].join(', ')} | – | all |\n`;
}

t.test('operations of the official client', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const operations = new Map<string, boolean>();
  for (const [name, { method, path }] of await operationsOf()) {
    const reply = await stack.app.inject({
      method: method as 'GET',
      url: `/openai/v1${path}`,
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    const { error } = reply.json<{ error?: { code: string; message: string } }>();
    operations.set(name, error?.code !== 'not_supported');
    t.ok(reply.statusCode < 500, `${name}: ${reply.statusCode}`);
    if (error?.code === 'not_supported') t.match(error.message, `${method} /openai/v1${path}`);
  }
  t.ok(operations.size > 100, 'the client was read');
  t.ok(operations.get('fineTuning.jobs.create') && operations.get('chat.completions.create'));
  t.equal(operations.get('embeddings.create'), false);
  const docs = readFileSync(join(projectRoot(), 'docs', 'openai.md'), 'utf8');
  const table = tableOf(operations);
  t.ok(docs.includes(table), `docs/openai.md has this table:\n${table}`);
});
