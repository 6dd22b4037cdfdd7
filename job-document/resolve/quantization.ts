import type { FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf } from '../model/families/families.js';
import { quantizableModules } from '../model/params.js';
import { isAmong } from './adapter.js';

/** Checks that what is quantized is frozen: a matrix that is trained needs the precision of its updates. */
export function checkQuantization(spec: ResolvedJobSpec): FieldError[] {
  const { quantization } = spec.model;
  const { adapter } = spec.train;
  if (quantization === undefined) return [];
  if (adapter === undefined) {
    const message = `quantization ${quantization} is for a frozen base; set train.adapter, or leave quantization out`;
    return [fieldError('/model/quantization', 'adapter_missing', message)];
  }
  if (adapter.type === 'dora') {
    const message = `dora computes norms of the base's weights, which ${quantization} does not keep; use lora, or leave quantization out`;
    return [fieldError('/train/adapter/type', 'adapter_dora_quantized', message, 'lora')];
  }
  const whole = quantizableModules(architectureOf(spec.model.config)).find((module) =>
    isAmong(module, adapter.modules_to_save),
  );
  if (whole === undefined) return [];
  const message = `${whole} is quantized, so it cannot be trained whole; target it with the adapter, or leave quantization out`;
  return [fieldError('/train/adapter/modules_to_save', 'adapter_module_quantized', message)];
}
