/** Contents and assertions for tests of object stores. */
import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import { type ObjectStore, ObjectStoreError } from '../object-store/index.js';

/** Asserts that a call fails with a typed error of this code. */
export async function rejectsWith(
  t: Test,
  call: Promise<unknown>,
  code: string,
  label = code,
): Promise<ObjectStoreError | undefined> {
  const error = await call.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  t.ok(error instanceof ObjectStoreError, `${label}: a typed error`, { found: error });
  if (!(error instanceof ObjectStoreError)) return undefined;
  t.equal(error.code, code, label);
  return error;
}

/** Returns bytes that depend on their position, so that swapped or repeated pieces are detected. */
export function pattern(bytes: number): Buffer {
  const out = Buffer.allocUnsafe(bytes);
  for (let i = 0; i < bytes; i += 1) out[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 0xff;
  return out;
}

/** Streams pieces of a size, with empty ones at both ends. */
export async function* pieces(content: Buffer, size: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array();
  for (let i = 0; i < content.length; i += size) yield content.subarray(i, i + size);
  yield new Uint8Array();
}

/** Returns pieces of a size, with empty ones in between. */
export function cut(content: Buffer, size: number): Buffer[] {
  const list: Buffer[] = [];
  for (let at = 0; at < content.length; at += size)
    list.push(content.subarray(at, at + size), Buffer.alloc(0));
  return list;
}

export async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = [];
  for await (const piece of stream) found.push(piece);
  return Buffer.concat(found);
}

export async function names(store: ObjectStore, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of store.list(prefix)) found.push(key);
  return found;
}

export function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
