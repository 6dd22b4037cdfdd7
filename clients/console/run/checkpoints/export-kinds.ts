/** Exports that a run's checkpoints can have, and addresses of files. */
import type { CheckpointExport, Job } from '../../../../contracts/types.js';

export type Kind = Pick<CheckpointExport, 'format' | 'dtype' | 'weights' | 'tensorboard'>;

type Spec = { train: Pick<Job['spec']['train'], 'adapter' | 'ema'>; export: Pick<Kind, 'dtype' | 'weights'> };

export function formatsOf({ train }: Pick<Spec, 'train'>): Kind['format'][] {
  const adapters = ['peft', 'gguf_lora'] as const;
  return [
    'safetensors',
    'gguf',
    ...(train.adapter === undefined ? (['deepspeed_universal'] as const) : adapters),
  ];
}

/** The layout of DeepSpeed holds the whole state, which is fp32. */
export const dtypesOf = (format: Kind['format']): Kind['dtype'][] =>
  format === 'deepspeed_universal'
    ? ['fp32']
    : ['bf16', 'fp16', 'fp32', ...(format === 'gguf' ? (['q8_0'] as const) : [])];

export const weightsOf = (format: Kind['format'], { train }: Pick<Spec, 'train'>): Kind['weights'][] =>
  format === 'deepspeed_universal' || train.ema === undefined ? ['trained'] : ['trained', 'ema'];

/** Returns the kind with what its format allows instead of what it does not. */
export function allowedKind({ format, dtype, weights, tensorboard }: Kind, spec: Pick<Spec, 'train'>): Kind {
  const [dtypes, all] = [dtypesOf(format), weightsOf(format, spec)];
  return {
    format,
    dtype: dtypes.includes(dtype) ? dtype : (dtypes[0] ?? 'fp32'),
    weights: all.includes(weights) ? weights : 'trained',
    tensorboard,
  };
}

/**
 * Address of a file, relative to the console's page. The browser sends its session, so the address never expires.
 * @param kind export that has the file; null for a file of the checkpoint itself
 */
export const fileLink = (checkpointId: string, name: string, kind: Kind | null): string =>
  `v1/checkpoints/${checkpointId}/file?${queryOf({ name }, kind)}`;

/** Address of an archive of all files, likewise. */
export const archiveLink = (checkpointId: string, kind: Kind | null): string =>
  `v1/checkpoints/${checkpointId}/archive?${queryOf({}, kind)}`;

function queryOf(given: Record<string, string>, kind: Kind | null): URLSearchParams {
  const settings = kind && {
    format: kind.format,
    dtype: kind.dtype,
    weights: kind.weights,
    tensorboard: String(kind.tensorboard),
  };
  return new URLSearchParams({ ...given, ...settings });
}
