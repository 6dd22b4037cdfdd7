import {
  type ExportRequest,
  type FieldErrorCode,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';

/** Fills in the defaults of an export request. @throws ZerofleetError `validation_failed` */
export function resolveExport({ format = 'safetensors', dtype }: ExportRequest, spec: ResolvedJobSpec) {
  const hasAdapter = spec.train.adapter !== undefined;
  if (format === 'peft' && !hasAdapter)
    throw refused('/format', 'adapter_missing', 'the job trained a whole model, no adapters', 'safetensors');
  if (format !== 'deepspeed_universal') return { format, dtype: dtype ?? spec.export.dtype };
  if (hasAdapter)
    throw refused('/format', 'export_of_adapter', "DeepSpeed's layout is for whole models; use peft", 'peft');
  if (dtype === undefined || dtype === 'fp32') return { format, dtype: 'fp32' as const };
  const message = 'deepspeed_universal holds the whole state, which is fp32; leave dtype out';
  throw refused('/dtype', 'field_without_effect', message, 'fp32');
}

function refused(pointer: string, code: FieldErrorCode, message: string, suggestion: string): ZerofleetError {
  return new ZerofleetError('validation_failed', message, {
    fields: [{ pointer, code, message, suggestion }],
  });
}
