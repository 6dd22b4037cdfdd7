import type { FieldErrorCode, ResolvedJobSpec } from '../../contracts/index.js';

/** Returns why the job has no base model to compare with; null if it has one. */
export function baseFault(
  adapter: ResolvedJobSpec['train']['adapter'],
): { code: FieldErrorCode; message: string } | null {
  const base = 'the base is the model without its adapter';
  if (adapter === undefined)
    return { code: 'adapter_missing', message: `${base}, and the job has none: set train.adapter` };
  if (adapter.modules_to_save.length === 0) return null;
  const modules = adapter.modules_to_save.join(', ');
  return {
    code: 'reference_not_kept',
    message: `${base}, and the job also trains ${modules}: leave out train.adapter.modules_to_save`,
  };
}
