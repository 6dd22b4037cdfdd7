import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import t from 'tap';
import type { Principal } from '../../state/index.js';
import { KeyWatch } from './key-watch.js';

const principal = (name: string, changes: Partial<Principal> = {}) =>
  ({
    name,
    project: 'default',
    scopes: ['jobs:read'],
    expires_at: null,
    api_key: { last_used_at: new Date().toISOString() },
    ...changes,
  }) as Principal;

const requestOf = (secret: string, changes: Partial<Principal> = {}) =>
  ({
    headers: { authorization: `Bearer ${secret}` },
    principal: principal(secret, changes),
    operation: { scopes: ['jobs:read'] },
    routeOptions: { config: {} },
  }) as unknown as FastifyRequest;

t.test('the key of a disconnected client is not looked up', async (t) => {
  const looked: string[] = [];
  const keys = {
    async findPrincipal(secret: string) {
      looked.push(secret);
      return principal(secret);
    },
    touchApiKey: async () => undefined,
    findSession: async () => null,
  };
  const watch = new KeyWatch(keys, (error) => t.fail(String(error)));
  t.teardown(() => watch.close());
  const leaves = new AbortController();
  watch.watch(requestOf('gone'), AbortSignal.abort());
  watch.watch(requestOf('leaves'), leaves.signal);
  watch.watch(requestOf('stays'), new AbortController().signal);
  leaves.abort();
  while (!looked.includes('stays')) await sleep(10);
  t.strictSame(looked, ['stays'], 'they would have been looked up first');
});

t.test('keys in a header of their own are looked up one by one', async (t) => {
  const looked = new Set<string>();
  const keys = {
    async findPrincipal(secret: string) {
      looked.add(secret);
      return principal(secret);
    },
    touchApiKey: async () => undefined,
    findSession: async () => null,
  };
  const watch = new KeyWatch(keys, (error) => t.fail(String(error)));
  t.teardown(() => watch.close());
  for (const secret of ['one', 'two']) {
    const request = {
      ...requestOf(secret),
      headers: { 'x-api-key': `tml-${secret}` },
      routeOptions: { config: { isTranslated: true, hasKeyHeader: true } },
    } as unknown as FastifyRequest;
    watch.watch(request, new AbortController().signal);
  }
  while (looked.size < 2) await sleep(10);
  t.strictSame([...looked], ['one', 'two']);
});

t.test('requests end whose principal has moved to another project, or has lost a scope', async (t) => {
  let looks = 0;
  const now = new Map([
    ['moved', principal('moved', { project: 'b' })],
    ['reduced', principal('reduced', { scopes: ['datasets'] })],
    ['admin', principal('admin', { scopes: ['admin'] })],
  ]);
  const keys = {
    async findPrincipal(secret: string) {
      looks += 1;
      return now.get(secret) ?? principal(secret);
    },
    touchApiKey: async () => undefined,
    findSession: async () => null,
  };
  const watch = new KeyWatch(keys, (error) => t.fail(String(error)));
  t.teardown(() => watch.close());
  const watched = (secret: string, changes: Partial<Principal> = {}) =>
    watch.watch(requestOf(secret, changes), new AbortController().signal);
  const ended = [watched('moved'), watched('reduced')];
  const kept = [watched('same'), watched('admin'), watched('moved', { project: 'b' })];
  while (!ended.every(({ aborted }) => aborted)) await sleep(10);
  while (looks < 8) await sleep(10);
  t.notOk(kept.some(({ aborted }) => aborted));
});
