import {
  type ExportKind,
  type ExportRequest,
  type FieldErrorCode,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';
import { checkWeights } from '../../job-document/index.js';
import { invalidDocument } from './check-spec.js';

/** Fills in the defaults of an export request. @throws ZerofleetError `validation_failed` */
export function resolveExport(
  { format = 'safetensors', dtype, weights, tensorboard: chosen }: ExportRequest,
  spec: ResolvedJobSpec,
): ExportKind {
  const tensorboard = chosen ?? spec.export.tensorboard;
  const hasAdapter = spec.train.adapter !== undefined;
  if (format === 'peft' && !hasAdapter)
    throw refused('/format', 'adapter_missing', 'the job trained a whole model, no adapters', 'safetensors');
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
  if (weights === 'ema') {
    const message = 'deepspeed_universal holds the state of the training; leave weights out';
    throw refused('/weights', 'field_without_effect', message, 'trained');
  }
  return { format, dtype: 'fp32', weights: 'trained', tensorboard };
}

/** @throws ZerofleetError `validation_failed` for weights that the job does not have */
export function requireWeights(spec: ResolvedJobSpec, weights: ExportKind['weights'] = 'trained'): void {
  const errors = checkWeights(spec, weights, '/weights');
  if (errors.length > 0) throw invalidDocument(errors);
}

function refused(pointer: string, code: FieldErrorCode, message: string, suggestion: string): ZerofleetError {
  return new ZerofleetError('validation_failed', message, {
    fields: [{ pointer, code, message, suggestion }],
  });
}
