import { once } from 'node:events';
import { connect } from 'node:net';
import Fastify from 'fastify';
import t from 'tap';
import { nearestName } from '../../contracts/index.js';
import { entityTag, matchesTag } from './etag.js';
import { SSE_HEARTBEAT, sseMessage } from './sse.js';
import { endUnusedConnections } from './unused-connections.js';

t.test('nearestName', async (t) => {
  const names = ['lr', 'steps', 'seed', 'micro_batch_size', 'global_batch_size'];
  t.equal(nearestName('stepz', names), 'steps');
  t.equal(nearestName('Steps', names), 'steps');
  t.equal(nearestName('microbatchsize', names), 'micro_batch_size');
  t.equal(nearestName('lr_', names), 'lr');
  t.equal(nearestName('xy', names), undefined);
  t.equal(nearestName('completely_different', names), undefined);
  t.equal(nearestName('steps', []), undefined);
});

t.test('entity tags', async (t) => {
  const tag = entityTag('{"a":1}');
  t.match(tag, /^"[\w-]{22}"$/);
  t.equal(entityTag('{"a":1}'), tag);
  t.not(entityTag('{"a":2}'), tag);
  for (const header of [tag, `W/${tag}`, `"x", ${tag}`, '*']) t.equal(matchesTag(header, tag), true, header);
  for (const header of [undefined, '', '"x"', tag.slice(1)])
    t.equal(matchesTag(header, tag), false, String(header));
});

t.test('server-sent events', async (t) => {
  t.equal(
    sseMessage({ id: '7', event: 'metric', data: { text: 'two\nlines' } }),
    'id: 7\nevent: metric\ndata: {"text":"two\\nlines"}\n\n',
  );
  t.equal(sseMessage({ event: 'end', data: {} }), 'event: end\ndata: {}\n\n');
  t.match(SSE_HEARTBEAT, /^:.*\n\n$/, 'a comment');
});

t.test('a closing server does not wait for connections without a request', async (t) => {
  const app = Fastify({ forceCloseConnections: 'idle' });
  endUnusedConnections(app, new AbortController().signal);
  app.get('/', async () => 'here');
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const accepted = once(app.server, 'connection');
  const unused = connect(Number(new URL(url).port), '127.0.0.1');
  await accepted;
  const ended = once(unused, 'close');
  t.equal(await (await fetch(url)).text(), 'here');
  // Otherwise it would wait forever: this server has no timeout for it.
  await app.close();
  await ended;
});
