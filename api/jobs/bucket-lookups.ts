/** Look-ups of objects and folders that documents refer to by URI: in the project's records, then at their source. */
import type { FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';
import { tooLarge } from '../datasets/upload.js';
import { requireScopes } from '../http/authenticate.js';
import { BucketModel } from '../models/bucket-folder.js';
import { previewOf } from '../models/bucket-tokenizers.js';
import { requireSize } from '../models/store-model.js';
import type { DataLookups } from './find-data.js';
import type { InitLookups } from './find-init.js';
import type { TokenizerLookups } from './find-tokenizer.js';

type LookupContext = Pick<FastifyRequest, 'records' | 'server' | 'principal'>;

/** Looks up the object used as data. */
export function findObject({
  records,
  server,
  principal,
}: LookupContext): NonNullable<DataLookups['object']> {
  const { sources, limits } = server.services;
  return async (uri, format) => {
    // It becomes a dataset, and the caller learns whether it exists.
    if (principal !== null) requireScopes(principal, ['datasets']);
    const object = await sources.find(uri, records.project);
    if (object.bytes === 0) throw new ZerofleetError('dataset_empty', `${uri} is empty`);
    if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
    const { uri: found, etag, bytes } = object;
    const dataset = await records.findDatasetCopy({ uri: found, format, etag, bytes });
    return dataset === null ? { object } : { dataset };
  };
}

/** Looks up the folder used as initial model. Reads only `config.json` of a new one. */
export function findFolder({
  records,
  server,
  principal,
}: LookupContext): NonNullable<InitLookups['folder']> {
  const { sources, inspector, limits } = server.services;
  return async (uri) => {
    if (principal !== null) requireScopes(principal, ['models']);
    const folder = await BucketModel.find(uri, { sources, project: records.project });
    requireSize(folder, limits);
    const model = await records.findModelCopy(folder.source);
    if (model !== null) return { model };
    return { folder, preview: await folder.preview(records.project, inspector) };
  };
}

/** Looks up the object used as tokenizer; reads a new one. */
export function findTokenizerObject({
  records,
  server,
  principal,
}: LookupContext): NonNullable<TokenizerLookups['tokenizer']> {
  const { tokenizers } = server.services;
  return async (uri) => {
    if (principal !== null) requireScopes(principal, ['models']);
    const object = await tokenizers.find(uri, records.project);
    const model = await records.findTokenizerCopy(object.digest);
    return model === null ? { object, preview: previewOf(object, records.project) } : { model };
  };
}
