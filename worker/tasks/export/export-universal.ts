/**
 * Checkpoint in DeepSpeed's universal layout, next to the files of a Hugging Face model folder:
 *
 *     config.json …
 *     latest_universal                                      names the folder below
 *     global_step<n>_universal/zero/<tensor>/fp32.pt        master weights, as {"param": tensor}
 *                                           <state>.pt      optimizer state, under its PyTorch name
 *                                           step.pt         number of updates
 *     global_step<n>_universal/zero/optimizer_state.pt      settings of the optimizer's groups, loss scaler
 *     global_step<n>_universal/mp_rank_00_model_states.pt   weights in the module's dtype, and counters
 */
import { isMoment, type StateName } from '../../../contracts/state-records.js';
import { statesOf } from '../../../formats/checkpoint/shard-contents.js';
import type { TorchValue } from '../../../formats/torch-file/values.js';
import { inMemory, TorchFileWriter } from '../../../formats/torch-file/write.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import type { TaskRequest, TaskResults } from '../protocol.js';
import { ExportFolder } from './export-folder.js';
import { type OpenCheckpoint, openCheckpoint } from './open-checkpoint.js';
import {
  modelStates,
  optimizerState,
  type UniversalTensor,
  universalTensors,
} from './universal-documents.js';

type ExportRequest = Extract<TaskRequest, { kind: 'export' }>;

/**
 * Writes a whole checkpoint for DeepSpeed. Parameters are streamed piece by piece. May be repeated: the same checkpoint
 * gives the same bytes.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of the object store
 */
export async function exportUniversal(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit' | 'initialValues' | 'quantizedValues'>,
  request: ExportRequest,
): Promise<TaskResults['export']> {
  const { spec, prefix, retry: policy } = request;
  const checkpoint = await openCheckpoint(objects, core, request);
  const { manifest } = checkpoint;
  const folder = new ExportFolder(objects, prefix, policy);
  const tag = `global_step${manifest.step}_universal`;
  const put = (name: string, writer: TorchFileWriter, value: TorchValue) =>
    folder.put(`${tag}/${name}`, () => writer.file(value));

  await folder.putConfig(spec, 'fp32');
  await folder.putCompanions(spec);
  const tensors = universalTensors(manifest, spec);
  await putParams(checkpoint, tensors, put);
  const optimizer = new TorchFileWriter();
  await put('zero/optimizer_state.pt', optimizer, optimizerState(manifest, spec, tensors));
  const { precision } = spec.train;
  const cast = (fp32: Uint8Array) => (precision === 'fp32' ? fp32 : core.castTo16Bit(precision, fp32));
  const module = new TorchFileWriter();
  const dtype = ({ bf16: 'BF16', fp16: 'F16', fp32: 'F32' } as const)[precision];
  const weights = tensors.map((tensor) => {
    const content = async function* () {
      for await (const piece of elementsOf(checkpoint, 'master', tensor)) yield cast(piece);
    };
    return [tensor, module.tensor(dtype, tensor.shape, content)] as const;
  });
  await put('mp_rank_00_model_states.pt', module, modelStates(manifest, spec, weights));
  // Written last: the folder that it names is complete.
  await folder.put('latest_universal', inMemory(Buffer.from(tag)));
  return { prefix, state_digest: manifest.state_digest, files: folder.files };
}

type Put = (name: string, writer: TorchFileWriter, value: TorchValue) => Promise<void>;

async function* elementsOf(
  { read }: OpenCheckpoint,
  state: StateName,
  { params }: UniversalTensor,
): AsyncGenerator<Uint8Array> {
  for (const { name, numel } of params) yield* read(state, name, numel);
}

/** Writes state by state, in the order of the shards, so that each chunk is read about once. */
async function putParams(
  checkpoint: OpenCheckpoint,
  tensors: readonly UniversalTensor[],
  put: Put,
): Promise<void> {
  const { states, optimizer_steps } = checkpoint.manifest;
  for (const state of states) {
    if (state !== 'master' && !isMoment(state)) continue; // DeepSpeed has no average
    for (const tensor of tensors) {
      const { name, shape, params } = tensor;
      if (!params.every((param) => statesOf(param, states).includes(state))) continue;
      const writer = new TorchFileWriter();
      const content = writer.tensor('F32', shape, () => elementsOf(checkpoint, state, tensor));
      await put(`zero/${name}/${fileOf(state)}.pt`, writer, new Map([['param', content]]));
    }
  }
  const step = Float32Array.of(optimizer_steps);
  for (const { name, params } of tensors) {
    if (params.some(({ frozen }) => frozen)) continue;
    const writer = new TorchFileWriter();
    const tensor = writer.tensor('F32', [], inMemory(new Uint8Array(step.buffer)));
    await put(`zero/${name}/step.pt`, writer, tensor);
  }
}

function fileOf(state: StateName): string {
  return state === 'master' ? 'fp32' : state;
}
