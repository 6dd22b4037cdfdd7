import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';

/** Media types whose body a handler reads as a stream. */
const STREAMED = [
  'text/plain',
  'application/octet-stream',
  'application/x-ndjson',
  'application/jsonl',
  'application/x-tar',
];

/**
 * How bodies are read: JSON whole and parsed, uploads as the stream that they arrive in. Which of them an operation accepts
 * is for the contract to say; `contract` refuses the others before a byte is read.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.removeAllContentTypeParsers();
    const parseJson = app.getDefaultJsonParser('error', 'error');
    app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, text, done) => {
      // Clients that always name a content type send it with an empty body too.
      if (text === '') done(null, undefined);
      else parseJson(request, text, done);
    });
    app.addContentTypeParser(STREAMED, (_request, payload, done) => done(null, payload));
  },
  { name: 'bodies' },
);
