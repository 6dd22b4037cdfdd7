import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { type Job, type Page, ZerofleetError } from '../../contracts/index.js';
import type { Condition } from '../../state/index.js';

const JSON_MEDIA_TYPE = 'application/json; charset=utf-8';

/** Strong entity tag: equal bodies have equal tags, and any change of the body changes it. */
export function entityTag(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}

/** True if `If-None-Match` contains this tag. Weak comparison, as RFC 9110 requires. */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag);
}

/** Caches frozen jobs only. */
const written = new WeakMap<Job, { text: string; tag: string }>();

/** Serialized job and its entity tag, which begins with the job's version. */
function writeJob(job: Job): { text: string; tag: string } {
  const known = written.get(job);
  if (known !== undefined) return known;
  const text = JSON.stringify(job);
  const made = { text, tag: `"${job.state_version}-${entityTag(text).slice(1)}` };
  if (Object.isFrozen(job)) written.set(job, made);
  return made;
}

/** Sends a job with its entity tag, or `304` if the client has this version. */
export function sendJob(reply: FastifyReply, job: Job, ifNoneMatch?: string): FastifyReply {
  const { text, tag } = writeJob(job);
  reply.header('etag', tag);
  if (matchesTag(ifNoneMatch, tag)) return reply.code(304).send();
  return reply.type(JSON_MEDIA_TYPE).send(text);
}

/** Sends the same text as `JSON.stringify` of the page. */
export function sendJobs(reply: FastifyReply, { data, next_cursor }: Page<Job>): FastifyReply {
  const jobs = data.map((job) => writeJob(job).text).join(',');
  return reply.type(JSON_MEDIA_TYPE).send(`{"data":[${jobs}],"next_cursor":${JSON.stringify(next_cursor)}}`);
}

/** Tag of the changeable fields of a record. */
function changeableTag<T extends object>(record: T, fields: readonly (keyof T)[]): string {
  return entityTag(JSON.stringify(fields.map((field) => record[field]))).slice(1, -1);
}

/**
 * Sends a record with its entity tag. The tag begins with a tag of the changeable fields, which `If-Match` compares.
 */
export function sendRecord<T extends object>(
  reply: FastifyReply,
  record: T,
  fields: readonly (keyof T)[],
): FastifyReply {
  const text = JSON.stringify(record);
  reply.header('etag', `"${changeableTag(record, fields)}-${entityTag(text).slice(1)}`);
  return reply.type(JSON_MEDIA_TYPE).send(text);
}

/** @throws ZerofleetError `version_mismatch` when `If-Match` does not contain the current tag of the record */
export function requireMatch<T extends object>(
  header: string | undefined,
  record: T,
  fields: readonly (keyof T)[],
): void {
  if (header === undefined || header.trim() === '*') return;
  const tag = changeableTag(record, fields);
  if (header.split(',').some((candidate) => candidate.trim().startsWith(`"${tag}-`))) return;
  throw new ZerofleetError('version_mismatch', 'it has changed since: read it again and send its ETag');
}

/**
 * Versions of a job that `If-Match` allows. A tag identifies one body, but requests depend only on the job's settings
 * and state. So only the version in the tag is compared, and training progress does not invalidate it.
 * @throws ZerofleetError `version_mismatch` when the header contains no version at all
 */
export function conditionOf(header: string | undefined): Condition {
  if (header === undefined || header.trim() === '*') return {};
  const versions = [...header.matchAll(/"(\d{1,16})(?:-[^"]*)?"/g)].map(([, version]) => Number(version));
  if (versions.length === 0)
    throw new ZerofleetError(
      'version_mismatch',
      'If-Match contains no ETag of a job: send the one of its last reply',
    );
  return { if_versions: versions };
}
