import type { ResolvedJobSpec } from '../../../contracts/index.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { ADAPTER_CONFIG_FILE, ADAPTER_WEIGHTS_FILE } from '../../../formats/models/documents.js';
import { peftName } from '../../../formats/models/peft-names.js';
import { safetensorsHeader } from '../../../formats/safetensors/header.js';
import {
  architectureOf,
  moduleOf,
  paramNamesOf,
  tiedHead,
  trainedArchitecture,
} from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import type { TaskRequest, TaskResults } from '../protocol.js';
import { ExportFolder } from './export-folder.js';
import { baseOfExport, DTYPES, metadataOf, safetensorsDtype } from './export-model.js';
import { TensorReader, weightsState } from './tensor-reader.js';

type ExportRequest = Extract<TaskRequest, { kind: 'export' }>;

/**
 * Writes what a checkpoint trained over a frozen model as a folder of PEFT: `adapter_config.json` and
 * `adapter_model.safetensors`. The format `peft_folded` has the scale of rank-stabilized adapters in `lora_alpha`. May
 * be repeated: the same checkpoint gives the same bytes.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of the object store
 */
export async function exportPeft(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit'>,
  request: ExportRequest,
): Promise<TaskResults['export']> {
  const { spec, checkpoint, prefix, weights: chosen, retry: policy } = request;
  const format = safetensorsDtype(request.dtype);
  const manifest = await retryTransient(() => readManifest(objects, checkpoint), policy);
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry: policy });
  const dtype = DTYPES[format];
  const stateOf = weightsState(manifest, chosen);
  const written = writtenTensors(spec, manifest);
  let at = 0;
  const tensors = written.map(({ name, param: { shape, numel } }) => {
    const begin = at;
    at += numel * dtype.bytes;
    return { name: peftName(name), dtype: dtype.name, shape, begin, end: at };
  });
  const weights = async function* () {
    yield safetensorsHeader(tensors, metadataOf(spec));
    for (const { name, numel } of written.map(({ param }) => param))
      for await (const piece of reader.read(stateOf(name), name, numel))
        yield format === 'fp32' ? piece : core.castTo16Bit(format, piece);
  };
  const document = {
    ...adapterConfig(spec, wholeModules(written)),
    ...(request.format === 'peft_folded' && foldedScale(spec)),
  };
  const config = `${JSON.stringify(document, null, 2)}\n`;
  const folder = new ExportFolder(objects, prefix, policy);
  await folder.put(ADAPTER_CONFIG_FILE, async function* () {
    yield Buffer.from(config);
  });
  await folder.put(ADAPTER_WEIGHTS_FILE, weights, { bytes: at });
  await folder.putCompanions(spec);
  return { prefix, state_digest: manifest.state_digest, ...baseOfExport(spec), files: folder.files };
}

/** A tensor of the file, under the name that the model of transformers has for it. */
interface WrittenTensor {
  name: string;
  param: Manifest['params'][number];
}

/**
 * Returns what was trained. PEFT copies each module of `modules_to_save`, so a matrix that the model ties is returned
 * for both modules. With only one of them PEFT would use the base's matrix in the other.
 */
function writtenTensors({ model }: ResolvedJobSpec, { params }: Manifest): WrittenTensor[] {
  const written = params.flatMap((param) => (param.frozen ? [] : [{ name: param.name, param }]));
  const [embedding] = params;
  const head = tiedHead(architectureOf(model.config));
  if (head === null || embedding === undefined || embedding.frozen) return written;
  return [...written, { name: head, param: embedding }];
}

/** Returns the modules that were trained whole, by their full names: PEFT also takes names that only end alike. */
function wholeModules(written: readonly WrittenTensor[]): string[] {
  const modules = written.filter(({ name }) => !name.includes('.lora_')).map(({ name }) => moduleOf(name));
  return [...new Set(modules)];
}

/** Engines that ignore `use_rslora` scale by lora_alpha / r. */
function foldedScale(spec: ResolvedJobSpec): Record<string, unknown> {
  const { adapter } = trainedArchitecture(spec);
  return adapter === null ? {} : { lora_alpha: adapter.scale * adapter.rank, use_rslora: false };
}

/** Returns the `adapter_config.json` of PEFT's LoraConfig. */
function adapterConfig({ model, train }: ResolvedJobSpec, whole: string[]): Record<string, unknown> {
  const { adapter } = train;
  if (adapter === undefined) throw new Error('the job has no adapter');
  const { rank, alpha, dropout, target_modules } = adapter;
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: null,
    inference_mode: true,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: dropout,
    use_rslora: adapter.rank_stabilized,
    use_dora: adapter.type === 'dora',
    init_lora_weights: adapter.init === 'gaussian' ? 'gaussian' : true,
    target_modules,
    modules_to_save: whole.length === 0 ? null : whole,
    bias: 'none',
    fan_in_fan_out: paramNamesOf(architectureOf(model.config)).in_first,
  };
}
