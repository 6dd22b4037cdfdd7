/** Hostile uploads among the generated requests. */
import fc, { type Arbitrary } from 'fast-check';
import { HOSTILE_MODELS } from '../../api/testing/hostile-uploads.js';
import { TAR } from '../../api/testing/model-uploads.js';
import type { GeneratedRequest } from './requests.js';

const KIB = 1024;

/** Mostly small, so that there can be many; some of several MiB show effects of the size. */
const SIZES = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 32 }).map((n) => 2 * KIB * n) },
  { weight: 2, arbitrary: fc.constantFrom(512 * KIB, 1024 * KIB) },
  { weight: 1, arbitrary: fc.constantFrom(4096 * KIB, 8192 * KIB) },
);

export interface HostileUpload {
  kind: string;
  bytes: number;
}

export const HOSTILE: Arbitrary<HostileUpload> = fc.record({
  kind: fc.constantFrom(...Object.keys(HOSTILE_MODELS)),
  bytes: SIZES,
});

export async function hostileRequest({ kind, bytes }: HostileUpload): Promise<GeneratedRequest> {
  const body = await HOSTILE_MODELS[kind]?.(bytes);
  const url = `/v1/models?name=${encodeURIComponent(`${kind} (${bytes})`)}`;
  return { operationId: 'createModel', method: 'POST', url, headers: TAR, body };
}
