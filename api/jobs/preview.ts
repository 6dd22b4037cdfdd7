/** The beginning of a job's data, as the job would read it. */
import type { FastifyRequest } from 'fastify';
import { type DataPreview, type Dataset, datasetKey, type ResolvedJobSpec } from '../../contracts/index.js';
import { MAX_LINE_BYTES } from '../../contracts/jsonl/line.js';
import { readTokenizerBytes } from '../../formats/encoding/tokenizer-store.js';
import { tokenizerModel, unitOf } from '../../job-document/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { ownBuffers } from '../../platform/threads/messages.js';
import { notFound } from '../access/found.js';

/** Bytes of a dataset that are read. */
const READ_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

const NOTHING: DataPreview = { read: null, texts: [], warnings: [] };

/**
 * Reads the beginning of a job's dataset in a thread with limits. Data of tokens, and a dataset that does not exist yet,
 * have none.
 * @param numTexts number of texts to return
 * @throws ZerofleetError `chat_template_invalid`, `tokenizer_invalid`, `content_too_complex`; errors of the object store
 */
export async function previewOf(
  request: Pick<FastifyRequest, 'records' | 'server'>,
  spec: ResolvedJobSpec,
  numTexts: number,
): Promise<DataPreview> {
  const dataset = await request.records.getDataset(spec.data.dataset);
  if (dataset === null || dataset.format === 'tokens') return NOTHING;
  const { objects, inspector } = request.server.services;
  const { project } = request.records;
  const { format } = dataset;
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
  // A tokenizer may have 64 MiB, so it is read once a thread is free.
  const beginning = async () => {
    const content = await readBeginning(objects, { ...dataset, format }).catch(async (error) => {
      // The dataset may have been deleted since it was found.
      throw (await request.records.getDataset(dataset.id)) === null ? notFound('dataset', dataset.id) : error;
    });
    read = content.length;
    return {
      ...setup,
      content,
      is_whole: read === dataset.bytes,
      format,
      tokenizer: model === null ? null : await readTokenizerBytes(objects, model),
      packing,
      sequence_length: spec.train.sequence_length,
      num_texts: numTexts,
    };
  };
  const { counts, ...rest } = await inspector.run('previewData', beginning, {
    owner: project,
    transferOf: ({ content, tokenizer }) => ownBuffers({ content, ...tokenizer }),
  });
  return { read: { share: read / dataset.bytes, bytes: read, ...counts }, ...rest };
}

/** Reads the beginning of a dataset, of lines at least one. */
async function readBeginning(
  objects: ObjectStore,
  { id, bytes, format }: Pick<Dataset, 'id' | 'bytes'> & { format: 'text' | 'jsonl' },
): Promise<Uint8Array> {
  const read = (end: number) => objects.get(datasetKey(id), { begin: 0, end: Math.min(bytes, end) });
  const first = await read(READ_BYTES);
  if (format === 'text' || first.length === bytes) return first;
  const lines = first.subarray(0, first.lastIndexOf(NEWLINE) + 1);
  if (lines.length > 0) return lines;
  const longer = await read(READ_BYTES + MAX_LINE_BYTES);
  const end = longer.indexOf(NEWLINE, READ_BYTES);
  return end < 0 ? longer : longer.subarray(0, end + 1);
}
