import {
  modelKey,
  type ResolvedJobSpec,
  type ResolvedModelConfig,
  ZerofleetError,
} from '../../../contracts/index.js';
import { readText, readTokenizer } from '../../../formats/encoding/tokenizer-store.js';
import {
  architectureMetadata,
  ggufArchitecture,
  ggufName,
  ropeTensors,
} from '../../../formats/gguf/architecture.js';
import { encodeTensor } from '../../../formats/gguf/encode.js';
import {
  dataBytes,
  type GgufMetadata,
  type GgufTensor,
  ggufHeader,
  paddingAfter,
  string,
  tensorBytes,
  uint32,
} from '../../../formats/gguf/file.js';
import { modelfile } from '../../../formats/gguf/modelfile.js';
import {
  FILE_TYPES,
  type FileType,
  type Param,
  type PlannedTensor,
  plannedTensors,
} from '../../../formats/gguf/tensors.js';
import { type GgufTokenizer, ggufBytes, ggufTokenizer } from '../../../formats/gguf/tokenizer.js';
import { CHAT_TEMPLATE_FILE, TOKENIZER_CONFIG_FILE } from '../../../formats/models/documents.js';
import { jsonObject } from '../../../formats/models/read-document.js';
import { chatTemplateOf } from '../../../formats/models/tokenizer.js';
import { architectureOf } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import type { TaskRequest, TaskResults } from '../protocol.js';
import { ExportFolder } from './export-folder.js';
import { baseOfExport } from './export-model.js';
import { MergedWeights } from './merged-weights.js';
import { tokenizerSource } from './model-source.js';
import { openCheckpoint } from './open-checkpoint.js';

type ExportRequest = Extract<TaskRequest, { kind: 'export' }>;

const GGUF_FILE = 'model.gguf';
const MODELFILE = 'Modelfile';

/** Version of llama.cpp's quantized formats. */
const QUANTIZATION_VERSION = 2;

/**
 * Writes a checkpoint's weights, adapters merged, as a GGUF file with the tokenizer of the training inside, and a
 * `Modelfile` for Ollama. Weights are streamed. May be repeated: the same checkpoint gives the same bytes.
 * @throws ZerofleetError `export_unsupported`, `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of
 *   the object store
 */
export async function exportGguf(
  objects: ObjectStore,
  core: Pick<
    NativeCore,
    'castTo16Bit' | 'initialValues' | 'mergeAdapter' | 'addOutputSquares' | 'quantizedValues'
  >,
  request: ExportRequest,
): Promise<TaskResults['export']> {
  const { spec, prefix, dtype, retry } = request;
  const { config } = spec.model;
  const tokenizer = await retryTransient(() => tokenizerOf(objects, spec), retry);
  const checkpoint = await openCheckpoint(objects, core, request);
  const { state_digest } = checkpoint.manifest;
  const merged = new MergedWeights(checkpoint, core, spec);
  const metadata: GgufMetadata = [
    ['general.architecture', string(ggufArchitecture(config))],
    ['general.type', string('model')],
    ['general.name', string(ggufName(spec.name))],
    ['general.file_type', uint32(FILE_TYPES[dtype].code)],
    ...(dtype === 'q8_0' ? ([['general.quantization_version', uint32(QUANTIZATION_VERSION)]] as const) : []),
    ...provenance(spec, state_digest),
    ...architectureMetadata(config),
    ...tokenizer.metadata,
  ];
  const tensors = modelTensors(
    { config, params: merged.params, read: (param) => merged.read(param) },
    dtype,
    core.castTo16Bit,
  );
  const folder = new ExportFolder(objects, prefix, retry);
  await putGguf(folder, GGUF_FILE, metadata, tensors);
  await folder.put(MODELFILE, async function* () {
    yield Buffer.from(modelfile(GGUF_FILE, tokenizer));
  });
  return { prefix, state_digest, ...baseOfExport(spec), files: folder.files };
}

/** A tensor and the bytes of its data, which may be read again. */
export interface WrittenTensor {
  tensor: GgufTensor;
  data(): AsyncIterable<Uint8Array>;
}

/** Weights of a model in fp32, in pieces of any length. */
interface ReadModel<P extends Param> {
  config: ResolvedModelConfig;
  params: readonly P[];
  read(param: P): AsyncIterable<Uint8Array>;
}

/** Returns all tensors of a model's file, in order. @param cast rounds to nearest even */
export function modelTensors<P extends Param>(
  { config, params, read }: ReadModel<P>,
  dtype: FileType,
  cast: NativeCore['castTo16Bit'],
): WrittenTensor[] {
  const factors = Object.entries(ropeTensors(config)).map(([name, values]) => ropeTensor(name, values));
  const weights = plannedTensors(config, params, dtype).map((tensor) => ({
    tensor,
    data: () => encodeTensor(tensor, elementsOf(tensor, read), cast),
  }));
  return [...factors, ...weights];
}

export async function putGguf(
  folder: ExportFolder,
  name: string,
  metadata: GgufMetadata,
  written: readonly WrittenTensor[],
): Promise<void> {
  const tensors = written.map(({ tensor }) => tensor);
  const header = ggufHeader(metadata, tensors);
  const content = async function* () {
    yield header;
    for (const { tensor, data } of written) {
      yield* data();
      yield paddingAfter(tensorBytes(tensor));
    }
  };
  await folder.put(name, content, { bytes: header.length + dataBytes(tensors) });
}

export async function* elementsOf<P extends PlannedTensor['params'][number]>(
  { params }: PlannedTensor<P>,
  read: (param: P) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for (const param of params) yield* read(param);
}

/** Returns what an export was computed from. */
export function provenance(spec: ResolvedJobSpec, stateDigest: string): GgufMetadata {
  const { base_quantization } = baseOfExport(spec);
  return [
    ['zerofleet.state_digest', string(stateDigest)],
    ...(base_quantization === undefined
      ? []
      : ([['zerofleet.base_quantization', string(base_quantization)]] as const)),
  ];
}

function ropeTensor(name: string, factors: Float32Array): WrittenTensor {
  return {
    tensor: { name, shape: [factors.length], type: 'F32' },
    data: async function* () {
      yield new Uint8Array(factors.buffer);
    },
  };
}

async function tokenizerOf(objects: ObjectStore, spec: ResolvedJobSpec): Promise<GgufTokenizer> {
  const { data, model } = spec;
  const { vocab_size } = architectureOf(model.config);
  if (data.tokenizer === 'bytes') return ggufBytes(vocab_size);
  const source = tokenizerSource(spec);
  if (source === null)
    throw new ZerofleetError(
      'export_unsupported',
      'GGUF needs a tokenizer, and the job trained on tokens of an unknown one',
    );
  const files = await readTokenizer(objects, source);
  const { chat_template, template_date: date } = data;
  const template = chat_template ?? (await ownTemplate(objects, source));
  return ggufTokenizer(files, vocab_size, { template, isTrained: chat_template !== null, date });
}

async function ownTemplate(objects: ObjectStore, model: string): Promise<string | null> {
  const folder = modelKey(model);
  const config = await readText(objects, folder, TOKENIZER_CONFIG_FILE);
  const file = await readText(objects, folder, CHAT_TEMPLATE_FILE);
  return chatTemplateOf(
    jsonObject(TOKENIZER_CONFIG_FILE, config ?? '{}', 'tokenizer_invalid'),
    file ?? undefined,
  );
}
