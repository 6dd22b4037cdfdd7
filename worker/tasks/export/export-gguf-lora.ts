import { ggufArchitecture } from '../../../formats/gguf/architecture.js';
import { encodeTensor } from '../../../formats/gguf/encode.js';
import { float32, type GgufMetadata, string, uint32 } from '../../../formats/gguf/file.js';
import { FILE_TYPES, plannedTensors } from '../../../formats/gguf/tensors.js';
import { trainedArchitecture } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import type { TaskRequest, TaskResults } from '../protocol.js';
import { ExportFolder } from './export-folder.js';
import { elementsOf, provenance, putGguf } from './export-gguf.js';
import { baseOfExport } from './export-model.js';
import { TensorReader, weightsState } from './tensor-reader.js';

const ADAPTER_FILE = 'adapter.gguf';

/**
 * Writes the adapters of a checkpoint as a file of llama.cpp (`--lora`). May be repeated: the same checkpoint gives the
 * same bytes.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of the object store
 */
export async function exportGgufLora(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit'>,
  request: Extract<TaskRequest, { kind: 'export' }>,
): Promise<TaskResults['export']> {
  const { spec, checkpoint, prefix, dtype, weights, retry } = request;
  const { adapter } = trainedArchitecture(spec);
  if (adapter === null) throw new Error('the job has no adapter');
  const manifest = await retryTransient(() => readManifest(objects, checkpoint), retry);
  const { state_digest } = manifest;
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry });
  const stateOf = weightsState(manifest, weights);
  const metadata: GgufMetadata = [
    ['general.architecture', string(ggufArchitecture(spec.model.config))],
    ['general.type', string('adapter')],
    ['general.name', string(spec.name)],
    ['general.file_type', uint32(FILE_TYPES[dtype].code)],
    ...provenance(spec, state_digest),
    ['adapter.type', string('lora')],
    // llama.cpp scales by alpha / rank, without rank stabilization.
    ['adapter.lora.alpha', float32(adapter.scale * adapter.rank)],
  ];
  const factors = manifest.params.filter(({ frozen }) => !frozen);
  const written = plannedTensors(spec.model.config, factors, dtype).map((tensor) => ({
    tensor,
    data: () =>
      encodeTensor(
        tensor,
        elementsOf(tensor, ({ name, numel }) => reader.read(stateOf(name), name, numel)),
        core.castTo16Bit,
      ),
  }));
  const folder = new ExportFolder(objects, prefix, retry);
  await putGguf(folder, ADAPTER_FILE, metadata, written);
  return { prefix, state_digest, ...baseOfExport(spec), files: folder.files };
}
