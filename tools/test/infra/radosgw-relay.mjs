// A proxy in front of radosgw for the AWS provider: adapts two answers that differ from S3 and for which the provider
// would wait forever.
import { createServer, request } from 'node:http';

const NO_BLOCK = '<Error><Code>NoSuchPublicAccessBlockConfiguration</Code></Error>';

/** Handlers by subresource of the bucket; each gets the server's complete reply and may change it. */
const answers = {
  // S3 returns a field about transitions between storage classes; radosgw does not know it.
  lifecycle: (reply) => ({
    ...reply,
    headers: { ...reply.headers, 'x-amz-transition-default-minimum-object-size': 'all_storage_classes_128K' },
  }),
  // Without a public access block S3 has no such configuration; radosgw returns one with all values false.
  publicAccessBlock: (reply) =>
    /<\w+>true<\/\w+>/i.test(reply.body)
      ? reply
      : { status: 404, headers: { 'content-type': 'application/xml' }, body: NO_BLOCK },
};

const askedFor = (url) => [...new URL(url, 'http://relay').searchParams.keys()][0];

async function answerChanged(incoming, outgoing, change) {
  let body = '';
  incoming.setEncoding('utf8');
  for await (const chunk of incoming) body += chunk;
  const { 'content-length': _, ...headers } = incoming.headers;
  const reply = { status: incoming.statusCode, headers, body };
  const changed = reply.status === 200 ? change(reply) : reply;
  outgoing.writeHead(changed.status, changed.headers).end(changed.body);
}

/**
 * @param {{host: string, port: number}} server
 * @returns {Promise<{endpoint: string, close: () => Promise<void>}>}
 */
export async function startRelay({ host, port }) {
  const relay = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const change = method === 'GET' ? answers[askedFor(url)] : undefined;
    const onward = request({ host, port, method, path: url, headers }, (reply) => {
      if (change) answerChanged(reply, outgoing, change).catch(() => outgoing.destroy());
      else reply.pipe(outgoing.writeHead(reply.statusCode, reply.headers));
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  await new Promise((resolve) => relay.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${relay.address().port}`,
    close: () => {
      relay.closeAllConnections();
      return new Promise((resolve) => relay.close(resolve));
    },
  };
}
