/** Inspection of model files in a worker thread (api/inspection/tasks.ts). */
import { type Model, ZerofleetError } from '../../contracts/index.js';
import { CONFIG_FILE, TOKENIZER_FILE } from '../../formats/models/documents.js';
import { encodeWeights, type WeightDtype } from '../../formats/models/weights.js';
import type { SafetensorsHeader } from '../../formats/safetensors/header.js';
import { parseSafetensorsHeader } from '../../formats/safetensors/read-header.js';
import { rangeSource } from '../../formats/torch-file/byte-source.js';
import { readTorchFile, type TorchFile } from '../../formats/torch-file/read.js';
import { decodeTorchFile, encodeTorchFile } from '../../formats/torch-file/record.js';
import type { ReadBytes } from '../../platform/threads/serve-tasks.js';
import { shapeOf } from './config.js';
import { type CheckedModel, ModelContents } from './contents.js';
import { DeepSpeedCheckpoint } from './deepspeed/checkpoint.js';
import { checkModuleWeights } from './deepspeed/module-weights.js';
import { parseDocument } from './documents.js';
import { type CheckpointRecord, decodeRecords, encodeRecord } from './records.js';
import { mayBeTied } from './tensors.js';
import type { MadeFile } from './tokenizer.js';
import type { WatchedTensor } from './weights-scan.js';

/** A file that is read whole. */
export interface Document {
  name: string;
  bytes: Uint8Array;
}

type Found = { record: Uint8Array };

/** Model properties derived from its files. */
export type InspectedModel = Pick<
  Model,
  | 'model_type'
  | 'num_parameters'
  | 'dtypes'
  | 'has_tokenizer'
  | 'tokenizer'
  | 'optimizer_steps'
  | 'optimizer_states'
  | 'frozen_parameters'
  | 'adapter'
  | 'config'
>;

/** Checkpoint files that are kept although they hold no tensor. */
const KEPT = /^zero\//;

/**
 * Checks a single file as far as possible without the others; returns its bytes. @throws ZerofleetError as
 * `ModelContents.document`
 */
export function checkDocument({ name, bytes }: Document): { bytes: Uint8Array } {
  new ModelContents().document(name, bytes);
  return { bytes };
}

/**
 * Reads the header of a weights file and checks it against the configuration if that has arrived.
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

/** Reads a PyTorch file of a DeepSpeed checkpoint. @throws ZerofleetError as `DeepSpeedCheckpoint.add` */
export async function readCheckpoint(
  { name, bytes }: { name: string; bytes: number },
  read: ReadBytes,
): Promise<Found> {
  let checkpoint: CheckpointRecord = null;
  await new DeepSpeedCheckpoint().add(name, async () => {
    try {
      const file = await readTorchFile(rangeSource(name, bytes, read));
      checkpoint = { content: encodeTorchFile(name, file) };
      return file;
    } catch (error) {
      // Some files may stay unread; finishModel decides.
      if (error instanceof ZerofleetError)
        checkpoint = { unread: { code: error.code, message: error.message } };
      throw error;
    }
  });
  return { record: encodeRecord({ file: name, checkpoint }) };
}

/** The file of a record that was read. */
function contentOf(checkpoint: CheckpointRecord): TorchFile {
  if (checkpoint === null) throw new Error('the file was skipped and is needed now');
  if ('unread' in checkpoint) throw new ZerofleetError(checkpoint.unread.code, checkpoint.unread.message);
  return decodeTorchFile(checkpoint.content);
}

/**
 * Checks the complete model.
 * @param records of all weights files
 * @returns WEIGHTS.json, the model's record, files to store beside those of the folder, and files that are not used
 * @throws ZerofleetError `model_…`, `tokenizer_invalid`; errors of a checkpoint and of `read`
 */
export async function finishModel(
  { documents, records }: { documents: readonly Document[]; records: readonly Uint8Array[] },
  read: ReadBytes,
): Promise<{ weights: Uint8Array; model: InspectedModel; made: readonly MadeFile[]; unused: string[] }> {
  const contents = new ModelContents();
  const headers = new Map<string, SafetensorsHeader>();
  const stored = [];
  for (const { name, bytes } of documents) contents.document(name, bytes);
  for (const record of decodeRecords(records)) {
    if ('header' in record) {
      const header = { ...record.header, metadata: {} };
      headers.set(record.file, header);
      contents.header(record.file, header);
    } else if ('checkpoint' in record) {
      await contents.checkpointFile(record.file, async () => contentOf(record.checkpoint));
    } else {
      const { file } = record.stored;
      const header = headers.get(file);
      if (header !== undefined) contents.complete({ file, header, digests: new Map(record.digests) });
      stored.push(record.stored);
    }
  }
  const checked = contents.finish();
  await checkModuleWeights(checked.pairs, read);
  const unused = stored
    .map(({ file }) => file)
    .filter((file) => !checked.tensors.has(file) && !KEPT.test(file));
  const files = stored
    .filter(({ file }) => !unused.includes(file))
    .map((file) => ({ ...file, tensors: checked.tensors.get(file.file) ?? [] }));
  return {
    weights: encodeWeights(files, checked.optimizer),
    model: describe(checked),
    made: checked.made,
    unused,
  };
}

/** Model properties from `config.json` alone. @throws ZerofleetError `model_config_invalid` */
export function readConfig({
  bytes,
}: Pick<Document, 'bytes'>): Pick<InspectedModel, 'config' | 'model_type' | 'num_parameters'> {
  const config = parseDocument(CONFIG_FILE, bytes, 'model_config_invalid');
  const { model_type, params } = shapeOf(config);
  return { config, model_type, num_parameters: sizeOf(params) };
}

/** Tokenizer properties from `tokenizer.json` alone. @throws ZerofleetError `tokenizer_invalid` */
export function readTokenizer({ bytes }: Pick<Document, 'bytes'>): NonNullable<Model['tokenizer']> {
  const contents = new ModelContents();
  contents.document(TOKENIZER_FILE, bytes);
  return contents.finishTokenizer().tokenizer as NonNullable<Model['tokenizer']>;
}

const DTYPE_NAMES: Readonly<Record<WeightDtype, Model['dtypes'][number]>> = {
  F32: 'fp32',
  BF16: 'bf16',
  F16: 'fp16',
};

function describe({ config, shape, tensors, tokenizer, optimizer, adapter }: CheckedModel): InspectedModel {
  const dtypes = new Set([...tensors.values()].flat().map(({ dtype }) => DTYPE_NAMES[dtype]));
  return {
    model_type: shape.model_type,
    num_parameters: sizeOf(shape.params),
    dtypes: [...dtypes].sort(),
    has_tokenizer: tokenizer !== null,
    tokenizer,
    ...(optimizer === null
      ? {}
      : {
          optimizer_steps: optimizer.steps,
          optimizer_states: optimizer.states,
          frozen_parameters: optimizer.frozen,
        }),
    ...(adapter !== null && { adapter }),
    config,
  };
}

function sizeOf(params: readonly { numel: number }[]): number {
  return params.reduce((sum, { numel }) => sum + numel, 0);
}
