/** What is done with the files of a model in a thread (api/inspection/tasks.ts). */
import type { Model } from '../../contracts/index.js';
import { CONFIG_FILE, TOKENIZER_FILE } from '../../platform/models/documents.js';
import { encodeWeights, type WeightDtype } from '../../platform/models/weights.js';
import type { SafetensorsHeader } from '../../platform/safetensors/header.js';
import { parseSafetensorsHeader } from '../../platform/safetensors/read-header.js';
import type { ReadBytes } from '../../platform/threads/serve-tasks.js';
import { rangeSource } from '../../platform/torch-file/byte-source.js';
import { readTorchFile } from '../../platform/torch-file/read.js';
import { shapeOf } from './config.js';
import { type CheckedModel, ModelContents } from './contents.js';
import { parseDocument } from './documents.js';
import { decodeRecords, encodeRecord } from './records.js';
import { mayBeTied } from './tensors.js';
import { universalPart } from './universal.js';
import type { WatchedTensor } from './weights-scan.js';

/** A file that is read whole. */
export interface Document {
  name: string;
  bytes: Uint8Array;
}

type Found = { record: Uint8Array };

/** What the files of a model say together. */
export type InspectedModel = Pick<
  Model,
  'model_type' | 'num_parameters' | 'dtypes' | 'has_tokenizer' | 'tokenizer' | 'optimizer_steps' | 'config'
>;

/** Checks what can be checked of a file alone; gives its bytes back. @throws ZerofleetError as `ModelContents.document` */
export function checkDocument({ name, bytes }: Document): { bytes: Uint8Array } {
  new ModelContents().document(name, bytes);
  return { bytes };
}

/**
 * Reads the header of a weights file, and checks it against the configuration if that is there.
 * @throws ZerofleetError `safetensors_invalid`; as `ModelContents.header`
 */
export function readHeader({
  file,
  file_bytes,
  start,
  config,
}: {
  file: string;
  file_bytes: number;
  start: Uint8Array;
  config: Pick<Document, 'bytes'> | null;
}): Found & { watched: WatchedTensor[] } {
  const header = parseSafetensorsHeader(start, { name: file, bytes: file_bytes });
  const { bytes, tensors } = header;
  if (config !== null) {
    const contents = new ModelContents();
    contents.document(CONFIG_FILE, config.bytes);
    contents.header(file, header);
  }
  const watched = tensors
    .filter(({ name }) => mayBeTied(name))
    .map(({ name, dtype, begin, end }) => ({ name, dtype, begin: bytes + begin, end: bytes + end }));
  return { record: encodeRecord({ file, header: { bytes, tensors } }), watched };
}

/** Reads a PyTorch file of a checkpoint in DeepSpeed's universal layout. @throws ZerofleetError as `universalPart` */
export async function readUniversal(
  { name, bytes }: { name: string; bytes: number },
  read: ReadBytes,
): Promise<Found> {
  const file = await readTorchFile(rangeSource(name, bytes, read));
  return { record: encodeRecord({ file: name, part: universalPart(name, file) }) };
}

/**
 * Checks the whole.
 * @param records of all weights files
 * @returns WEIGHTS.json and what is recorded of the model
 * @throws ZerofleetError `model_…`, `tokenizer_invalid`
 */
export function finishModel({
  documents,
  records,
}: {
  documents: readonly Document[];
  records: readonly Uint8Array[];
}): { weights: Uint8Array; model: InspectedModel } {
  const contents = new ModelContents();
  const headers = new Map<string, SafetensorsHeader>();
  const stored = [];
  for (const { name, bytes } of documents) contents.document(name, bytes);
  for (const record of decodeRecords(records)) {
    if ('header' in record) {
      const header = { ...record.header, metadata: {} };
      headers.set(record.file, header);
      contents.header(record.file, header);
    } else if ('part' in record) {
      contents.universalPart(record.file, record.part);
    } else {
      const { file } = record.stored;
      const header = headers.get(file);
      if (header !== undefined) contents.complete({ file, header, digests: new Map(record.digests) });
      stored.push(record.stored);
    }
  }
  const checked = contents.finish();
  const files = stored.map((file) => ({ ...file, tensors: checked.tensors.get(file.file) ?? [] }));
  return { weights: encodeWeights(files, checked.optimizer_steps), model: describe(checked) };
}

/** As much of a model as its `config.json` tells. @throws ZerofleetError `model_config_invalid` */
export function readConfig({
  bytes,
}: Pick<Document, 'bytes'>): Pick<InspectedModel, 'config' | 'model_type' | 'num_parameters'> {
  const config = parseDocument(CONFIG_FILE, bytes, 'model_config_invalid');
  const { model_type, params } = shapeOf(config);
  return { config, model_type, num_parameters: sizeOf(params) };
}

/** What a `tokenizer.json` alone is. @throws ZerofleetError `tokenizer_invalid` */
export function readTokenizer({ bytes }: Pick<Document, 'bytes'>): NonNullable<Model['tokenizer']> {
  const contents = new ModelContents();
  contents.document(TOKENIZER_FILE, bytes);
  return contents.finishTokenizer() as NonNullable<Model['tokenizer']>;
}

const DTYPE_NAMES: Readonly<Record<WeightDtype, Model['dtypes'][number]>> = {
  F32: 'fp32',
  BF16: 'bf16',
  F16: 'fp16',
};

function describe({ config, shape, tensors, tokenizer, optimizer_steps }: CheckedModel): InspectedModel {
  const dtypes = new Set([...tensors.values()].flat().map(({ dtype }) => DTYPE_NAMES[dtype]));
  return {
    model_type: shape.model_type,
    num_parameters: sizeOf(shape.params),
    dtypes: [...dtypes].sort(),
    has_tokenizer: tokenizer !== null,
    tokenizer,
    ...(optimizer_steps === null ? {} : { optimizer_steps }),
    config,
  };
}

function sizeOf(params: readonly { numel: number }[]): number {
  return params.reduce((sum, { numel }) => sum + numel, 0);
}
