import { Readable } from 'node:stream';
import { setImmediate as otherWork } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';

/** Characters of a piece. */
const PIECE = 64 * 1024;
/** Depth to which lists and objects are written item by item: below, a value is small. */
const DEPTH = 5;
/** Items of a document that is written at once. */
const FEW = 500;

/** Sends a document. One with many `items` is written in pieces, between which other requests are answered. */
export function sendJson(reply: FastifyReply, document: object, items: number): FastifyReply {
  if (items < FEW) return reply.send(document);
  return reply.type('application/json; charset=utf-8').send(Readable.from(jsonPieces(document)));
}

/** Stands for a value of JSON that is made when it is written. */
export function whenWritten<T>(make: () => T): T {
  return { toJSON: make } as T;
}

/**
 * Yields the JSON text of a value in pieces. Other requests are answered between two pieces.
 * @param value of JSON's types only; undefined fields are left out
 */
export async function* jsonPieces(value: unknown): AsyncGenerator<string> {
  let piece = '';
  for (const part of partsOf(value, DEPTH)) {
    piece += part;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
    await otherWork();
  }
  if (piece !== '') yield piece;
}

function* partsOf(value: unknown, depth: number): Generator<string> {
  if (depth === 0 || typeof value !== 'object' || value === null) {
    yield JSON.stringify(value);
    return;
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    yield* partsOf(value.toJSON(), depth);
    return;
  }
  const is_list = Array.isArray(value);
  let before = is_list ? '[' : '{';
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue;
    yield is_list ? before : `${before}${JSON.stringify(name)}:`;
    yield* partsOf(item, depth - 1);
    before = ',';
  }
  if (before !== ',') yield before;
  yield is_list ? ']' : '}';
}
