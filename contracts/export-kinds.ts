/** Formats, dtypes and weights of exports, in the order in which programs list them. */
import type { ExportKind } from './queue.js';

export const EXPORT_FORMATS = [
  'safetensors',
  'peft',
  'peft_folded',
  'gguf',
  'gguf_lora',
  'deepspeed_universal',
] as const satisfies readonly ExportKind['format'][];

export const EXPORT_DTYPES = [
  'bf16',
  'fp16',
  'fp32',
  'q8_0',
] as const satisfies readonly ExportKind['dtype'][];

/** The weights as trained, or their average. */
export const EXPORT_WEIGHTS = ['trained', 'ema'] as const satisfies readonly ExportKind['weights'][];
