/** Names of pods: `POOL-TYPE-HASH-NUMBER`, with as much of pool and type as a host name can have. */
import { createHash } from 'node:crypto';

/** Identity of one pod among those of a namespace. No two pods have the same at once. */
export interface PodIdentity {
  pool: string;
  type: string;
  number: number;
}

/** A host name has up to 63 characters; hash, number and hyphens take up to 16. */
const MAX_WORDS = 47;

/**
 * Returns the name of a pod. The API server has no two pods of one name, so an autoscaler that was replaced while it
 * created pods, and its successor, create nothing twice.
 */
export function nameOf({ pool, type, number }: PodIdentity): string {
  const words = `${pool}-${type}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_WORDS);
  const hash = createHash('sha256').update(`${pool}/${type}`).digest('hex').slice(0, 8);
  return `${words.replace(/^-+|-+$/g, '') || 'pod'}-${hash}-${number}`;
}

/** Id of a pod's machine, as the pod's own environment has it: names come again, uids never do. */
export const machineOf = (name: string, uid: string): string => `${name}.${uid}`;
