/** How the objects and folders are found that documents name by URI: in the project's records, and in the bucket. */
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

type Asking = Pick<FastifyRequest, 'records' | 'server' | 'apiKey'>;

/** Looks for the object that a document names as its data. */
export function lookForObject({ records, server, apiKey }: Asking): NonNullable<DataLookups['object']> {
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

/** Looks for the folder of the model that a document begins with. Of one that is new `config.json` is read, and nothing else. */
export function lookForFolder({ records, server, apiKey }: Asking): NonNullable<InitLookups['folder']> {
  const { sources, inspector, limits } = server.services;
  return async (uri) => {
    if (apiKey !== null) requireScopes(apiKey, ['models']);
    const folder = await BucketModel.find(uri, sources);
    requireSize(folder, limits);
    const model = await records.findModelCopy(folder.source);
    if (model !== null) return { model };
    return { folder, preview: await folder.preview(records.project, inspector) };
  };
}

/** Looks for the tokenizer that a document names, and reads it, if it is new. */
export function lookForTokenizer({
  records,
  server,
  apiKey,
}: Asking): NonNullable<TokenizerLookups['tokenizer']> {
  const { tokenizers } = server.services;
  return async (uri) => {
    if (apiKey !== null) requireScopes(apiKey, ['models']);
    const object = await tokenizers.find(uri, records.project);
    const model = await records.findTokenizerCopy(object.digest);
    return model === null ? { object, preview: previewOf(object, records.project) } : { model };
  };
}
