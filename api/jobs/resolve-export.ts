import {
  type ExportKind,
  type ExportRequest,
  type FieldErrorCode,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';
import { unsupportedModel } from '../../formats/gguf/architecture.js';
import { checkWeights } from '../../job-document/index.js';
import { invalidDocument } from './check-spec.js';

/** Formats of adapters alone. */
const ADAPTER_FORMATS: ReadonlySet<ExportKind['format']> = new Set(['peft', 'peft_folded', 'gguf_lora']);

/** Fills in the defaults of an export request. @throws ZerofleetError `validation_failed` */
export function resolveExport(
  { format = 'safetensors', dtype, weights, tensorboard: chosen }: ExportRequest,
  spec: ResolvedJobSpec,
): ExportKind {
  const tensorboard = chosen ?? spec.export.tensorboard;
  const hasAdapter = spec.train.adapter !== undefined;
  if (ADAPTER_FORMATS.has(format) && !hasAdapter)
    throw refused('/format', 'adapter_missing', 'the job trained a whole model, no adapters', 'safetensors');
  if (format === 'peft_folded' && spec.train.adapter?.rank_stabilized === false)
    throw refused(
      '/format',
      'field_without_effect',
      'the scale of adapters that are not rank-stabilized is lora_alpha / r in every engine',
      'peft',
    );
  if (dtype === 'q8_0' && format !== 'gguf')
    throw refused('/dtype', 'export_unsupported', `${format} has no dtype q8_0; gguf has`, 'bf16');
  requireGguf(format, spec);
  if (format !== 'deepspeed_universal') {
    requireWeights(spec, weights);
    return {
      format,
      dtype: dtype ?? spec.export.dtype,
      weights: weights ?? spec.export.weights,
      tensorboard,
    };
  }
  if (hasAdapter)
    throw refused('/format', 'export_of_adapter', "DeepSpeed's layout is for whole models; use peft", 'peft');
  if (dtype !== undefined && dtype !== 'fp32') {
    const message = 'deepspeed_universal holds the whole state, which is fp32; leave dtype out';
    throw refused('/dtype', 'field_without_effect', message, 'fp32');
  }
  if (weights !== undefined && weights !== 'trained') {
    const message = 'deepspeed_universal holds the state of the training; leave weights out';
    throw refused('/weights', 'field_without_effect', message, 'trained');
  }
  return { format, dtype: 'fp32', weights: 'trained', tensorboard };
}

/**
 * @throws ZerofleetError `validation_failed` for what the documents already tell that a file of llama.cpp cannot hold
 */
function requireGguf(format: ExportKind['format'], spec: ResolvedJobSpec): void {
  if (format !== 'gguf' && format !== 'gguf_lora') return;
  const unsupported = (message: string, suggestion: string) =>
    refused('/format', 'export_unsupported', message, suggestion);
  const problem = unsupportedModel(spec.model.config);
  if (problem !== null) throw unsupported(problem, format === 'gguf' ? 'safetensors' : 'peft');
  const { adapter } = spec.train;
  if (format === 'gguf' || adapter === undefined) return;
  if (adapter.type === 'dora')
    throw unsupported('llama.cpp has no magnitudes of DoRA; gguf has them merged into the model', 'gguf');
  if (adapter.modules_to_save.length > 0)
    throw unsupported(
      `an adapter of llama.cpp has no whole modules (${adapter.modules_to_save.join(', ')}); gguf has them in the model`,
      'gguf',
    );
}

/** @throws ZerofleetError `validation_failed` for weights that the job does not have */
export function requireWeights(spec: ResolvedJobSpec, weights: ExportKind['weights'] = 'trained'): void {
  const errors = checkWeights(spec.train, weights, '/weights');
  if (errors.length > 0) throw invalidDocument(errors);
}

function refused(pointer: string, code: FieldErrorCode, message: string, suggestion: string): ZerofleetError {
  return new ZerofleetError('validation_failed', message, {
    fields: [{ pointer, code, message, suggestion }],
  });
}
