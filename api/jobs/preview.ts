/** The beginning of a job's data, as the job would read it. */
import type { FastifyRequest } from 'fastify';
import { type DataPreview, type Dataset, datasetKey, type ResolvedJobSpec } from '../../contracts/index.js';
import { MAX_LINE_BYTES } from '../../contracts/jsonl/line.js';
import { readTokenizerBytes } from '../../formats/encoding/tokenizer-store.js';
import {
  longestSequence,
  reinforcementOf,
  tokenizerModel,
  trainingDatasetsOf,
  trainingPointersOf,
  unitOf,
} from '../../job-document/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { ownBuffers } from '../../platform/threads/messages.js';
import { notFound } from '../access/found.js';
import type { DataBeginning } from '../contents/preview-data.js';

/** Bytes that are read, of all datasets together. */
const READ_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

const NOTHING: DataPreview = { read: null, texts: [], warnings: [] };

/**
 * Reads the beginnings of a job's datasets in a thread with limits. Data of tokens, and datasets that do not exist yet,
 * have none.
 * @param numTexts number of texts to return
 * @throws ZerofleetError `chat_template_invalid`, `tokenizer_invalid`, `content_too_complex`; errors of the object
 *   store
 */
export async function previewOf(
  request: Pick<FastifyRequest, 'records' | 'server'>,
  spec: ResolvedJobSpec,
  numTexts: number,
): Promise<DataPreview> {
  const named = trainingDatasetsOf(spec.data);
  const found = await Promise.all(named.map(({ dataset }) => request.records.getDataset(dataset)));
  const readable = found.filter(isReadable);
  // Prompts become no sequences before they are sampled.
  if (readable.length === 0 || reinforcementOf(spec.train) !== null) return NOTHING;
  const { objects, inspector } = request.server.services;
  const { project } = request.records;
  const model = tokenizerModel(spec.data);
  const { parse_special_tokens, chat_template, template_date, chat, packing } = spec.data;
  const setup = {
    parse_special_tokens,
    chat_template,
    template_date,
    unit: unitOf(spec.train),
    ...(chat && { chat }),
  };
  let read = 0;
  const beginningOf = async (dataset: ReadableDataset): Promise<DataBeginning> => {
    const most = Math.ceil(READ_BYTES / readable.length);
    const content = await readBeginning(objects, dataset, most).catch(async (error) => {
      // The dataset may have been deleted since it was found.
      throw (await request.records.getDataset(dataset.id)) === null ? notFound('dataset', dataset.id) : error;
    });
    read += content.length;
    const { id, format, bytes } = dataset;
    return {
      content,
      is_whole: content.length === bytes,
      format,
      dataset: spec.data.mixture ? id : null,
      pointer: trainingPointersOf(spec.data)[found.indexOf(dataset)] as string,
    };
  };
  // A tokenizer may have 64 MiB, so it is read once a thread is free.
  const input = async () => {
    const beginnings: DataBeginning[] = [];
    for (const dataset of readable) {
      // Long lines of a few datasets are enough.
      if (read > READ_BYTES + MAX_LINE_BYTES) break;
      beginnings.push(await beginningOf(dataset));
    }
    return {
      ...setup,
      beginnings,
      tokenizer: model === null ? null : await readTokenizerBytes(objects, model),
      packing,
      sequence_length: spec.train.sequence_length,
      longest_sequence: longestSequence(spec.model),
      num_texts: numTexts,
    };
  };
  const { counts, ...rest } = await inspector.run('previewData', input, {
    owner: project,
    transferOf: ({ tokenizer }) => ownBuffers({ ...tokenizer }),
  });
  const size = readable.reduce((sum, { bytes }) => sum + bytes, 0);
  return { read: { share: read / size, bytes: read, ...counts }, ...rest };
}

type ReadableDataset = Dataset & { format: 'text' | 'jsonl' };

function isReadable(dataset: Dataset | null): dataset is ReadableDataset {
  return dataset !== null && dataset.format !== 'tokens';
}

/** Reads about `most` bytes from the beginning of a dataset, of lines at least one. */
async function readBeginning(
  objects: ObjectStore,
  { id, bytes, format }: ReadableDataset,
  most: number,
): Promise<Uint8Array> {
  const read = (end: number) => objects.get(datasetKey(id), { begin: 0, end: Math.min(bytes, end) });
  const first = await read(most);
  if (format === 'text' || first.length === bytes) return first;
  const lines = first.subarray(0, first.lastIndexOf(NEWLINE) + 1);
  if (lines.length > 0) return lines;
  const longer = await read(most + MAX_LINE_BYTES);
  const end = longer.indexOf(NEWLINE, most);
  return end < 0 ? longer : longer.subarray(0, end + 1);
}
