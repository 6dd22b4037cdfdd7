/** Sessions in a real browser: what its scripts see, and what it sends for the page of another origin. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { AuditEntry, Page, SignInCode } from '../../../contracts/index.js';
import { noBrowser, openPage } from '../../testing/browser.js';
import { startTestStack } from '../../testing/stack.js';

/** A script of the console's origin. */
const ownScript = (code: string, job: string) => `(async () => {
  const own = { 'x-zerofleet-console': '1' };
  const post = async (path, headers, body) => (await fetch(path, { method: 'POST', headers, body })).status;
  const json = { ...own, 'content-type': 'application/json' };
  const signedIn = await post('/v1/sessions', json, JSON.stringify({ code: '${code}' }));
  const stream = new EventSource('/v1/jobs/${job}/stream');
  const event = await new Promise((resolve) => {
    stream.addEventListener('event', ({ data }) => resolve(JSON.parse(data).type));
    stream.addEventListener('error', () => resolve('refused'));
  });
  stream.close();
  const read = (await fetch('/v1/me')).status;
  const pause = '/v1/jobs/${job}/pause';
  const statuses = [signedIn, read, await post(pause, {}), await post(pause, own)];
  return { statuses, event, cookies: document.cookie };
})()`;

t.test('a session in a browser', { skip: noBrowser, timeout: 120_000 }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const job = await stack.createJob();
  const { code } = (await stack.request({ method: 'POST', url: '/v1/sign-in-codes' })).json<SignInCode>();
  const { page } = await openPage(t);
  await page.goto(`${base}/`);
  t.strictSame(await page.evaluate(ownScript(code, job.id)), {
    statuses: [201, 200, 403, 202],
    event: 'job.created',
    cookies: '',
  });

  // Another port of the same host: the browser sends the cookie in spite of SameSite=Strict.
  const cancel = `${base}/v1/jobs/${job.id}/cancel`;
  const evil = createServer((_request, reply) => {
    reply.setHeader('content-type', 'text/html');
    reply.end(`<form method="post" enctype="text/plain" action="${cancel}"></form>`);
  });
  await once(evil.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => evil.close());
  const refused = async (url: string, script: string) => {
    await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
    // The reply is shown before the next page is asked for, which would interrupt it.
    const [reply] = await Promise.all([
      page.waitForResponse(url),
      page.waitForURL(url),
      page.evaluate(script),
    ]);
    t.equal(reply.status(), 403, script);
  };
  await refused(`${base}/v1/me`, `location.href = '${base}/v1/me'`);
  await refused(cancel, 'document.forms[0].submit()');
  const log = await stack.request({ url: '/v1/audit-log?operation=cancelJob' });
  t.match(log.json<Page<AuditEntry>>().data, [{ session: true, code: 'csrf_rejected' }]);
  t.equal((await stack.store.getJob(job.id))?.state, 'paused');
});
