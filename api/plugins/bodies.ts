import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';
import { bodyText, refuseUnpairedSurrogates } from '../http/json-body.js';
import { JSON_TYPE, mediaTypeOf, PROTOBUF_TYPE } from '../http/upload-body.js';

/** Media types whose body is read whole. */
const WHOLE = [JSON_TYPE, PROTOBUF_TYPE];

/** Media types whose body a handler reads as a stream. */
const STREAMED = [
  'text/plain',
  'application/octet-stream',
  'application/x-ndjson',
  'application/jsonl',
  'application/x-tar',
];

/**
 * Body parsers: JSON is read whole and parsed, uploads stay streams. The contract determines which media types an
 * operation accepts; `contract` refuses others before a byte is read.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.removeAllContentTypeParsers();
    const parseJson = app.getDefaultJsonParser('error', 'error');
    app.addContentTypeParser<Buffer>(JSON_TYPE, { parseAs: 'buffer' }, (request, bytes, done) => {
      // Clients that always send a content type send it with an empty body too.
      if (bytes.length === 0) return done(null, undefined);
      if (request.routeOptions.config.operation?.isRaw) return done(null, bytes);
      try {
        const text = bodyText(bytes);
        parseJson(request, text, (error, value) => {
          if (error !== null) return done(error, undefined);
          refuseUnpairedSurrogates(text, value);
          done(null, value);
        });
      } catch (error) {
        done(error as Error, undefined);
      }
    });
    // No route: the answer needs no body.
    app.addHook('preParsing', (request, reply, payload, done) => {
      if (!request.is404) return done(null, payload);
      request.routeOptions.handler.call(request.server, request, reply);
    });
    const timeoutMs = app.services.limits.json_body_timeout_ms;
    app.addHook('preParsing', (request, reply, payload, done) => {
      if (!WHOLE.includes(mediaTypeOf(request))) return done(null, payload);
      if (request.raw.destroyed || reply.raw.destroyed) return done(null, payload); // the reader has stopped
      const timer = setTimeout(() => {
        reply.header('connection', 'close');
        // The reader must get the error: only then an answer is sent.
        payload.emit(
          'error',
          new ZerofleetError('request_timeout', 'the body of the request did not arrive in time'),
        );
      }, timeoutMs);
      const stop = () => clearTimeout(timer);
      payload.once('end', stop).once('close', stop);
      // A request that is refused before its body is read has neither of them.
      reply.raw.once('finish', stop).once('close', stop);
      done(null, payload);
    });
    app.addContentTypeParser(STREAMED, (_request, payload, done) => done(null, payload));
  },
  { name: 'bodies', dependencies: ['services'] },
);
