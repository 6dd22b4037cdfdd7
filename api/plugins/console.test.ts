import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import { startTestStack } from '../testing/stack.js';

t.test('the files of the console', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const get = (url: string, encoding?: string) =>
    stack.app.inject({ url, headers: encoding === undefined ? {} : { 'accept-encoding': encoding } });
  const page = await get('/');
  t.equal(page.statusCode, 200);
  t.match(page.headers['content-type'], /^text\/html/);
  t.equal(page.headers['cache-control'], 'no-cache');
  t.match(page.headers['content-security-policy'], /^default-src 'self';/);
  t.notMatch(
    page.body,
    /<script(?![^>]* src=)[^>]*>|<style| style=| on\w+=/,
    'nothing that the policy forbids',
  );

  const [script = '', ...others] = [...page.body.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(
    ([, path]) => path,
  );
  t.match(script, /\.js$/);
  const plain = await get(script);
  t.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable');
  const small = await get(script, 'gzip, br');
  t.equal(small.headers['content-encoding'], 'br');
  t.equal(brotliDecompressSync(small.rawPayload).toString(), plain.body);
  const older = await get(script, 'gzip');
  t.equal(gunzipSync(older.rawPayload).toString(), plain.body);

  const first = await Promise.all(['/', script, ...others].map((url) => get(url as string, 'br')));
  const bytes = first.reduce((sum, { rawPayload }) => sum + rawPayload.length, 0);
  t.ok(bytes <= 120 * 1024, `${bytes} bytes for the first view`);

  for (const other of ['/assets/none.js', '/runs', '/assets/../../package.json'])
    t.equal((await get(other)).statusCode, 404, other);
});
