import { createHash } from 'node:crypto';

/** Returns JSON with sorted names and without white space, so that equal documents have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    const fields = inner as Record<string, unknown>;
    return Object.fromEntries(
      Object.keys(fields)
        .sort()
        .map((name) => [name, fields[name]]),
    );
  });
}

/** Returns the SHA-256 of the canonical form, in hex. */
export function documentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
