/** Client input is logged as part of a value, never as a separate line, and secrets are not logged. */
import { once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

t.test('log injection', async (t) => {
  const lines: string[] = [];
  const log = createLogger({
    level: 'debug',
    name: 'api',
    destination: { write: (line: string) => void lines.push(line) },
  });
  const stack = await startTestStack({ log });
  t.teardown(() => stack.close());
  const { hostname, port } = new URL(await stack.listen());
  const forged = '{"level":"fatal","name":"api","msg":"forged"}';
  const breaks = ['\n', '\r\n', '\u0085', '\u2028', '%0a', '%0d%0a', '\\n', '\u001b[2K\r'];
  const dataset = await stack.upload('some text '.repeat(100));

  for (const end of breaks) {
    const evil = `x${end}${forged}`;
    const payload = {
      name: evil,
      labels: { team: evil },
      model: { preset: evil },
      data: { dataset: dataset.id },
    };
    await stack.app.inject({
      method: 'POST',
      url: '/v1/jobs',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'idempotency-key': encodeURIComponent(evil) },
      payload,
    });
    await stack.app.inject({
      url: `/v1/jobs/${encodeURIComponent(evil)}`,
      headers: { authorization: `Bearer ${evil}` },
    });
    await stack.app.inject({
      url: '/v1/jobs',
      headers: { 'x-request-id': encodeURIComponent(evil), 'user-agent': evil },
    });
    // Bytes that no client library sends.
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.resume();
    socket.end(
      `GET /v1/jobs?state=${end}${forged} HTTP/1.1\r\nHost: x\r\nUser-Agent: ${evil}\r\nConnection: close\r\n\r\n`,
    );
    await once(socket, 'close');
  }
  await stack.app.inject({ url: `/v1/jobs?token=${'s3cret'.repeat(4)}&X-Amz-Signature=abcdef`, headers: {} });

  t.ok(lines.length >= 3 * breaks.length, `${lines.length} lines`);
  for (const text of lines) {
    t.equal(text.indexOf('\n'), text.length - 1, 'one line each');
    t.notMatch(text.slice(0, -1), /\p{Cc}/u, 'no control characters');
    const entry = JSON.parse(text) as { level: string; msg?: string };
    t.not(entry.level, 'fatal');
    t.notMatch(entry.msg ?? '', /^forged$/);
  }
  const all = lines.join('');
  t.notMatch(all, ADMIN_KEY);
  t.notMatch(all, /abcdef/);
});
