/**
 * Access matrix. Calls every operation of the contract without a key, with invalid keys, with a key that lacks the
 * scope, and with an admin key of another project. A new operation does not compile until it has a row in
 * every-operation.ts.
 */
import t from 'tap';
import { type OperationId, type Problem, SCOPES, type Scope } from '../../contracts/index.js';
import { ContractChecker } from '../testing/contract-checker.js';
import {
  fill,
  type Ids,
  masked,
  type Operation,
  operationsOf,
  ROWS,
  requestOf,
  SHARE,
  unknown,
} from '../testing/every-operation.js';
import { startTestStack } from '../testing/stack.js';

/** Every key may read its own description, and begin and end sessions of itself. */
const OF_EVERY_KEY = new Set<OperationId>(['getMe', 'createSignInCode', 'endSession', 'endSessions']);

t.test('every operation with every kind of key', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { app, store } = stack;
  const checker = ContractChecker.forContract(app.services.contract);
  const ids = await fill(stack);
  const operations = operationsOf(stack);
  t.same(new Set(operations.map(({ id }) => id)), new Set(Object.keys(ROWS)));

  const send = async (operation: Operation, authorization: string | null, records = ids) => {
    const request = requestOf(operation, records);
    const headers = { ...request.headers, ...(authorization !== null && { authorization }) };
    const reply = await app.inject({ ...request, headers });
    checker.check(request, reply);
    return reply;
  };
  const key = async (name: string, scopes: Scope[], more = {}) => {
    const { id } = await store.putApiKey(`zf_${name}`, { name, scopes, ...more });
    return { id, authorization: `Bearer zf_${name}` };
  };

  const revoked = await key('revoked', ['admin', 'operator']);
  await store.revokeApiKey(revoked.id);
  const expired = await key('expired', ['admin', 'operator'], { expires_at: new Date(0).toISOString() });
  const refused: [string, string | null][] = [
    ['no key', null],
    ['an empty header', ''],
    ['no token', 'Bearer '],
    ['another scheme', 'Basic zf_of_default'],
    ['an unknown key', 'Bearer zf_unknown'],
    ['a key with trailing characters', 'Bearer zf_of_default x'],
    ['a key that is too long', `Bearer ${'z'.repeat(600)}`],
    ['a revoked key', revoked.authorization],
    ['an expired key', expired.authorization],
    ['an unknown share', `Bearer ${SHARE}x`],
  ];
  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    for (const [title, authorization] of refused) {
      const reply = await send(operation, authorization);
      t.match(reply.json<Problem>(), { status: 401, code: 'unauthenticated' }, `${operation.id}: ${title}`);
      t.match(reply.headers['www-authenticate'], /^Bearer/);
    }
  }

  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    t.equal(
      operation.scopes.length === 0,
      OF_EVERY_KEY.has(operation.id),
      `${operation.id} requires a scope`,
    );
    if (operation.scopes.length === 0) continue;
    const others = SCOPES.filter((scope) => scope !== 'admin' && !operation.scopes.includes(scope));
    const { authorization } = await key('others', others);
    const reply = await send(operation, authorization);
    t.match(
      reply.json<Problem>(),
      { status: 403, code: 'insufficient_scope' },
      `${operation.id}: wrong scopes`,
    );
  }

  const admin = await key('foreign', ['admin'], { project: 'team-b' });
  const none = Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [name, unknown(id)]),
  ) as unknown as Ids;
  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    const { foreign } = ROWS[operation.id];
    const reply = await send(operation, admin.authorization);
    if (foreign === undefined) {
      t.equal(reply.statusCode, 404, `${operation.id}: another project`);
      const unknownReply = await send(operation, admin.authorization, none);
      t.equal(
        masked(reply.body),
        masked(unknownReply.body),
        `${operation.id}: same answer as for an unknown id`,
      );
    } else {
      t.equal(reply.statusCode, foreign, `${operation.id}: another project: ${reply.body}`);
      // The error may quote ids that the request itself contained.
      const sent = JSON.stringify(requestOf(operation, ids));
      for (const id of Object.values(ids).filter(
        (known) => known.length > 1 && known !== ids.project && !sent.includes(known),
      ))
        t.notMatch(reply.body, id, `${operation.id} discloses ${id}`);
    }
  }

  for (const operation of operations) {
    const { authorization } = await key(
      'own',
      operation.scopes.length > 0 ? [...operation.scopes] : ['models'],
    );
    const reply = await send(operation, ROWS[operation.id].isOpen ? null : authorization);
    t.equal(reply.statusCode, ROWS[operation.id].own, `${operation.id}: its own project: ${reply.body}`);
  }
});
