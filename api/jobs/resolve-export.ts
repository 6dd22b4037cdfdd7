import { type ExportRequest, type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';

/** Fills in the defaults of an export request. @throws ZerofleetError `validation_failed` */
export function resolveExport({ format = 'safetensors', dtype }: ExportRequest, spec: ResolvedJobSpec) {
  if (format === 'safetensors') return { format, dtype: dtype ?? spec.export.dtype };
  if (dtype === undefined || dtype === 'fp32') return { format, dtype: 'fp32' as const };
  const message = 'deepspeed_universal holds the whole state, which is fp32; leave dtype out';
  throw new ZerofleetError('validation_failed', message, {
    fields: [{ pointer: '/dtype', code: 'field_without_effect', message, suggestion: 'fp32' }],
  });
}
