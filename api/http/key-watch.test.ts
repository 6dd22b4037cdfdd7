import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import t from 'tap';
import type { Principal } from '../../state/index.js';
import { KeyWatch } from './key-watch.js';

t.test('the key of a disconnected client is not looked up', async (t) => {
  const looked: string[] = [];
  const keys = {
    async findPrincipal(secret: string) {
      looked.push(secret);
      const api_key = { last_used_at: new Date().toISOString() };
      return { expires_at: null, api_key } as Principal;
    },
    touchApiKey: async () => undefined,
    findSession: async () => null,
  };
  const watch = new KeyWatch(keys, (error) => t.fail(String(error)));
  t.teardown(() => watch.close());
  const request = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } }) as FastifyRequest;
  const leaves = new AbortController();
  watch.watch(request('gone'), AbortSignal.abort());
  watch.watch(request('leaves'), leaves.signal);
  watch.watch(request('stays'), new AbortController().signal);
  leaves.abort();
  while (!looked.includes('stays')) await sleep(10);
  t.strictSame(looked, ['stays'], 'they would have been looked up first');
});
