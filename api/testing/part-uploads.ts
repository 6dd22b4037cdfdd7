import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import type { Upload } from '../../contracts/index.js';
import { startTestStack } from './stack.js';

export const TEXT = Buffer.from('Grüße, 世界 — to be or not to be. '.repeat(60));
export const digest = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
export const PART = 500;

/** A stack with uploads in parts of `PART` bytes, and helpers. */
export async function startUploads(t: Test) {
  const stack = await startTestStack({ limits: { part_bytes: PART, dataset_bytes: 10_000 } });
  t.teardown(() => stack.close());
  const begin = async (more: object = {}, bytes = TEXT) => {
    const payload = { name: 'parts', bytes: bytes.length, ...more };
    return (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
  };
  const put = (id: string, part: number, payload: Buffer) =>
    stack.request({
      method: 'PUT',
      url: `/v1/uploads/${id}/parts/${part}`,
      headers: { 'content-type': 'application/octet-stream' },
      payload,
    });
  const partOf = (bytes: Buffer, part: number) => bytes.subarray((part - 1) * PART, part * PART);
  const get = async (id: string) => (await stack.request({ url: `/v1/uploads/${id}` })).json<Upload>();
  const complete = (id: string) => stack.request({ method: 'POST', url: `/v1/uploads/${id}/complete` });
  const keys = async (prefix: string) => {
    const found: string[] = [];
    for await (const { key } of stack.objects.list(prefix)) found.push(key);
    return found;
  };
  return { stack, begin, put, partOf, get, complete, keys };
}
