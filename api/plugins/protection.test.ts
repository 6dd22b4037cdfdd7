import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Problem } from '../../contracts/index.js';
import { projectRoot } from '../../platform/root.js';
import { startTestStack } from '../testing/stack.js';

t.test('a key that asks too often is told when to come back; others are not touched', async (t) => {
  const stack = await startTestStack({ limits: { requests_per_minute: 3 } });
  t.teardown(() => stack.close());
  const other = await stack.headersOf('jobs:read');
  for (let request = 0; request < 3; request += 1) {
    t.equal((await stack.request({ url: '/v1/jobs' })).statusCode, 200);
  }
  const reply = await stack.request({ url: '/v1/jobs' });
  t.equal(reply.statusCode, 429);
  t.match(reply.json<Problem>(), { code: 'rate_limited', retryable: true });
  t.ok(Number(reply.headers['retry-after']) > 0);
  t.equal((await stack.request({ url: '/v1/jobs', headers: other })).statusCode, 200);
  t.equal((await stack.request({ url: '/readyz' })).statusCode, 200);
});

t.test('the dashboard', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const page = await stack.app.inject({ url: '/' });
  t.equal(page.statusCode, 200);
  t.match(page.headers['content-type'], /^text\/html/);
  t.match(page.headers['content-security-policy'], /default-src 'self'/);
  for (const file of readdirSync(join(projectRoot(), 'web'))) {
    t.equal((await stack.app.inject({ url: `/${file}` })).statusCode, 200, file);
  }
  for (const url of ['/../package.json', '/%2e%2e/package.json', '/package.json', '/.gitignore']) {
    t.equal((await stack.app.inject({ url })).statusCode, 404, url);
  }

  t.test('has nothing inline, which the content security policy would block', async (t) => {
    t.notMatch(page.body, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
  });
});
