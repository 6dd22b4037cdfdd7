import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import t from 'tap';
import { SCOPES } from '../contracts/index.js';
import { projectRoot } from '../platform/process/root.js';
import { handlers } from './handlers/index.js';
import { loadContract } from './operations.js';
import { ContractReader } from './testing/contract-reader.js';

const contract = loadContract();

t.test('the operations of the contract and the handlers are the same set', async (t) => {
  t.same([...contract.operations.keys()].sort(), Object.keys(handlers).sort());
});

t.test('every operation documents its errors', async (t) => {
  for (const [path, item] of Object.entries(contract.document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (method === 'parameters') continue;
      const { responses } = operation as { responses: Record<string, unknown> };
      t.ok(responses['500'] && responses['429'], `${method} ${path}`);
    }
  }
});

t.test('an operation that takes an idempotency key documents a used key', async (t) => {
  for (const [path, item] of Object.entries(contract.document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const { responses, parameters = [] } = operation as {
        responses?: Record<string, unknown>;
        parameters?: { $ref?: string }[];
      };
      if (!parameters.some(({ $ref }) => $ref === '#/components/parameters/IdempotencyKey')) continue;
      t.ok(responses?.['409'] && responses['422'], `${method} ${path}`);
    }
  }
});

/** Monitoring calls these often; they do not count against rate limits. */
const UNCOUNTED = ['getHealth', 'getReadiness'];

t.test('every answer documents the common headers', async (t) => {
  for (const { id, answers } of new ContractReader(contract).operations) {
    for (const [status, { headers = {} }] of answers) {
      t.ok(headers['X-Request-Id'], `${id} ${status}`);
      if (UNCOUNTED.includes(id)) continue;
      for (const part of ['Limit', 'Remaining', 'Reset'])
        t.ok(headers[`RateLimit-${part}`], `${id} ${status} ${part}`);
    }
  }
});

t.test('every scope is required by some operation, or includes the others', async (t) => {
  const asked = new Set([...contract.operations.values()].flatMap(({ scopes }) => scopes ?? []));
  t.same([...asked].sort(), [...SCOPES].sort());
});

t.test('what takes compute of workers needs the scope that creates jobs', async (t) => {
  for (const id of ['createJob', 'exportCheckpoint', 'sampleCheckpoint', 'sampleModel'] as const)
    t.ok(contract.operations.get(id)?.scopes?.includes('jobs:write'), id);
});

t.test('the generated types match the contract', async (t) => {
  const root = projectRoot();
  const nodes = await openapiTS(new URL(`file://${join(root, 'openapi.yaml')}`), {
    defaultNonNullable: false,
  });
  const committed = readFileSync(join(root, 'contracts/generated/openapi.ts'), 'utf8');
  t.equal(
    committed.slice(committed.indexOf('export ')),
    astToString(nodes).slice(astToString(nodes).indexOf('export ')),
  );
});
