import { initFromOf } from '../resolve/init/given-init.js';
import { precisionOf } from './precision.js';
import { keyError, type Setting, type Source, type Translated, unknownName } from './settings.js';

const AT = 'zero_optimization';
const BYTES = { fp32: 4, fp16: 2, bf16: 2 } as const;
/**
 * Bounds of `zero.bucket_bytes`. The size of buckets does not change the result, so values outside are
 * clamped.
 */
const [MIN_BUCKET_BYTES, MAX_BUCKET_BYTES] = [16_384, 2 ** 30];

export function translateZero(source: Source): Translated {
  const parts = [stage(source), offload(source), predivide(source)];
  const settings = [...bucketBytes(source), ...clipping(source), ...restore(source)];
  return {
    settings: [...parts.flatMap((part) => part.settings), ...settings],
    errors: parts.flatMap((part) => part.errors),
  };
}

/**
 * Translates the stage. Stage 0 replicates all state and exchanges sums once per step. Stage 1 makes the same
 * exchange and shards the optimizer as well, which changes no result: there is no reason to replicate it on
 * every rank.
 */
function stage(source: Source): Translated {
  const from = `${AT}.stage`;
  if (source.isAuto(from)) return { settings: [], errors: [] };
  const said = source.get<number>(from);
  if (said === 3) {
    const why =
      'sharded parameters are not supported, only sharded gradients and optimizer state: use 2, with offload_optimizer if necessary';
    return { settings: [], errors: [keyError(from, 'deepspeed_key_unsupported', `stage 3: ${why}`)] };
  }
  if (said !== undefined && ![0, 1, 2].includes(said))
    return { settings: [], errors: [unknownName(from, String(said), ['0', '1', '2'])] };
  const value = said === 2 ? 2 : 1;
  return { settings: [{ field: '/zero/stage', value, ...(said !== undefined && { from }) }], errors: [] };
}

function offload(source: Source): Translated {
  const from = `${AT}.offload_optimizer.device`;
  const device = source.get<string>(from);
  const old = `${AT}.cpu_offload`;
  if (device === 'nvme') {
    const message = 'nvme: the optimizer is offloaded to host memory only: use cpu';
    return { settings: [], errors: [keyError(from, 'deepspeed_key_unsupported', message, 'cpu')] };
  }
  if (device !== undefined && device !== 'cpu' && device !== 'none')
    return { settings: [], errors: [unknownName(from, device, ['cpu', 'none'])] };
  const settings: Setting[] = [];
  if (device !== undefined) settings.push({ field: '/zero/offload', value: device, from });
  if (source.get(old) === true) settings.push({ field: '/zero/offload', value: 'cpu', from: old });
  return { settings, errors: [] };
}

/**
 * Translates the factors. With prescaling DeepSpeed divides by the number of GPUs before the exchange and ignores
 * others. Without, it does the same unless a factor is given; it matters in fp16, where it decides which gradients
 * overflow.
 */
function predivide(source: Source): Translated {
  const [prescale, factor] = ['prescale_gradients', 'gradient_predivide_factor'];
  const field = '/zero/gradient_predivide_factor';
  const value = source.get<number>(factor);
  if (source.get(prescale) !== true) {
    if (value !== undefined) return { settings: [{ field, value, from: factor }], errors: [] };
    return { settings: precisionOf(source) === 'fp16' ? [{ field, value: source.ranks }] : [], errors: [] };
  }
  if (value !== undefined && value !== 1) {
    const message = `${factor}: DeepSpeed ignores it when ${prescale} is true: remove one of them`;
    return { settings: [], errors: [keyError(factor, 'deepspeed_key_unsupported', message)] };
  }
  return { settings: [{ field, value: source.ranks, from: prescale }], errors: [] };
}

function bucketBytes(source: Source): Setting[] {
  const from = `${AT}.reduce_bucket_size`;
  const elements = source.get<number>(from);
  if (elements === undefined) return [];
  const said = source.get<string>('communication_data_type')?.toLowerCase() ?? source.own.zero?.reduce_dtype;
  const dtype = said === 'fp32' || said === 'fp16' || said === 'bf16' ? said : precisionOf(source);
  const bytes = Math.min(Math.max(Math.floor(elements) * BYTES[dtype], MIN_BUCKET_BYTES), MAX_BUCKET_BYTES);
  return [{ field: '/zero/bucket_bytes', value: bytes, from }];
}

function clipping(source: Source): Setting[] {
  const from = 'gradient_clipping';
  if (source.isAuto(from)) return [];
  const value = source.get<number>(from);
  return [{ field: '/train/gradient_clipping', value: value ?? 0, ...(value !== undefined && { from }) }];
}

/**
 * Translates the choice between the fp32 weights of a checkpoint, which every restore loads, and its 16-bit weights.
 * The key has no meaning without a checkpoint.
 */
function restore(source: Source): Setting[] {
  const from = `${AT}.load_from_fp32_weights`;
  const [said, initFrom] = [source.get<boolean>(from), initFromOf(source.own.model)];
  if (initFrom === undefined || said === undefined) return [];
  const contradicts = said && initFrom.restore === 'weights_16bit';
  return said && !contradicts
    ? []
    : [{ field: '/model/init_from/restore', value: said ? 'full' : 'weights_16bit', from }];
}
