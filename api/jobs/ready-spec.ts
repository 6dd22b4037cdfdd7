import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type DryRun,
  type FieldError,
  type JobSpec,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';
import { tooLarge } from '../datasets/upload.js';
import { requireScopes } from '../http/authenticate.js';
import { whileSilent } from '../http/long-request.js';
import { type CheckedSpec, checkSpec, invalidDocument, type SpecLookups } from './check-spec.js';
import { type DataLookups, faultOf } from './find-data.js';

/** Looks for the object that a document names as its data: in the project's datasets, and in the bucket. */
export function lookForObject({
  records,
  server,
  apiKey,
}: Pick<FastifyRequest, 'records' | 'server' | 'apiKey'>): NonNullable<DataLookups['object']> {
  const { sources, limits } = server.services;
  return async (uri, format) => {
    // It becomes a dataset, and whoever asks learns whether it is there.
    if (apiKey !== null) requireScopes(apiKey, ['datasets']);
    const object = await sources.find(uri);
    if (object.bytes === 0) throw new ZerofleetError('dataset_empty', `${uri} is empty`);
    if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
    const dataset = await records.findDatasetCopy({ uri, format, etag: object.etag, bytes: object.bytes });
    return dataset === null ? { object } : { dataset };
  };
}

/**
 * The document as it can be recorded. What it names by URI is copied before, once everything that can be known without it was
 * found good. Should the job be refused afterwards, for what the content turns out to be or because a quota is reached, the copy
 * stays as a dataset like any other: it was expensive, and the request that follows needs it.
 *
 * @throws ZerofleetError `validation_failed` with all bad fields; `storage_quota_exceeded`, `dataset_source_changed`
 */
export async function readySpec(
  request: FastifyRequest,
  reply: FastifyReply,
  { document, schemaErrors, find }: { document: unknown; schemaErrors: FieldError[]; find: SpecLookups },
): Promise<ResolvedJobSpec> {
  const { spec, copy } = await checkSpec(document, schemaErrors, find);
  if (copy === null) return spec;
  const { copies } = request.server.services;
  const { project } = request.records;
  const dataset = await whileSilent(request, reply, (signal) =>
    copies.datasetOf(project, copy, signal).catch((error: unknown) => {
      throw invalidDocument([faultOf(error)]);
    }),
  );
  const checked = await checkSpec(document, schemaErrors, { ...find, object: async () => ({ dataset }) });
  return checked.spec;
}

/** The document that a job would have; what would be copied first has its URI. */
export function plannedSpec({ spec, copy }: CheckedSpec): DryRun['spec'] {
  if (copy === null) return spec;
  const { dataset: _, ...data } = spec.data;
  return { ...spec, data: { ...data, uri: copy.uri, format: copy.format } };
}

/** Whether a document names its data by URI: such a request is not looked at again when it is repeated. */
export function namesObject(document: unknown): boolean {
  const { data } = (document ?? {}) as Partial<JobSpec>;
  return typeof data === 'object' && data !== null && typeof data.uri === 'string';
}
